"""Differential fuzz of the operators a submission touches: drawn calls, on the CPU in one child and on the device in
another, which never sees what is expected of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from neuronqa.domain.build import BuildOrder
from neuronqa.domain.observation import Exit
from neuronqa.domain.policy import Limits
from neuronqa.fixqueue.compare import difference, summary
from neuronqa.fixqueue.kinds import Kind
from neuronqa.fixqueue.reason import Reason
from neuronqa.fixqueue.sandbox import Role, Sandbox
from neuronqa.worker import folders
from neuronqa.worker.exchange import read_arrays

CALLS: Final = "calls.json"
INPUTS: Final = "inputs.safetensors"
EXPECTED: Final = "expected.safetensors"
ACTUAL: Final = "actual.safetensors"
SEEN: Final = "seen.json"
CURRENT: Final = "current"
FATAL: Final = 8
"""Calls that may end the CPU's process before the operator is given up."""
PUBLIC_SEED: Final = 20_260_401
LEAST: Final = 4
"""Calls of an operator that have to be compared for anything to be said of it."""
SHAPES: Final = 6
"""Calls that are varied, per operator and dtype."""
_JSON_LIMIT: Final = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Fuzzed:
    """What the fuzz found. No reason: nothing wrong, over `calls` calls."""

    reason: Reason | None = None
    calls: int = 0
    wrong: Mapping[str, int] = field(default_factory=dict)
    """Calls by what is wrong with them."""
    example: str = ""
    """The plainest wrong call, in words. For whoever may know the seed: of a secret one that is the operator alone."""
    device_s: float = 0.0


def fuzz(
    sandbox: Sandbox,
    ops: Mapping[str, tuple[str, ...]],
    order: BuildOrder,
    *,
    seed: int,
    limits: Limits,
    seconds: float,
    shapes: int = SHAPES,
) -> Fuzzed:
    """Draw calls of `ops` (operator -> dtypes) from `seed`, for at most `seconds` on the CPU, and compare."""
    asked = {op: list(dtypes) for op, dtypes in ops.items()}
    request = {"ops": asked, "seed": seed, "calls": shapes, "seconds": seconds}
    with _expecting(sandbox, request, limits) as (left, out):
        if not left.done:
            return Fuzzed(reason=Reason.HARNESS, example=f"expecting: {left.fault or left.stderr_tail[-300:]}")
        made, expected = _read(out / CALLS), _read(out / SEEN)
        wanted = read_arrays(out / EXPECTED)
        given = sandbox.place("given")
        given.mkdir(mode=0o755)
        for name in (CALLS, INPUTS):
            (out / name).rename(given / name)
    # What is expected lies nowhere any more when the submission begins to run.
    compared = Counter(call["op"] for call in made)
    try:
        thin = [op for op in ops if compared[op] < LEAST]
        if thin:
            return Fuzzed(
                reason=Reason.NOT_COMPARABLE, calls=len(made), example=f"{thin[0]}: {compared[thin[0]]} calls"
            )
        apply = {"order": order.to_json(), "ops": sorted(ops), "given": str(given)}
        with sandbox.played(Role.APPLY, apply, limits) as (left, out):
            broken = ending(left)
            if broken is not None:
                return Fuzzed(reason=broken, calls=len(made), example=left.last_op)
            return _judged(made, expected, wanted, out)
    finally:
        folders.remove(given)


@contextmanager
def _expecting(sandbox: Sandbox, request: Mapping[str, Any], limits: Limits) -> Iterator[tuple[Exit, Path]]:
    """What the CPU makes of the calls. One that ends its process is no question to the device, and is left out."""
    fatal: list[int] = []
    while True:
        with sandbox.played(Role.EXPECT, {**request, "fatal": fatal}, limits) as (left, out):
            died = not (left.done or left.fault or left.timed_out or left.memory_exceeded)
            if not died or len(fatal) == FATAL or not (out / CURRENT).exists():
                yield left, out
                return
            fatal.append(int((out / CURRENT).read_text("ascii")))


def loads(sandbox: Sandbox, order: BuildOrder, limits: Limits) -> tuple[Reason | None, str]:
    """Does the device load the order? The reason why not, and the device's words."""
    with sandbox.played(Role.APPLY, {"order": order.to_json(), "ops": []}, limits) as (left, _):
        if left.fault:
            return Reason.DOES_NOT_LOAD, left.fault
        return ending(left), ""


def ending(left: Exit) -> Reason | None:
    """Why a child that ran a submission did not come to its end; None if it did."""
    if left.timed_out:
        return Reason.HANGS
    if left.memory_exceeded or "MemoryError" in left.fault:
        return Reason.OUT_OF_MEMORY
    return None if left.done else Reason.CRASHES


def _judged(made: list[dict[str, Any]], expected: list[dict[str, Any]], wanted: Mapping[str, Any], out: Path) -> Fuzzed:
    """Compare what came back. What is malformed did not come from our code, so it counts as a crash."""
    try:
        seen = {one["id"]: one for one in _read(out / SEEN)}
        actual = read_arrays(out / ACTUAL)
        found = [
            (call, difference(call, known, seen[call["id"]], wanted, actual))
            for call, known in zip(made, expected, strict=True)
        ]
        device_s = sum(float(one["seconds"]) for one in seen.values())
    except Exception:  # noqa: BLE001  whatever reading it raises
        return Fuzzed(reason=Reason.CRASHES, calls=len(made), example="its answer is malformed")
    wrong = [(call, reason) for call, reason in found if reason is not None]
    if not wrong:
        return Fuzzed(calls=len(made), device_s=device_s)
    counted = Counter(reason for _, reason in wrong)
    ops = {call["op"] for call, reason in wrong if reason is Reason.VALUES}
    some = [(call, reason) for call, reason in found if call["kind"] == Kind.PLAIN and call["op"] in ops]
    plain = [(call["dtype"], reason) for call, reason in some]
    bad = {dtype for dtype, reason in plain if reason is Reason.VALUES}
    good = {dtype for dtype, reason in plain if reason is None}
    said = summary(counted, len(good), bool(good - bad) and bool(bad))
    first = next((call for call, reason in wrong if reason is said), wrong[0][0])
    return Fuzzed(
        reason=said,
        calls=len(made),
        wrong={reason.value: count for reason, count in counted.items()},
        example=described(first),
        device_s=device_s,
    )


def described(call: Mapping[str, Any]) -> str:
    """A call in words: `aten::maximum float32 strides ([3, 4], [3, 4])`."""

    def sizes(value: Any) -> Any:
        if isinstance(value, dict):
            return str(value.get("size", value.get("torch", value.get("float", "device"))))
        return "[" + ", ".join(map(str, map(sizes, value))) + "]" if isinstance(value, list) else value

    return f"{call['op']} {call['dtype']} {call['kind']} ({', '.join(str(sizes(arg)) for arg in call['args'])})"


def _read(path: Path) -> list[dict[str, Any]]:
    if path.stat().st_size > _JSON_LIMIT:
        raise ValueError(f"{path.name} is too large")
    found = json.loads(path.read_bytes())
    if not isinstance(found, list):
        raise TypeError(f"{path.name} is no list")
    return found
