"""The judge: reads what the children left and says what it means. It loads no torch, no device, no build order.

`python -m neuronqa.worker.judge` reads JSON lines `{"role": "reference", "reference", "exit"}` or `{"role": "device",
"reference", "device", "exit", "variant", "thresholds"}`, maybe with `"search"` and `"second"`, and writes one JSON line
each: `{"findings": [...]}`, or `{"error": "..."}` for a line that is not such a request or files it cannot read.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from neuronqa.checks import device_checks
from neuronqa.checks import reference as references
from neuronqa.checks.ending import ending
from neuronqa.checks.finding import blocked
from neuronqa.checks.seen import Reference, Second, Seen
from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import canonical_json, relaxed
from neuronqa.domain.observation import WEIGHT_FILE, Exit, from_json
from neuronqa.domain.outcome import Check
from neuronqa.domain.policy import Thresholds, applicable
from neuronqa.worker import linux
from neuronqa.worker.bundle import load
from neuronqa.worker.exchange import read_arrays, read_observation, read_tensors

OF_THE_REFERENCE = (Check.BUILD, Check.INPUTS, Check.REFERENCE)


def judge_reference(reference: Path, left: Exit) -> tuple[Finding, ...]:
    """Findings of BUILD, INPUTS and REFERENCE."""
    observation = read_observation(reference)
    return references.judge(observation, read_tensors(reference), ending(observation, left), left)


def judge_device(
    reference: Path,
    device: Path,
    left: Exit,
    variant: Variant,
    thresholds: Thresholds,
    search: Path | None = None,
    second: Path | None = None,
) -> tuple[Finding, ...]:
    """One finding for each device check that applies to `variant`, in the order of :class:`Check`.

    `search` is the folder of a search for the operator to blame, made after parity failed; `second` what a reference
    bundle holds.
    """
    known, tensors = read_observation(reference), read_tensors(reference)
    if known is None or not references.fit(known, tensors):
        return tuple(blocked(check, Check.REFERENCE) for check in asked_of(variant))
    weights = read_arrays(reference / WEIGHT_FILE)
    return judge_seen(
        Seen(
            reference=Reference.of(known, tensors, weights, variant.dtype, thresholds),
            device=read_observation(device),
            arrays=read_tensors(device),
            left=left,
            variant=variant,
            thresholds=thresholds,
            search=read_observation(search) if search is not None else None,
            search_arrays=read_tensors(search) if search is not None else {},
            second=_second(second) if second is not None else None,
        )
    )


def judge_seen(seen: Seen) -> tuple[Finding, ...]:
    """The same of what was read already, beside a fit reference."""
    judges = device_checks()
    return tuple(judges[check](seen) for check in asked_of(seen.variant))


def asked_of(variant: Variant) -> tuple[Check, ...]:
    """The checks of a device that apply."""
    return tuple(check for check in applicable(variant) if check not in OF_THE_REFERENCE)


def _second(folder: Path) -> Second:
    return Second(device=load(folder.parents[1]).device, arrays=read_tensors(folder))


def answer(request: Mapping[str, Any]) -> tuple[Finding, ...]:
    """Judge what one request names."""
    left = from_json(Exit, request["exit"])
    reference = Path(request["reference"])
    if request["role"] == "reference":
        return judge_reference(reference, left)
    variant = Variant.parse(request["variant"])
    search = Path(request["search"]) if request.get("search") else None
    second = Path(request["second"]) if request.get("second") else None
    thresholds = Thresholds(**request["thresholds"])
    return judge_device(reference, Path(request["device"]), left, variant, thresholds, search, second)


def main() -> None:
    """Answer requests until stdin ends, or until whoever asks is dead."""
    linux.die_with_parent(os.getppid())
    for line in sys.stdin:
        try:
            findings = answer(relaxed(json.loads(line)))
            reply: dict[str, Any] = {"findings": [_plain(one) for one in findings]}
        except Exception as error:  # noqa: BLE001 - one broken request must not silence the rest
            reply = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        print(canonical_json(reply), flush=True)


def _plain(one: Finding) -> dict[str, Any]:
    return {**asdict(one), "outcome": str(one.outcome), "others": [str(other) for other in one.others]}


if __name__ == "__main__":
    main()
