"""What can be said of a check, in one closed vocabulary: `stage:reason(detail)`.

A :class:`Kind` is one legal pair of stage and reason. What each kind means for the ladder, for blame, for reuse and for
retries is decided in :func:`rules`, a `match` without a wildcard: a new kind does not type-check until it is decided.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cache
from typing import Final, assert_never

DETAIL_LIMIT: Final = 200
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co"})


class Rung(StrEnum):
    """The ladder, lowest first. An entry is green when it stands on every rung its policy asks for."""

    REGISTERED = "registered"
    ELIGIBLE = "eligible"
    BUILDS = "builds"
    RUNS = "runs"
    NATIVE = "native"
    FULL_GRAPH = "full-graph"
    STATE = "state"
    PARITY = "parity"
    TRAINS = "trains"
    FITS = "fits"

    @property
    def height(self) -> int:
        return LADDER.index(self)


LADDER: Final = tuple(Rung)


class Check(StrEnum):
    """One question asked of an attempt's observations."""

    BUILD = "build"
    """Could the harness make the model from its config?"""
    INPUTS = "inputs"
    """Could the harness make complete inputs and a loss?"""
    REFERENCE = "reference"
    """Did the CPU reference run, and is it fit to compare with?"""
    LOAD = "load"
    """Did the model reach the device?"""
    RUN = "run"
    """Did forward, backward and optimizer finish on the device?"""
    COMPILE = "compile"
    """Did the compiler accept every graph, and did its code run?"""
    FALLBACK = "fallback"
    """Did every operator run on the device itself?"""
    GRAPH = "graph"
    """Was the model captured as one graph?"""
    STATE = "state"
    """Are ties, identities, dtypes and buffers what they were?"""
    PARITY = "parity"
    """Are the numbers right?"""
    TRAIN = "train"
    """Does it train as it does on the CPU?"""
    FIT = "fit"
    """Would the full-size model fit the device? (modelled)"""

    @property
    def rung(self) -> Rung:
        """The rung this check decides."""
        match self:
            case Check.BUILD | Check.INPUTS | Check.REFERENCE:
                return Rung.BUILDS
            case Check.LOAD | Check.RUN | Check.COMPILE:
                return Rung.RUNS
            case Check.FALLBACK:
                return Rung.NATIVE
            case Check.GRAPH:
                return Rung.FULL_GRAPH
            case Check.STATE:
                return Rung.STATE
            case Check.PARITY:
                return Rung.PARITY
            case Check.TRAIN:
                return Rung.TRAINS
            case Check.FIT:
                return Rung.FITS
            case _:
                assert_never(self)


class Standing(StrEnum):
    """What an outcome is worth on a rung. Everything that is not shown is `fail` or `not-run`, never `pass`."""

    PASS = "pass"
    FAIL = "fail"
    NOT_RUN = "not-run"


class AtFault(StrEnum):
    """Who has to act. What the CPU reference cannot do either is never the device's fault."""

    NOBODY = "nobody"
    DEVICE = "device"
    MODEL = "model"
    HARNESS = "harness"
    INFRA = "infra"


class Stage(StrEnum):
    """How far it got: the first half of an outcome."""

    LISTING = "listing"
    BUILD = "build"
    INPUTS = "inputs"
    REFERENCE = "reference"
    LOAD = "load"
    RUN = "run"
    COMPILE = "compile"
    FALLBACK = "fallback"
    GRAPH = "graph"
    STATE = "state"
    PARITY = "parity"
    TRAIN = "train"
    FIT = "fit"
    INCONCLUSIVE = "inconclusive"
    NOT_RUN = "not-run"
    INFRA = "infra"


