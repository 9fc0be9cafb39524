"""The version of the rules that make workloads: a part of every workload's hash."""

from __future__ import annotations

from typing import Final

BUILDER: Final = "2"
"""Raised whenever the same config would give another spec, other weights or other inputs."""
