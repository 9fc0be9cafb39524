"""What the compiler says when it refuses."""

from __future__ import annotations


class NeuronCompileError(RuntimeError):
    """A graph the compiler refuses. The message carries the NCC code where there is one."""
