"""What a person names: a model on the Hub, a config.json, a folder that has one, or a factory in a Python file."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from neuronqa.catalog import config
from neuronqa.domain.catalog import ListingStatus
from neuronqa.domain.workload import ModuleSpec, Workload
from neuronqa.errors import BadInput, EnvironmentFault
from neuronqa.sweep.plan import PLANNER

FULL, SMALL = 4, 0
"""Levels of `neuronqa.workload.levels`, which only the planner's process may import."""
SEED: Final = 20_260_101
_HUB_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_FACTORY: Final = re.compile(r"(?P<file>.+\.py)(?::(?P<name>\w+))?")


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is checked. `workloads` in order of preference: the full size first, then its shrunken twin."""

    name: str
    workloads: tuple[Workload, ...]
    source: str = ""
    """The Python file of a factory; empty for a transformers model."""
    config: str = ""
    """The text of a transformers model's config."""

    @property
    def own(self) -> bool:
        """Is it a person's own code?"""
        return bool(self.source)


def resolve(what: str, *, shrink: bool = False) -> Target:
    """Find what `what` names. Raises BadInput for what cannot be checked, saying how it could."""
    factory = _FACTORY.fullmatch(what)
    if factory is not None:
        return of_factory(Path(factory["file"]), factory["name"] or "")
    path = Path(what)
    if path.is_dir():
        return _of_config(what, _folder_config(path), shrink=shrink, folder=path)
    if path.is_file():
        return _of_config(what, _read(path), shrink=shrink)
    if _HUB_ID.fullmatch(what):
        return _of_config(what, _from_hub(what), shrink=shrink)
    raise BadInput(f"there is no {what!r}", hint="name a model of the Hub, a config.json, a folder, or FILE.py:FACTORY")


def of_factory(path: Path, name: str, arguments: dict[str, Any] | None = None, title: str = "") -> Target:
    """A factory of one's own. The file is read here only to be named by its content; a child imports it."""
    try:
        source = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read: {error.strerror}", where=str(path)) from error
    if not name:
        found = _functions(source)
        hint = f"e.g. {path}:{found[0]}" if found else "write one that returns (module, inputs)"
        raise BadInput("name the factory in this file", where=str(path), hint=hint)
    spec = ModuleSpec(
        source=str(path.absolute()),
        source_sha256=hashlib.sha256(source).hexdigest(),
        factory=name,
        arguments=arguments or {},
        seed=SEED,
    )
    return Target(name=title or f"{path}:{name}", workloads=(Workload(spec),), source=spec.source)


def _functions(source: bytes) -> list[str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def _of_config(name: str, text: str, *, shrink: bool, folder: Path | None = None) -> Target:
    full, small = _plans(text, (FULL, SMALL))
    status = ListingStatus(small["status"])
    if status is not ListingStatus.ELIGIBLE:
        hint = ""
        if status is ListingStatus.REMOTE_CODE or _custom_code(text):
            hint = _as_factory(text, folder)
        raise BadInput(f"{status.value}: {small['reason'] or 'cannot be built'}", where=name, hint=hint)
    chosen = (small,) if shrink or full["workload"] is None else (full, small)
    workloads = tuple(Workload.from_json(plan["workload"]) for plan in chosen)
    return Target(name=name, workloads=workloads, config=text)


def _plans(text: str, levels: tuple[int, ...]) -> list[dict[str, Any]]:
    """Ask the planner in a process of its own: only it may import transformers."""
    requests = "".join(json.dumps({"hash": str(level), "text": text, "level": level}) + "\n" for level in levels)
    done = subprocess.run(PLANNER, input=requests, capture_output=True, text=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if len(answers) != len(levels):
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise EnvironmentFault(f"the planner died: {said}", hint="run `neuronqa doctor`")
    return answers


def _custom_code(text: str) -> bool:
    try:
        return isinstance(config.parse(text).get("auto_map"), dict)
    except config.MalformedConfig:
        return False


def _as_factory(text: str, folder: Path | None) -> str:
    """How to pass code that is never run because a config names it: as one's own."""
    entries = config.parse(text).get("auto_map") if _custom_code(text) else {}
    models = [value for key, value in (entries or {}).items() if key != "AutoConfig" and isinstance(value, str)]
    module, _, name = (models or ["modeling.MyModel"])[0].rpartition(".")
    place = folder or Path("FOLDER")
    return (
        f"its code is not run because a config names it; if you trust it, write {place}/check.py with `from {module} "
        f"import {name}` and `def make(): return {name}({name}.config_class()), inputs`, "
        f"then `neuronqa check {place}/check.py:make`"
    )


def _folder_config(path: Path) -> str:
    if not (path / "config.json").is_file():
        hint = "name a folder with a config.json, or your own code as FILE.py:FACTORY"
        raise BadInput("there is no config.json in this folder", where=str(path), hint=hint)
    return _read(path / "config.json")


def _read(path: Path) -> str:
    try:
        body = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read: {error.strerror}", where=str(path)) from error
    if len(body) > config.BODY_LIMIT:
        raise BadInput("larger than any config may be", where=str(path))
    return config.stored_text(body)


def _from_hub(repo: str) -> str:
    """The newest config.json of a model on the Hub; never its code or weights."""
    from neuronqa.catalog.hub import configs
    from neuronqa.catalog.hub.client import HubClient

    fetched = configs.fetch(HubClient(), repo, configs.MAIN)
    if fetched.text is None:
        hint = "if you meant a file, there is none of this name; a config.json on disk can be named instead"
        kind = BadInput if fetched.final else EnvironmentFault
        raise kind(f"the Hub gives no config: {fetched.absence}", where=repo, hint=hint)
    return fetched.text
