"""A catalog's configs become plans: listing status, class, keys and the workload that stands for them.

`python -m neuronqa.workload.planner` reads JSON lines `{"hash": ..., "text": ...}` on standard input, with a
`"level"` for another than the smallest, and answers each with one JSON line. It imports no modelling code, allocates
no model, runs no code a config names, and no input ends it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TextIO

os.environ["HF_HUB_OFFLINE"] = "1"

import transformers

from neuronqa.domain.catalog import ListingStatus
from neuronqa.domain.identity import relaxed, strict
from neuronqa.domain.outcome import clean_detail
from neuronqa.domain.workload import HfSpec, Workload
from neuronqa.workload import architectures, recipes
from neuronqa.workload.architectures import Architecture
from neuronqa.workload.complete import complete, instantiate
from neuronqa.workload.decode import Malformed, decode
from neuronqa.workload.keys import Keys, keys
from neuronqa.workload.levels import Level
from neuronqa.workload.meaning import Meaning, meaning
from neuronqa.workload.quiet import anonymise, settle, silence
from neuronqa.workload.shrink import shrink
from neuronqa.workload.tree import is_count, nodes
from neuronqa.workload.version import BUILDER

SEED: Final = 20_260_101
_BOUNDS: Final[Mapping[Meaning, int]] = {
    Meaning.DEPTH: 4096,
    Meaning.HEADS: 1 << 16,
    Meaning.KV_HEADS: 1 << 16,
    Meaning.EXPERTS: 1 << 16,
    Meaning.QUERIES: 1 << 20,
    Meaning.WIDTH: 1 << 24,
    Meaning.HEAD_DIM: 1 << 20,
}
"""Counts beyond these belong to no model; config classes loop over some of them."""
_NAMED_BOUNDS: Final = {"num_labels": 1 << 20}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigPlan:
    """What a config.json comes to. Keys and workload are there when the status is `eligible`."""

    status: ListingStatus
    reason: str = ""
    model_type: str = ""
    class_name: str = ""
    task: str = ""
    kernel_key: str = ""
    graph_key: str = ""
    workload: Workload | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "status": self.status.value,
            "reason": self.reason,
            "model_type": self.model_type,
            "class_name": self.class_name,
            "task": self.task,
            "kernel_key": self.kernel_key,
            "graph_key": self.graph_key,
            "workload": self.workload.to_json() if self.workload else None,
        }


class _Unfit(Exception):
    """The config cannot become a workload: the status and the reason."""

    def __init__(self, status: ListingStatus, reason: str, model_type: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.model_type = model_type


def plan_config(config_text: str, level: Level = Level.SMALL) -> ConfigPlan:
    """Decide status, class, keys and workload of a config.json. Pure; raises nothing for any text."""
    try:
        return _plan(config_text, level)
    except _Unfit as unfit:
        reason, model_type = clean_detail(unfit.reason), clean_detail(unfit.model_type)
        return ConfigPlan(status=unfit.status, reason=reason, model_type=model_type)
    except (Exception, RecursionError) as error:  # noqa: BLE001 - hostile input; whatever it broke is its outcome
        return ConfigPlan(status=ListingStatus.CONFIG_INVALID, reason=clean_detail(_told(error)))


def larger(workload: Workload, config_text: str) -> Workload | None:
    """The audit's version of a workload: the same config and class one level larger, or None if it has none."""
    del workload
    return plan_config(config_text, Level.AUDIT).workload


def _plan(config_text: str, level: Level) -> ConfigPlan:
    try:
        raw = decode(config_text)
    except Malformed as malformed:
        raise _Unfit(ListingStatus.CONFIG_MALFORMED, str(malformed)) from malformed
    architecture = _choose(raw)
    model_type = architecture.model_type
    if any(isinstance(raw.get(k), dict) and raw[k] for k in ("quantization_config", "compression_config")):
        method = (raw.get("quantization_config") or raw["compression_config"]).get("quant_method", "unnamed")
        raise _Unfit(ListingStatus.QUANTIZED, f"quantised weights ({str(method)[:40]})", model_type)
    _refuse_giants(raw, model_type)
    try:
        full = complete(instantiate(model_type, raw), architecture.module)
    except (Exception, RecursionError) as error:
        raise _Unfit(ListingStatus.CONFIG_INVALID, _told(error), model_type) from error
    found = keys(full, architecture)
    spec = _spec(full, architecture, level)
    return _eligible(architecture, found, Workload(spec))


def _eligible(architecture: Architecture, found: Keys, workload: Workload) -> ConfigPlan:
    return ConfigPlan(
        status=ListingStatus.ELIGIBLE,
        model_type=architecture.model_type,
        class_name=architecture.class_name,
        task=architecture.task.value,
        kernel_key=found.kernel,
        graph_key=found.graph,
        workload=workload,
    )