class Kind(Enum):
    """Every legal pair of stage and reason."""

    LISTING_ELIGIBLE = "listing:eligible"
    LISTING_NO_CONFIG = "listing:no_config"
    LISTING_GATED = "listing:gated"
    LISTING_PRIVATE_OR_REMOVED = "listing:private_or_removed"
    LISTING_DISABLED = "listing:disabled"
    LISTING_NON_TRANSFORMERS = "listing:non_transformers"
    LISTING_ADAPTER = "listing:adapter"
    LISTING_GGUF_ONLY = "listing:gguf_only"
    LISTING_QUANTIZED = "listing:quantized"
    LISTING_REMOTE_CODE = "listing:remote_code"
    LISTING_UNKNOWN_MODEL_TYPE = "listing:unknown_model_type"
    LISTING_CONFIG_MALFORMED = "listing:config_malformed"
    LISTING_CONFIG_INVALID = "listing:config_invalid"
    LISTING_TOO_LARGE = "listing:too_large"
    LISTING_FETCH_ERROR = "listing:fetch_error"

    BUILD_PASS = "build:pass"
    BUILD_ERROR = "build:error"
    BUILD_VACUOUS = "build:vacuous"
    BUILD_TOO_LARGE = "build:too-large"
    BUILD_MISSING_DEPENDENCY = "build:missing-dependency"
    BUILD_TIMEOUT = "build:timeout"
    BUILD_OOM = "build:oom"
    BUILD_CRASH = "build:crash"

    INPUTS_PASS = "inputs:pass"
    INPUTS_ERROR = "inputs:error"
    INPUTS_PARTIAL = "inputs:partial"

    REFERENCE_PASS = "reference:pass"
    REFERENCE_ERROR = "reference:error"
    REFERENCE_NON_FINITE = "reference:non-finite"
    REFERENCE_NO_GRADIENT = "reference:no-gradient"
    REFERENCE_TIMEOUT = "reference:timeout"
    REFERENCE_OOM = "reference:oom"
    REFERENCE_CRASH = "reference:crash"

    LOAD_PASS = "load:pass"
    LOAD_ERROR = "load:error"
    LOAD_OOM = "load:oom"
    LOAD_CRASH = "load:crash"
    LOAD_TIMEOUT = "load:timeout"

    RUN_PASS = "run:pass"
    RUN_ERROR = "run:error"
    RUN_UNSUPPORTED_OP = "run:unsupported-op"
    RUN_DEVICE_ERROR = "run:device-error"
    RUN_CRASH = "run:crash"
    RUN_EXIT = "run:exit"
    RUN_TIMEOUT = "run:timeout"
    RUN_OOM = "run:oom"

    COMPILE_PASS = "compile:pass"
    COMPILE_ERROR = "compile:error"
    COMPILE_REFUSED = "compile:refused"
    COMPILE_NOT_COMPILED = "compile:not-compiled"
    COMPILE_TIMEOUT = "compile:timeout"
    COMPILE_OOM = "compile:oom"
    COMPILE_CRASH = "compile:crash"

    FALLBACK_PASS = "fallback:pass"
    FALLBACK_NO_KERNEL = "fallback:no-kernel"
    FALLBACK_ARGUMENTS = "fallback:arguments"
    FALLBACK_RECOVERED = "fallback:recovered"
    FALLBACK_HIDDEN = "fallback:hidden"
    FALLBACK_WHOLE_GRAPH = "fallback:whole-graph"

    GRAPH_PASS = "graph:pass"
    GRAPH_BREAK = "graph:break"
    GRAPH_RECOMPILE = "graph:recompile"

    STATE_PASS = "state:pass"
    STATE_UNTIED = "state:untied"
    STATE_REPLACED = "state:replaced"
    STATE_LEFT_BEHIND = "state:left-behind"
    STATE_DTYPE = "state:dtype"
    STATE_CHANGED = "state:changed"

    PARITY_PASS = "parity:pass"
    PARITY_NAN = "parity:nan"
    PARITY_INF = "parity:inf"
    PARITY_ZERO = "parity:zero"
    PARITY_SCALE = "parity:scale"
    PARITY_SIGN = "parity:sign"
    PARITY_OFFSET = "parity:offset"
    PARITY_SCATTER = "parity:scatter"
    PARITY_SHAPE = "parity:shape"
    PARITY_DTYPE = "parity:dtype"
    PARITY_MISSING = "parity:missing"
    PARITY_STRUCTURE = "parity:structure"

    TRAIN_PASS = "train:pass"
    TRAIN_DIVERGED = "train:diverged"
    TRAIN_PLATEAU = "train:plateau"
    TRAIN_NON_FINITE = "train:non-finite"
    TRAIN_GRADIENT_NORM = "train:gradient-norm"
    TRAIN_UPDATE_NORM = "train:update-norm"

    FIT_PASS = "fit:pass"
    FIT_MEMORY = "fit:memory"
    FIT_INSTRUCTIONS = "fit:instructions"
    FIT_COMPILE_TIME = "fit:compile-time"

    INCONCLUSIVE_NOT_OBSERVABLE = "inconclusive:not-observable"
    INCONCLUSIVE_NO_POWER = "inconclusive:no-power"
    INCONCLUSIVE_NO_BASELINE = "inconclusive:no-baseline"
    INCONCLUSIVE_FLAKY = "inconclusive:flaky"

    NOT_RUN_BUDGET = "not-run:budget"
    NOT_RUN_LIMIT = "not-run:limit"
    NOT_RUN_NARROWED = "not-run:narrowed"
    NOT_RUN_BLOCKED = "not-run:blocked"
    NOT_RUN_INTERRUPTED = "not-run:interrupted"
    NOT_RUN_QUARANTINED = "not-run:quarantined"

    INFRA_LOST = "infra:lost"
    INFRA_HARNESS = "infra:harness"

    @property
    def stage(self) -> Stage:
        return Stage(self.value.partition(":")[0])

    @property
    def reason(self) -> str:
        return self.value.partition(":")[2]

    @property
    def rules(self) -> Rules:
        """The kind's row of the outcome table."""
        return rules(self)


