"""What a check of one model found, as one value: rungs, blockers with their places in the source, what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from neuronqa.domain.case import Variant
from neuronqa.domain.identity import strict
from neuronqa.domain.ladder import RungState
from neuronqa.domain.outcome import AtFault, Check, Kind, Outcome, Rung, Stage, Standing
from neuronqa.errors import ExitCode

SCHEMA: Final = 1


@dataclass(frozen=True, kw_only=True)
class Place:
    """A line of source."""

    file: str
    line: int
    function: str = ""
    code: str = ""
    """The line itself."""
    progress: str = ""
    """`forward`, `backward`, ...: when it was reached."""

    def __str__(self) -> str:
        inside = f" in {self.function}" if self.function else ""
        return f"{self.file}:{self.line}{inside}"


@dataclass(frozen=True, kw_only=True)
class Blocker:
    """One failing check of one variant."""

    variant: Variant
    check: Check
    outcome: Outcome
    words: str
    op: str = ""
    place: Place | None = None
    message: str = ""
    """What was raised, if anything was."""
    traceback: str = ""
    """Of the model's own code."""

    @property
    def at_fault(self) -> AtFault:
        return self.outcome.rules.at_fault

    @property
    def rung(self) -> Rung:
        return self.check.rung


@dataclass(frozen=True, kw_only=True)
class Tax:
    """What compiling costs, of one compiled variant."""

    variant: Variant
    graphs: int
    recompiled: int
    cache_hits: int
    cache_misses: int
    first_step_s: float
    steady_step_s: float


@dataclass(frozen=True, kw_only=True)
class Checkup:
    """Everything a check of one model found."""

    name: str
    device: str
    profile: str
    policy: str
    own: bool
    """Is it a person's own code, or a transformers model?"""
    shrunk: str = ""
    """Why it is a shrunken twin that was checked; empty for the model as it is."""
    parameters: int = 0
    rungs: tuple[RungState, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    """Lowest rung first."""
    taxes: tuple[Tax, ...] = ()
    not_guarded: tuple[str, ...] = ()
    """Checks that nothing planted in this device can prove able to fail."""
    fit: Mapping[str, Any] = field(default_factory=dict)
    """Would the full-size model fit the device (modelled; `neuronqa.worker.sizing`)? Empty if unknown."""
    lost: str = ""
    """Why nothing could be judged at all."""
    seconds: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def green(self) -> bool:
        return bool(self.rungs) and all(state.standing is Standing.PASS for state in self.rungs)

    @property
    def first(self) -> Blocker | None:
        """The blocker on the lowest rung."""
        return self.blockers[0] if self.blockers else None

    @property
    def unfit(self) -> bool:
        """Could nothing be asked of the device, because the model itself does not build, run or train on the CPU?"""
        return self.first is not None and self.first.rung is Rung.BUILDS

    @property
    def exit_code(self) -> ExitCode:
        if self.green:
            return ExitCode.DONE
        if self.unfit and self.own:
            return ExitCode.BAD_INPUT
        told = [b for b in self.blockers if b.outcome.kind.stage not in (Stage.INCONCLUSIVE, Stage.INFRA)]
        return ExitCode.GATE_MISSED if told else ExitCode.CANNOT_TELL

    def __str__(self) -> str:
        from neuronqa.checkup.text import as_text

        return as_text(self)

    def to_json(self) -> dict[str, Any]:
        """Strict JSON with its schema's version."""
        plain = {
            "schema_version": SCHEMA,
            **asdict(self),
            "rungs": [
                {"rung": one.rung, "standing": one.standing, "outcome": str(one.outcome) if one.outcome else None}
                for one in self.rungs
            ],
            "blockers": [_plain(one) for one in self.blockers],
            "taxes": [{**asdict(one), "variant": str(one.variant)} for one in self.taxes],
            "green": self.green,
            "next": next_step(self),
        }
        return dict(strict(plain))


def _plain(one: Blocker) -> dict[str, Any]:
    return {
        **asdict(one),
        "variant": str(one.variant),
        "outcome": str(one.outcome),
        "rung": one.rung,
        "at_fault": one.at_fault,
    }


def next_step(checkup: Checkup) -> str:
    """One sentence: what to do now."""
    first = checkup.first
    if checkup.lost:
        return "Run `neuronqa doctor`; if it finds nothing, please report this."
    if first is None:
        return "Nothing to do: it stands on every rung that was asked for."
    advice = _ADVICE_BY_KIND.get(first.outcome.kind) or _ADVICE.get(first.outcome.kind.stage, "")
    return advice or "Read the first blocker above; the rungs above it may hold once it is gone."


_ADVICE_BY_KIND: Final[Mapping[Kind, str]] = {
    Kind.BUILD_MISSING_DEPENDENCY: "Install the missing package beside neuronqa, and check again.",
    Kind.BUILD_TIMEOUT: "The factory did not return in time: make it build less, or look at the line where it hung.",
    Kind.BUILD_OOM: "The factory used more memory than a case may: build a smaller model.",
    Kind.REFERENCE_NO_GRADIENT: "Give the factory a loss that depends on a parameter that requires grad.",
    Kind.REFERENCE_NON_FINITE: "The CPU gets NaN or Inf from the first steps: check inputs, loss and initialisation.",
    Kind.REFERENCE_TIMEOUT: "It takes too long on the CPU: use smaller inputs or a smaller model (--shrink).",
    Kind.REFERENCE_OOM: "It needs too much memory on the CPU: use smaller inputs or a smaller model (--shrink).",
    Kind.GRAPH_RECOMPILE: "Keep shapes, Python values and module state the same from step to step.",
    Kind.INCONCLUSIVE_NOT_OBSERVABLE: "This device cannot show it; it needs an adapter that can (neuronqa.devices).",
    Kind.INCONCLUSIVE_NO_POWER: "Rounding hides everything: use larger gradients, a scaled loss, or fp32.",
    Kind.INCONCLUSIVE_NO_BASELINE: "The loss does not fall on the CPU either: scale the loss or use inputs it can fit.",
    Kind.INCONCLUSIVE_FLAKY: "The device gives other numbers each time: seed what is random, or report it.",
}
_ADVICE: Final[Mapping[Stage, str]] = {
    Stage.BUILD: "Make the factory run by itself first: `python -c 'import FILE; FILE.FACTORY()'`.",
    Stage.INPUTS: "Return inputs that fit forward: a dict of keyword arguments, or a tuple of positional ones.",
    Stage.REFERENCE: "Make it train on the CPU first; the device was not asked.",
    Stage.LOAD: "The model cannot be moved to the device: look at tensors that are no parameters or buffers.",
    Stage.RUN: "Replace the operator or its arguments on that line, or report it to the device's maintainers.",
    Stage.COMPILE: "Run this part eagerly, or rewrite the line that the compiler does not take.",
    Stage.FALLBACK: "Replace the operator on that line, or write a kernel for it (an overlay).",
    Stage.GRAPH: "Rewrite that line so that dynamo can trace it (torch.where, torch.cond, no .item()).",
    Stage.STATE: "Keep weights tied and buffers registered when the model is moved.",
    Stage.PARITY: "The numbers are wrong: compare this operator with the CPU's on these shapes, and report it.",
    Stage.TRAIN: "It computes, but trains otherwise than on the CPU: look at the optimizer's and backward's operators.",
    Stage.INFRA: "The harness failed: run `neuronqa doctor` and check again.",
}
