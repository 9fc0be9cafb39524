"""Did every operator run on the device itself?"""

from __future__ import annotations

from typing import Any, Final, assert_never

from neuronqa.checks.finding import blocked, finding, no_power, unobservable
from neuronqa.checks.seen import Seen
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import OpUse, Placement
from neuronqa.domain.outcome import Check, Kind, Outcome

ANSWERS: Final = Check.FALLBACK
SHOWN: Final = 50

_KINDS: Final = {
    1: Kind.FALLBACK_NO_KERNEL,
    2: Kind.FALLBACK_ARGUMENTS,
    3: Kind.FALLBACK_RECOVERED,
    4: Kind.FALLBACK_HIDDEN,
    5: Kind.FALLBACK_WHOLE_GRAPH,
}


def judge(seen: Seen) -> Finding:
    """A fallback that was seen counts even if the run stopped later; a pass needs the whole run, wholly seen."""
    observation, stopped = seen.device, seen.stopped
    if observation is None:
        return blocked(Check.FALLBACK, stopped or Check.RUN)
    if Check.FALLBACK.value in observation.not_observable:
        return unobservable(Check.FALLBACK, "the device cannot say where its operators ran")
    fallen = [use for use in observation.ops if _fell(use)]
    if fallen:
        return _fallen(fallen, observation.ops)
    if stopped is not None:
        return blocked(Check.FALLBACK, stopped)
    if not observation.ops:
        return no_power(Check.FALLBACK, "no operator was recorded", detail="no operators")
    if not observation.ops_complete:
        return unobservable(Check.FALLBACK, "some operators ran unseen")
    count = sum(use.count for use in observation.ops)
    return finding(Check.FALLBACK, Kind.FALLBACK_PASS, f"all {count} operator calls ran on the device", calls=count)


def _fell(use: OpUse) -> bool:
    match use.placement:
        case Placement.CPU:
            return True
        case Placement.NATIVE:
            return use.mechanism != 0
        case _:
            assert_never(use.placement)


def _fallen(fallen: list[OpUse], every: tuple[OpUse, ...]) -> Finding:
    costly = sorted(fallen, key=lambda use: (-use.ns, -use.nbytes, -use.count, use.op, use.dtype))
    worst = costly[0]
    operators = sorted({use.op for use in fallen})
    listed = sorted({use.op for use in fallen if use.reported})
    share = _share(fallen, every)
    words = (
        f"{len(operators)} operators ran on the CPU, {sum(u.count for u in fallen)} calls, "
        f"{sum(u.nbytes for u in fallen)} bytes moved, {share:.1%} of the time; most of it {worst.op}; "
        f"the device's own list would have named {len(listed)}"
    )
    return finding(
        Check.FALLBACK,
        _kind(worst),
        words,
        detail=_pattern(worst),
        others=[Outcome.of(_kind(use), _pattern(use)) for use in costly],
        measure=share,
        operators=operators,
        listed_by_device=listed,
        hidden_from_device_list=[op for op in operators if op not in listed],
        uses=[_facts(use) for use in costly[:SHOWN]],
        time_share=share,
    )


def _kind(use: OpUse) -> Kind:
    return _KINDS.get(use.mechanism, Kind.FALLBACK_NO_KERNEL)


def _pattern(use: OpUse) -> str:
    return f"{use.op} {use.dtype}".strip()


def _share(fallen: list[OpUse], every: tuple[OpUse, ...]) -> float:
    """Of the time where it was measured, else of the calls."""
    total = sum(use.ns for use in every)
    if total:
        return sum(use.ns for use in fallen) / total
    return sum(use.count for use in fallen) / sum(use.count for use in every)


def _facts(use: OpUse) -> dict[str, Any]:
    return {
        "op": use.op,
        "dtype": use.dtype,
        "mechanism": use.mechanism,
        "kind": _kind(use).value,
        "count": use.count,
        "bytes": use.nbytes,
        "ns": use.ns,
        "shapes": use.shapes,
        "listed_by_device": use.reported,
    }