def _choose(raw: Mapping[str, Any]) -> Architecture:
    """The class a config stands for: what `architectures` names, else the one its model type usually has."""
    named = [a for a in raw.get("architectures") or () if isinstance(a, str)]
    remote = bool(raw.get("auto_map"))
    model_type = raw.get("model_type")
    if model_type is None or model_type == "":
        return _by_class(named, remote=remote)
    if not isinstance(model_type, str):
        raise _Unfit(ListingStatus.CONFIG_INVALID, f"model_type is not text but {str(model_type)[:60]!r}")
    if model_type == "mistral" and "layer_types" in raw:  # as AutoConfig.from_pretrained does
        model_type = "ministral"
    if not architectures.is_known(model_type):
        raise _unknown(model_type, remote=remote)
    chosen = next((a for n in named if (a := architectures.find(model_type, n)) is not None), None)
    chosen = chosen or architectures.default(model_type)
    if chosen is None:
        raise _Unfit(ListingStatus.CONFIG_INVALID, f"{model_type} is part of other models' configs", model_type)
    return chosen


def _by_class(named: list[str], *, remote: bool) -> Architecture:
    for name in named:
        for model_type in architectures.types_of(name)[:1]:
            found = architectures.find(model_type, name)
            if found is not None:
                return found
    if remote:
        raise _Unfit(ListingStatus.REMOTE_CODE, "needs code from its repository and names no model type")
    raise _Unfit(ListingStatus.CONFIG_INVALID, "no model_type, and no class that transformers knows")


def _unknown(model_type: str, *, remote: bool) -> _Unfit:
    if remote:
        reason = f"{model_type} needs code from its repository, which is never run"
        return _Unfit(ListingStatus.REMOTE_CODE, reason, model_type)
    reason = f"{model_type} is unknown to transformers {transformers.__version__}"
    return _Unfit(ListingStatus.UNKNOWN_MODEL_TYPE, reason, model_type)


def _refuse_giants(value: Any, model_type: str) -> None:
    """Refuse counts that no model has before a config class loops over them."""
    if isinstance(value, list):
        for item in value:
            _refuse_giants(item, model_type)
    elif isinstance(value, dict):
        for name, item in value.items():
            bound = _NAMED_BOUNDS.get(name) or _BOUNDS.get(meaning(name))
            if bound and is_count(item) and item > bound:
                raise _Unfit(ListingStatus.TOO_LARGE, f"{name} = {item}, more than any model has", model_type)
            if isinstance(item, dict | list):
                _refuse_giants(item, model_type)


def _spec(full: dict[str, Any], architecture: Architecture, level: Level) -> HfSpec:
    """Shrink as far as the level says; where that breaks the config's own rules, keep the widths."""
    small = _small(full, level)
    try:
        instantiate(architecture.model_type, small)
    except Exception:  # noqa: BLE001 - a class may refuse with anything
        level = Level.WIDE
        small = _small(full, level)
    return HfSpec(
        model_type=architecture.model_type,
        class_name=architecture.class_name,
        module=architecture.module,
        config=relaxed(strict(small)),
        level=int(level),
        seed=SEED,
        builder=BUILDER,
        recipe=recipes.named(small),
    )


def _small(full: dict[str, Any], level: Level) -> dict[str, Any]:
    small = shrink(full, level)
    if level is not Level.FULL:
        recipes.adjust(full, small, level)
    for node in nodes(small):
        silence(node)
        anonymise(node)
    settle(small)
    return small


def _told(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def answer(line: str) -> dict[str, Any]:
    """The answer to one line of the planner's protocol; a line that is no request is answered as malformed."""
    try:
        request = json.loads(line)
        name, text, level = str(request["hash"]), request["text"], Level(request.get("level", Level.SMALL))
        if not isinstance(text, str):
            raise TypeError("text is not a string")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        plan = ConfigPlan(status=ListingStatus.CONFIG_MALFORMED, reason=clean_detail(f"not a request: {error}"))
        return {"hash": ""} | plan.to_json()
    return {"hash": name} | plan_config(text, level).to_json()


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answer every line until the input ends."""
    for line in requests:
        answers.write(json.dumps(answer(line), allow_nan=False) + "\n")
        answers.flush()


def _main() -> None:
    """Keep standard output for answers: whatever a config class prints goes to standard error."""
    transformers.logging.set_verbosity(logging.CRITICAL)
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8") as answers:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        with open(sys.stdin.fileno(), encoding="utf-8", errors="replace", closefd=False) as requests:
            serve(requests, answers)


if __name__ == "__main__":
    _main()
