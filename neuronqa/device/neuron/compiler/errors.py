"""What the compiler says when it refuses."""

from __future__ import annotations


class NeuronCompileError(RuntimeError):
    """A graph the compiler refuses. The message carries the NCC code where there is one.

    `cause` is what the root cause is called: an operator and what is wrong with it, without shapes or names.
    """

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause


class NeuronCompileTimeout(NeuronCompileError, TimeoutError):
    """A graph the compiler would take longer over than it is given. The time is modelled."""
