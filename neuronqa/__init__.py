"""Honest model-coverage CI for PyTorch accelerators."""

__version__ = "0.1.0"