@dataclass(frozen=True, slots=True)
class Rules:
    """One row of the outcome table."""

    check: Check | None
    """The check that says it; None where any check may."""
    rung: Rung | None
    """The rung it decides; None: the rung of whichever check says it."""
    standing: Standing
    at_fault: AtFault
    reusable: bool
    """May a later sweep with the same reuse key take this outcome over?"""
    retryable: bool
    """Is a second look worth its cost? (Looks only label; the first attempt counts.)"""


@cache
def rules(kind: Kind) -> Rules:
    """Return the row of the outcome table for `kind`. Total: every kind is decided here and nowhere else."""
    match kind:
        case Kind.LISTING_ELIGIBLE:
            return Rules(None, Rung.ELIGIBLE, Standing.PASS, AtFault.NOBODY, True, False)
        case (
            Kind.LISTING_NO_CONFIG
            | Kind.LISTING_GATED
            | Kind.LISTING_PRIVATE_OR_REMOVED
            | Kind.LISTING_DISABLED
            | Kind.LISTING_NON_TRANSFORMERS
            | Kind.LISTING_ADAPTER
            | Kind.LISTING_GGUF_ONLY
            | Kind.LISTING_QUANTIZED
            | Kind.LISTING_REMOTE_CODE
            | Kind.LISTING_CONFIG_MALFORMED
            | Kind.LISTING_CONFIG_INVALID
        ):
            return Rules(None, Rung.ELIGIBLE, Standing.FAIL, AtFault.MODEL, True, False)
        case Kind.LISTING_UNKNOWN_MODEL_TYPE | Kind.LISTING_TOO_LARGE:
            return Rules(None, Rung.ELIGIBLE, Standing.FAIL, AtFault.HARNESS, True, False)
        case Kind.LISTING_FETCH_ERROR:
            return Rules(None, Rung.ELIGIBLE, Standing.FAIL, AtFault.INFRA, False, True)
        case Kind.BUILD_PASS:
            return _passed(Check.BUILD)
        case Kind.BUILD_ERROR | Kind.BUILD_TOO_LARGE | Kind.BUILD_MISSING_DEPENDENCY:
            return _failed(Check.BUILD, AtFault.HARNESS)
        case Kind.BUILD_VACUOUS:
            return _failed(Check.BUILD, AtFault.MODEL)
        case Kind.BUILD_TIMEOUT | Kind.BUILD_OOM:
            return _unsettled(Check.BUILD, AtFault.HARNESS)
        case Kind.BUILD_CRASH:
            return _crashed(Check.BUILD, AtFault.HARNESS)
        case Kind.INPUTS_PASS:
            return _passed(Check.INPUTS)
        case Kind.INPUTS_ERROR | Kind.INPUTS_PARTIAL:
            return _failed(Check.INPUTS, AtFault.HARNESS)
        case Kind.REFERENCE_PASS:
            return _passed(Check.REFERENCE)
        case Kind.REFERENCE_ERROR | Kind.REFERENCE_NON_FINITE | Kind.REFERENCE_NO_GRADIENT:
            return _failed(Check.REFERENCE, AtFault.MODEL)
        case Kind.REFERENCE_TIMEOUT | Kind.REFERENCE_OOM:
            return _unsettled(Check.REFERENCE, AtFault.HARNESS)
        case Kind.REFERENCE_CRASH:
            return _crashed(Check.REFERENCE, AtFault.MODEL)
        case Kind.LOAD_PASS:
            return _passed(Check.LOAD)
        case Kind.LOAD_ERROR:
            return _failed(Check.LOAD, AtFault.DEVICE)
        case Kind.LOAD_CRASH:
            return _crashed(Check.LOAD, AtFault.DEVICE)
        case Kind.LOAD_OOM | Kind.LOAD_TIMEOUT:
            return _unsettled(Check.LOAD, AtFault.DEVICE)
        case Kind.RUN_PASS:
            return _passed(Check.RUN)
        case Kind.RUN_ERROR | Kind.RUN_UNSUPPORTED_OP | Kind.RUN_DEVICE_ERROR:
            return _failed(Check.RUN, AtFault.DEVICE)
        case Kind.RUN_CRASH | Kind.RUN_EXIT:
            return _crashed(Check.RUN, AtFault.DEVICE)
        case Kind.RUN_TIMEOUT | Kind.RUN_OOM:
            return _unsettled(Check.RUN, AtFault.DEVICE)
        case Kind.COMPILE_PASS:
            return _passed(Check.COMPILE)
        case Kind.COMPILE_ERROR | Kind.COMPILE_REFUSED | Kind.COMPILE_NOT_COMPILED:
            return _failed(Check.COMPILE, AtFault.DEVICE)
        case Kind.COMPILE_CRASH:
            return _crashed(Check.COMPILE, AtFault.DEVICE)
        case Kind.COMPILE_TIMEOUT | Kind.COMPILE_OOM:
            return _unsettled(Check.COMPILE, AtFault.DEVICE)
        case Kind.FALLBACK_PASS:
            return _passed(Check.FALLBACK)
        case (
            Kind.FALLBACK_NO_KERNEL
            | Kind.FALLBACK_ARGUMENTS
            | Kind.FALLBACK_RECOVERED
            | Kind.FALLBACK_HIDDEN
            | Kind.FALLBACK_WHOLE_GRAPH
        ):
            return _failed(Check.FALLBACK, AtFault.DEVICE)
        case Kind.GRAPH_PASS:
            return _passed(Check.GRAPH)
        case Kind.GRAPH_BREAK | Kind.GRAPH_RECOMPILE:
            return _failed(Check.GRAPH, AtFault.MODEL)
        case Kind.STATE_PASS:
            return _passed(Check.STATE)
        case Kind.STATE_UNTIED | Kind.STATE_REPLACED | Kind.STATE_LEFT_BEHIND | Kind.STATE_DTYPE | Kind.STATE_CHANGED:
            return _failed(Check.STATE, AtFault.DEVICE)
        case Kind.PARITY_PASS:
            return _passed(Check.PARITY)
        case (
            Kind.PARITY_NAN
            | Kind.PARITY_INF
            | Kind.PARITY_ZERO
            | Kind.PARITY_SCALE
            | Kind.PARITY_SIGN
            | Kind.PARITY_OFFSET
            | Kind.PARITY_SCATTER
            | Kind.PARITY_SHAPE
            | Kind.PARITY_DTYPE
            | Kind.PARITY_MISSING
            | Kind.PARITY_STRUCTURE
        ):
            return _failed(Check.PARITY, AtFault.DEVICE)
        case Kind.TRAIN_PASS:
            return _passed(Check.TRAIN)
        case (
            Kind.TRAIN_DIVERGED
            | Kind.TRAIN_PLATEAU
            | Kind.TRAIN_NON_FINITE
            | Kind.TRAIN_GRADIENT_NORM
            | Kind.TRAIN_UPDATE_NORM
        ):
            return _failed(Check.TRAIN, AtFault.DEVICE)
        case Kind.FIT_PASS:
            return _passed(Check.FIT)
        case Kind.FIT_MEMORY | Kind.FIT_INSTRUCTIONS | Kind.FIT_COMPILE_TIME:
            return _failed(Check.FIT, AtFault.DEVICE)
        case Kind.INCONCLUSIVE_NOT_OBSERVABLE | Kind.INCONCLUSIVE_NO_POWER:
            return Rules(None, None, Standing.FAIL, AtFault.HARNESS, False, False)
        case Kind.INCONCLUSIVE_NO_BASELINE:
            return Rules(None, None, Standing.FAIL, AtFault.MODEL, False, False)
        case Kind.INCONCLUSIVE_FLAKY:
            return Rules(None, None, Standing.FAIL, AtFault.DEVICE, False, True)
        case (
            Kind.NOT_RUN_BUDGET
            | Kind.NOT_RUN_LIMIT
            | Kind.NOT_RUN_NARROWED
            | Kind.NOT_RUN_BLOCKED
            | Kind.NOT_RUN_INTERRUPTED
            | Kind.NOT_RUN_QUARANTINED
        ):
            return Rules(None, None, Standing.NOT_RUN, AtFault.NOBODY, False, True)
        case Kind.INFRA_LOST | Kind.INFRA_HARNESS:
            return Rules(None, None, Standing.FAIL, AtFault.INFRA, False, True)
        case _:
            assert_never(kind)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found: a kind, and a pattern that narrows it (a signal, an operator, an error code)."""

    kind: Kind
    detail: str = ""

    def __post_init__(self) -> None:
        if self.detail != clean_detail(self.detail):
            raise ValueError(f"not a clean detail: {self.detail!r}")

    def __str__(self) -> str:
        return f"{self.kind.value}({self.detail})" if self.detail else self.kind.value

    @classmethod
    def of(cls, kind: Kind, untrusted: str = "") -> Outcome:
        """Make an outcome of a detail that came from outside; it is cleaned and cut to size."""
        return cls(kind, clean_detail(untrusted))

    @classmethod
    def parse(cls, text: str) -> Outcome:
        """Read back what `str()` wrote. Raises ValueError for anything else."""
        name, opened, rest = text.partition("(")
        if opened and not (rest.endswith(")") and len(rest) > 1):
            raise ValueError(f"not an outcome: {text!r}")
        return cls(Kind(name), rest[:-1])

    @property
    def rules(self) -> Rules:
        return rules(self.kind)

    @property
    def standing(self) -> Standing:
        return self.rules.standing


def clean_detail(text: str) -> str:
    """One line of at most 200 characters: no control, format (bidi), surrogate or private characters.

    Unassigned ones stay: which they are depends on Python's version, and each must read what another wrote.
    """
    if not text:  # most outcomes are passes, which have nothing to add
        return text
    cut = text[: 4 * DETAIL_LIMIT]
    spaced = "".join(" " if ch.isspace() else ch for ch in cut)
    shown = "".join(ch for ch in spaced if unicodedata.category(ch) not in _HIDDEN)
    return " ".join(shown.split())[:DETAIL_LIMIT].strip()


def _passed(check: Check) -> Rules:
    return Rules(check, check.rung, Standing.PASS, AtFault.NOBODY, True, False)


def _failed(check: Check, at_fault: AtFault) -> Rules:
    return Rules(check, check.rung, Standing.FAIL, at_fault, True, False)


def _crashed(check: Check, at_fault: AtFault) -> Rules:
    return Rules(check, check.rung, Standing.FAIL, at_fault, True, True)


def _unsettled(check: Check, at_fault: AtFault) -> Rules:
    """Timeouts and memory limits depend on the machine, so they are never carried over to another sweep."""
    return Rules(check, check.rung, Standing.FAIL, at_fault, False, True)
