"""Imports PyTorch's operator tests once for all children, where they are installed."""

from contextlib import suppress

with suppress(ImportError):
    import torch.testing._internal.common_methods_invocations  # noqa: F401
