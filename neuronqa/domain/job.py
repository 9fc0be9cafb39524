"""What the driver sends to an actor and what comes back: one workload, its reference, its attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import strict
from neuronqa.domain.observation import Curve, Envelope, Exit, GraphUse, OpUse
from neuronqa.domain.policy import Limits, Thresholds
from neuronqa.domain.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """One attempt to make. The id is random and says nothing: controls travel as tickets like any other."""

    id: str
    variant: Variant
    order: BuildOrder


@dataclass(frozen=True, kw_only=True)
class Job:
    """A workload with the attempts to make at it; the reference is made once per dtype and phase and shared."""

    workload: Workload
    tickets: tuple[Ticket, ...]
    thresholds: Thresholds
    limits: Limits
    bundle: str = ""
    """The folder of a reference bundle, where one is to be compared with."""

    def to_json(self) -> dict[str, Any]:
        """Strict JSON for the wire and for logs."""
        tickets = [{"id": t.id, "variant": str(t.variant), "order": t.order.to_json()} for t in self.tickets]
        return {
            "workload": self.workload.to_json(),
            "tickets": strict(tickets),
            "thresholds": asdict(self.thresholds),
            "limits": asdict(self.limits),
            "bundle": self.bundle,
        }


@dataclass(frozen=True, kw_only=True)
class AttemptResult:
    """What one attempt found. A probe carries the ticket it continues in `probe_of` and the operators it forced."""

    ticket: str
    variant: Variant
    findings: tuple[Finding, ...]
    exit: Exit
    probe_of: str = ""
    forced_cpu: tuple[str, ...] = ()
    ops: tuple[OpUse, ...] = ()
    ops_complete: bool = False
    graph: GraphUse | None = None
    curve: Curve = field(default_factory=Curve)
    reference_curve: Curve = field(default_factory=Curve)
    envelope: Envelope = field(default_factory=Envelope)
    started: float = 0.0
    """Unix time."""
    memory_peak: int = 0


@dataclass(frozen=True, kw_only=True)
class ReferenceResult:
    """What making the reference cost and found, per dtype and phase."""

    variant: Variant
    """The eager variant it was made for."""
    findings: tuple[Finding, ...]
    exit: Exit
    parameters: int = 0
    partial: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """Everything one job produced. `lost` names why an actor could not finish it (and then nothing else is filled)."""

    workload: str
    references: tuple[ReferenceResult, ...] = ()
    attempts: tuple[AttemptResult, ...] = ()
    node: str = ""
    worker: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    lost: str = ""
