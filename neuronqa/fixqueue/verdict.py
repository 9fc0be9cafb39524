"""What is handed in, what it is measured against, and what is said of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from neuronqa.domain.case import Variant
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.workload import Workload
from neuronqa.fixqueue.reason import Reason


class Stage(StrEnum):
    """The steps of a verification, in order. What fails one is not taken to the next."""

    POLICY = "paths_and_policy"
    LOADS = "loads"
    BASE = "repro_fails_on_base"
    MEMBERS = "members"
    SIBLINGS = "siblings"
    REGRESSIONS = "regressions_and_fuzz"
    CONTROLS = "controls"
    PERSON = "person"

    @property
    def label(self) -> str:
        """`S0` to `S7`."""
        return f"S{list(Stage).index(self)}"


class Form(StrEnum):
    """What a submission is made of."""

    OVERLAY = "overlay"
    """One Python file of kernels."""
    DIFF = "diff"
    """A unified diff against the overlays that count already."""
    BUILD = "build"
    """Another build of the device, by path: a person decides on it."""


@dataclass(frozen=True, kw_only=True)
class Submission:
    """What an agent or an engineer hands in. Its text is untrusted."""

    form: Form
    content: str
    """The file's text, the diff, or the path of the build."""
    base: Mapping[str, str] = field(default_factory=dict)
    """The overlays that count already, name -> text: what a diff is made against, and what stays in force."""

    @property
    def sha256(self) -> str:
        said = {"form": self.form.value, "content": self.content, "base": dict(self.base)}
        return hashlib.sha256(canonical_json(said).encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class CaseRef:
    """A case as it is run again: without the database."""

    workload: Workload
    variant: Variant
    outcomes: tuple[str, ...] = ()
    """The failing outcomes (`stage:reason(detail)`) that the item's cluster stands for in this case; none for a case
    that passes.
    """
    name: str = ""
    """What a person calls it. Shown of visible members only."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """What a submission has to fix, and the pools of cases it is not shown."""

    key: str
    """Of the cluster."""
    ops: tuple[str, ...] = ()
    """The operators it is about, as the dispatcher names them; none if that is not known."""
    members: tuple[CaseRef, ...] = ()
    """What the agent was shown."""
    siblings: tuple[CaseRef, ...] = ()
    """Cases of the same cluster it was not shown. Some are drawn."""
    passing: tuple[CaseRef, ...] = ()
    """Cases that pass on the base, those that execute the operators first. Some are drawn."""
    asks_person: bool = False
    """Does the policy want a person to decide, whatever is measured?"""


class Conclusion(StrEnum):
    """What a verification ends in."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    INCONCLUSIVE = "inconclusive"
    NEEDS_HUMAN = "needs_human"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a verification found. The agent sees :meth:`shown` and nothing else."""

    conclusion: Conclusion
    stage: Stage
    """The one that decided; the last one for what is accepted."""
    reason: Reason | None = None
    """None for what is accepted."""
    hint: str = ""
    """About the submission's own text and what the agent was shown; never about what is kept back."""
    note: str = ""
    """For the operator of the queue: it may name hidden cases."""
    measured: Mapping[str, Any] = field(default_factory=dict)
    """For the operator: seconds and counts by stage."""

    def shown(self) -> dict[str, str]:
        """Stage and reason, for the agent."""
        said = {"conclusion": self.conclusion.value, "stage": f"{self.stage.label} {self.stage.value}"}
        if self.reason is not None:
            said |= {"reason": self.reason.value, "text": self.reason.text}
        return said | ({"hint": self.hint} if self.hint else {})
