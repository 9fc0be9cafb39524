"""Which operators a profile supports, per dtype, in eager execution and inside a graph.

`of(profile)` asks a child that loads the device, because only PyTorch's own registry knows which operators there are
and which of them are composed of others. The caller needs no torch.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from neuronqa.device.neuron import build
from neuronqa.device.neuron.profile import Profile, Refusal, Where
from neuronqa.errors import EnvironmentFault

DTYPES: Final = (
    "float32",
    "bfloat16",
    "float16",
    "float64",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
    "float8_e4m3fn",
)

NATIVE: Final = "native"
_WITHOUT_KERNEL: Final = {1: "cpu: no kernel", 4: "cpu: hidden in the kernel", 6: "unsupported"}


@dataclass(frozen=True, slots=True)
class OperatorSupport:
    """Where one operator runs, by dtype: `native`, `cpu: ...`, `refused: ...` or `unsupported`."""

    op: str
    eager: Mapping[str, str]
    graph: Mapping[str, str]


def of(profile: Profile, name_or_path: str) -> tuple[OperatorSupport, ...]:
    """Every operator of the device under `profile`, sorted by name. Raises EnvironmentFault when it cannot be asked."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", __name__, str(build.ensure().path), name_or_path]
    child = subprocess.run(command, env=environment, capture_output=True, text=True)
    if child.returncode != 0:
        said = (child.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise EnvironmentFault(f"the device cannot be asked: {said}", hint="run `neuronqa doctor`")
    mechanisms: dict[str, int] = json.loads(child.stdout)
    return tuple(_support(profile, op, mechanism) for op, mechanism in sorted(mechanisms.items()))


def _support(profile: Profile, op: str, mechanism: int) -> OperatorSupport:
    eager = _by_dtype(profile, op, Where.EAGER) if mechanism == 0 else dict.fromkeys(DTYPES, _WITHOUT_KERNEL[mechanism])
    return OperatorSupport(op, eager, _by_dtype(profile, op, Where.GRAPH))


def _by_dtype(profile: Profile, op: str, where: Where) -> dict[str, str]:
    rules = [rule for rule in profile.refusals if where in rule.where and not rule.when and _concerns(rule, op)]
    return {dtype: _answer(rules, dtype, where) for dtype in DTYPES}


def _answer(rules: list[Refusal], dtype: str, where: Where) -> str:
    for rule in rules:
        if not rule.dtypes or dtype in rule.dtypes:
            reason = rule.code or rule.text
            return f"refused: {reason}" if where is Where.GRAPH else f"cpu: {rule.mechanism.value} ({reason})"
    return NATIVE


def _concerns(rule: Refusal, op: str) -> bool:
    """As the compiled part reads it: a name without overload means every overload."""
    full = op.removeprefix("aten::")
    return not rule.operators or full in rule.operators or full.partition(".")[0] in rule.operators


def _child(binary: str, name_or_path: str) -> dict[str, int]:
    from neuronqa.device.neuron.adapter import NeuronAdapter
    from neuronqa.domain.build import BuildOrder

    device = NeuronAdapter().load(BuildOrder(device="neuron", profile=name_or_path, binary=binary))
    listed: list[tuple[str, Any]] = device.shim.operators()
    return {op: int(mechanism) for op, mechanism in listed if op.startswith("aten::")}


if __name__ == "__main__":
    print(json.dumps(_child(*sys.argv[1:])))
