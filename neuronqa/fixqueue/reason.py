"""Why a submission is not accepted: a closed list that teaches, and names no case that was kept back."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Reason(StrEnum):
    """What an agent is told, beside the stage."""

    PATH_OUTSIDE = "path-outside"
    PATCH_REFUSED = "patch-refused"
    NOT_PYTHON = "not-python"
    NO_KERNEL = "no-kernel"
    IMPORT_REFUSED = "import-refused"
    NAME_REFUSED = "name-refused"
    STATEMENT_REFUSED = "statement-refused"
    SURROUNDINGS = "surroundings"
    SWALLOWS_EXCEPTIONS = "swallows-exceptions"
    PATCHES_OTHERS = "patches-others"
    TOUCHES_CHECKER = "touches-checker"
    KEEPS_STATE = "keeps-state"
    UNRELATED_KERNEL = "unrelated-kernel"
    DOES_NOT_LOAD = "does-not-load"
    DOES_NOT_REPRODUCE = "does-not-reproduce"
    STILL_FAILS = "still-fails"
    FALLS_BACK = "falls-back"
    GRAPH_BREAKS = "graph-breaks"
    RECOMPILES = "recompiles"
    SKIPS = "skips"
    CRASHES = "crashes"
    HANGS = "hangs"
    OUT_OF_MEMORY = "out-of-memory"
    TOO_SLOW = "too-slow"
    BREAKS_ANOTHER = "breaks-another"
    RAISES = "raises"
    VALUES = "values"
    SHAPES = "shapes"
    DTYPES = "dtypes"
    EMPTY = "empty"
    STRIDES = "strides"
    BROADCASTING = "broadcasting"
    IN_PLACE = "in-place"
    CHANGES_INPUTS = "changes-inputs"
    ALIASES = "aliases"
    NOT_FINITE = "not-finite"
    RESULT_KIND = "result-kind"
    BACKWARD = "backward"
    BACKWARD_STRIDES = "backward-strides"
    BACKWARD_NOT_FINITE = "backward-not-finite"
    NOT_REPEATABLE = "not-repeatable"
    CONTROL_MISSED = "control-missed"
    PERSON_ASKED = "person-asked"
    NOT_ENFORCED = "not-enforced"
    NOT_COMPARABLE = "not-comparable"
    NO_TIME = "no-time"
    HARNESS = "harness"

    @property
    def text(self) -> str:
        """One sentence for whoever wrote the submission."""
        return _TEXTS[self]


_TEXTS: Final = {
    Reason.PATH_OUTSIDE: "it names a file outside the overlay folder, or one that is no Python file",
    Reason.PATCH_REFUSED: "the diff does not apply, or does more than change text",
    Reason.NOT_PYTHON: "it is not Python",
    Reason.NO_KERNEL: "it declares no @kernel function with a plain operator name",
    Reason.IMPORT_REFUSED: "it imports more than torch, math, functools, typing and the kernel decorator",
    Reason.NAME_REFUSED: "it uses a name that is neither its own nor a tensor operator",
    Reason.STATEMENT_REFUSED: "a kernel is made of functions and tensor operators; it has a statement of another kind",
    Reason.SURROUNDINGS: "it looks at its surroundings: environment, files, processes, network or what calls it",
    Reason.SWALLOWS_EXCEPTIONS: "it catches exceptions; an error of an operator has to be seen",
    Reason.PATCHES_OTHERS: "it changes something that is not its own",
    Reason.TOUCHES_CHECKER: "it reaches for what checks it",
    Reason.KEEPS_STATE: "it keeps something from one call to the next",
    Reason.UNRELATED_KERNEL: "it replaces an operator that the item is not about",
    Reason.DOES_NOT_LOAD: "the device does not load it",
    Reason.DOES_NOT_REPRODUCE: "the failure is not seen without it, so nothing can be shown",
    Reason.STILL_FAILS: "cases of the item still fail",
    Reason.FALLS_BACK: "it runs operators on the CPU: itself, one that is no primitive, or by copying",
    Reason.GRAPH_BREAKS: "a graph breaks that did not",
    Reason.RECOMPILES: "a graph is compiled more often than it was",
    Reason.SKIPS: "a check that was answered is no longer answered",
    Reason.CRASHES: "the process dies with it",
    Reason.HANGS: "it does not come to an end",
    Reason.OUT_OF_MEMORY: "it needs more memory than a case may use",
    Reason.TOO_SLOW: "it is far slower than what it replaces",
    Reason.BREAKS_ANOTHER: "what passed without it fails with it",
    Reason.RAISES: "it raises where the operator does not, or does not raise where the operator does",
    Reason.VALUES: "its numbers differ from the operator's",
    Reason.SHAPES: "wrong for other shapes or arguments than those shown",
    Reason.DTYPES: "wrong for another dtype that it says it supports",
    Reason.EMPTY: "wrong for empty tensors or those without a dimension",
    Reason.STRIDES: "wrong for inputs that are not contiguous",
    Reason.BROADCASTING: "wrong where inputs are broadcast",
    Reason.IN_PLACE: "wrong where it writes into its argument",
    Reason.CHANGES_INPUTS: "it writes into an argument that the operator leaves alone",
    Reason.ALIASES: "its result shares memory with an argument where the operator's does not",
    Reason.NOT_FINITE: "wrong for NaN or infinity",
    Reason.RESULT_KIND: "its result has another shape, dtype or structure than the operator's",
    Reason.BACKWARD: "backward wrong",
    Reason.BACKWARD_STRIDES: "backward wrong for inputs that are not contiguous",
    Reason.BACKWARD_NOT_FINITE: "backward wrong for NaN or infinity",
    Reason.NOT_REPEATABLE: "the same call gives different results",
    Reason.CONTROL_MISSED: "with it a planted fault is no longer found",
    Reason.PERSON_ASKED: "a person decides on it",
    Reason.NOT_ENFORCED: "this machine cannot shut a submission in, so it was not run",
    Reason.NOT_COMPARABLE: "too few calls of its operators can be compared with the CPU",
    Reason.NO_TIME: "the time for verification ran out",
    Reason.HARNESS: "the verification itself failed",
}
