"""Names what stands under test, part by part. Imports no torch."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from neuronqa.device.neuron import build, declared, profile
from neuronqa.domain.build import BuildOrder, BuildVector
from neuronqa.domain.identity import content_hash

PACKAGE: Final = Path(__file__).parent
COMPILER: Final = (PACKAGE / "compiler", PACKAGE / "cost")


def build_vector(order: BuildOrder) -> BuildVector:
    """The vector of what `order` would load on this machine.

    Raises BadInput for an unknown profile or overlay, EnvironmentFault where torch or a compiler is missing.
    """
    chosen = profile.load(order.profile)
    passes = [file for folder in COMPILER for file in sorted(folder.rglob("*.py"))]
    surface = sorted(set(PACKAGE.rglob("*.py")) - set(passes))
    return BuildVector(
        adapter=order.device,
        profile=chosen.name,
        profile_sha256=chosen.sha256,
        shim=content_hash([build.recipe().key, build.hash_of(*surface)]),
        passes=build.hash_of(*passes),
        kernels=_kernels(order),
        versions={
            "torch": _version("torch"),
            "transformers": _version("transformers"),
            "python": platform.python_version(),
            "cpu": cpu_capability(),
        },
    )


def cpu_capability() -> str:
    """The instruction set PyTorch will choose its CPU kernels by: they decide the last bits of every result."""
    forced = os.environ.get("ATEN_CPU_CAPABILITY")
    if forced:
        return forced.lower()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return platform.machine()
    flags = set(next((line for line in text.splitlines() if line.startswith("flags")), "").split())
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"} <= flags:
        return "avx512"
    return "avx2" if {"avx2", "fma"} <= flags else platform.machine()


def _kernels(order: BuildOrder) -> dict[str, str]:
    """One hash per thing that stands in for a shipped kernel. Nothing here tells a fault from an overlay."""
    kernels = {op: name for path in order.overlays for op, name in declared.kernels(path).items()}
    if order.fault is not None:
        kernels[str(order.fault.get("op", "*"))] = content_hash(order.fault)
    for name in order.forced_cpu:
        kernels[name] = content_hash(["cpu", name])
    return kernels


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
