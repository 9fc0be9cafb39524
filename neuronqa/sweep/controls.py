"""Controls: planted faults and good twins that this very sweep must judge rightly, or its rates are withheld.

They are data (`catalogs/controls/controls.toml`): a small host workload, a fault in the build order's own opaque field,
and the kinds of outcome that count as caught. They travel as tickets like any other.
"""

from __future__ import annotations

import hashlib
import random
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from neuronqa.bundled import folder
from neuronqa.db.rows import ControlVerdict
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import AttemptKind, Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.job import Job, Ticket
from neuronqa.domain.outcome import Check, Kind, Rung, Stage, Standing
from neuronqa.domain.policy import Policy
from neuronqa.domain.workload import ModuleSpec, Workload
from neuronqa.errors import EnvironmentFault
from neuronqa.sweep.schedule import Assignment, CostModel

HOSTS: Final = "mini/small.py"
"""Where real cases have their models too: a device that reads paths learns nothing from it."""
SIMULATED: Final = "neuron"
PASSES: Final = "pass"
ANY: Final = ":*"


@dataclass(frozen=True, kw_only=True)
class Control:
    """One planted fault or good twin with its known answer."""

    name: str
    workload: Workload
    variant: Variant
    fault: Mapping[str, Any] | None
    guards: Check
    """The check this control proves able to fail (or, for a good twin, able to pass)."""
    expected: tuple[str, ...]
    """Outcome kinds that count as caught, `STAGE:*` for any failure of a stage; `("pass",)` for a good twin: every
    check must pass.
    """

    def judge(self, findings: Sequence[Finding]) -> ControlVerdict:
        """What was judged of this control, and whether that is right. Nothing judged is a miss."""
        own = [f.outcome for f in findings if f.check is self.guards]
        alarms = [f.outcome for f in findings if f.outcome.standing is not Standing.PASS]
        if self.expected == (PASSES,):
            judged = str(alarms[0]) if alarms else PASSES if own else "nothing"
        else:
            judged = str(own[0]) if own else "nothing"
        return ControlVerdict(
            name=self.name,
            guards=self.guards.value,
            expected=" | ".join(self.expected),
            judged=judged[:80],
            caught=any(_caught(judged.partition("(")[0], expected) for expected in self.expected),
            fault=self.label,
        )

    @property
    def label(self) -> str:
        """What is planted: the device's fault, else the host that is at fault itself; empty for a good twin."""
        if self.expected == (PASSES,):
            return ""
        return canonical_json(self.fault) if self.fault else self.workload.spec.family


def load_controls(policy: Policy, device: str = SIMULATED) -> list[Control]:
    """The bundled controls for what the policy runs and asks, on a device that takes faults or from outside of one.

    Raises EnvironmentFault for a broken installation.
    """
    base = folder("catalogs")
    path = base / "controls" / ("controls.toml" if device == SIMULATED else "outside.toml")
    try:
        rows = tomllib.loads(path.read_text("utf-8"))["control"]
        digest = hashlib.sha256((base / HOSTS).read_bytes()).hexdigest()
        controls = [_control(row, digest) for row in rows]
    except (OSError, tomllib.TOMLDecodeError, KeyError, ValueError, TypeError) as error:
        raise EnvironmentFault(f"the controls cannot be read: {error}", where=str(path)) from error
    return [c for c in controls if c.variant in policy.variants and c.guards.rung in policy.rungs]


def assignments(
    controls: Iterable[Control], policy: Policy, order: BuildOrder, seed: int, new_ticket: Any
) -> tuple[list[Assignment], dict[str, Control]]:
    """One job per control in a seeded order, and the key: ticket -> control."""
    shuffled = list(controls)
    random.Random(seed).shuffle(shuffled)
    jobs, key = [], {}
    cost = CostModel()
    # Probes look for further blockers behind a crash; a planted crash has none worth looking for.
    limits = replace(policy.limits, probes=0)
    for control in shuffled:
        ticket = Ticket(id=new_ticket(), variant=control.variant, order=replace(order, fault=control.fault))
        key[ticket.id] = control
        job = Job(workload=control.workload, tickets=(ticket,), thresholds=policy.thresholds, limits=limits)
        jobs.append(
            Assignment(
                job=job,
                kinds={ticket.id: AttemptKind.CONTROL},
                expected_s=cost.expect(control.workload.spec.family, [control.variant]),
            )
        )
    return jobs, key


def withheld(planted: Iterable[Control], verdicts: Iterable[ControlVerdict]) -> dict[Rung, str]:
    """The rungs whose rate no control vouches for, and why: one was missed, or was never judged.

    A missed good twin (a false alarm) withholds the rung of the check it guards just as a missed fault does.
    """
    judged = {verdict.name: verdict for verdict in verdicts}
    reasons: dict[Rung, str] = {}
    for control in planted:
        verdict = judged.get(control.name)
        if verdict is None:
            reasons.setdefault(control.guards.rung, f"control {control.name} was not judged")
        elif not verdict.caught:
            reasons[control.guards.rung] = f"control {control.name} was judged {verdict.judged}"
    return reasons


def _control(row: Mapping[str, Any], digest: str) -> Control:
    expected = tuple(row["expected"])
    for name in expected:
        if name.endswith(ANY):
            Stage(name.removesuffix(ANY))
        elif name != PASSES:
            Kind(name)
    spec = ModuleSpec(
        source=HOSTS,
        source_sha256=digest,
        factory=row["host"],
        deadline_s=row.get("deadline_s"),
        memory_mb=row.get("memory_mb"),
    )
    return Control(
        name=row["name"],
        workload=Workload(spec),
        variant=Variant.parse(row["variant"]),
        fault=row.get("fault"),
        guards=Check(row["guards"]),
        expected=expected,
    )


def _caught(judged: str, expected: str) -> bool:
    if expected.endswith(ANY):
        return judged.startswith(expected.removesuffix("*")) and Kind(judged).rules.standing is Standing.FAIL
    return judged == expected


def verdict(row: Any) -> ControlVerdict:
    """A stored control row as the value it was written from."""
    return ControlVerdict(
        name=row.name,
        guards=row.guards,
        expected=row.expected,
        judged=row.judged,
        caught=row.caught,
        fault=row.fault or "",
    )
