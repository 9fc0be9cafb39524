"""Every error a person can meet: what happened, where, what to do, and an exit code.

A failure of a *case* is data (an outcome). Only faults of ours, of the input or of the machine travel as exceptions,
and all of them descend from :class:`NeuronQAError`, so that the command line can print one line and leave.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What `neuronqa` returns to the shell."""

    DONE = 0
    """Done, and the asked gate holds."""
    GATE_MISSED = 1
    """Done, and the asked gate does not hold."""
    USAGE = 2
    """The command line itself is wrong."""
    BAD_INPUT = 3
    """A file, catalog, policy or database that was named cannot be used."""
    ENVIRONMENT = 4
    """The machine lacks something: a compiler, a package, space, a permission."""
    CANNOT_TELL = 5
    """Done, but too little was run, or a control was missed: no answer either way."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C; what was done is kept."""


class NeuronQAError(Exception):
    """Base of the tree. `str(error)` is one line: what, where, what to do."""

    exit_code: ExitCode = ExitCode.ENVIRONMENT

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        advice = f" - {self.hint}" if self.hint else ""
        return " ".join(f"{self.what}{place}{advice}".split())


class UsageError(NeuronQAError):
    """Options that contradict each other or do not parse."""

    exit_code = ExitCode.USAGE


class BadInput(NeuronQAError):
    """Something the user named exists but cannot be used, or does not exist."""

    exit_code = ExitCode.BAD_INPUT


class EnvironmentFault(NeuronQAError):
    """The machine cannot do what was asked."""

    exit_code = ExitCode.ENVIRONMENT


class DatabaseAway(EnvironmentFault):
    """The database server cannot be reached, or ended the connection. What was not committed is not there."""


class NodeUnsound(EnvironmentFault):
    """A machine gets arithmetic wrong: nothing it computed may be believed, and it gets no more to compute."""

    def __reduce__(self) -> tuple[type[NodeUnsound], tuple[str]]:
        return type(self), (self.what,)


class InvariantBroken(NeuronQAError):
    """A sum that must hold does not: a fault of ours, and the result must not be believed."""

    exit_code = ExitCode.CANNOT_TELL
