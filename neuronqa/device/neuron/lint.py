"""What is wrong with a profile or an overlay before anything runs on it."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from neuronqa.device.neuron import build, declared, profile
from neuronqa.errors import BadInput

ALLOWED_IMPORTS: Final = ("__future__", "collections", "functools", "math", "neuronqa", "torch", "typing")
LEAVES_THE_DEVICE: Final = ("cpu", "item", "numpy", "tolist", "data_ptr", "untyped_storage", "__dlpack__")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and the line it is on (0 for the file as a whole)."""

    line: int
    what: str


def lint(path: str, profile_name: str = profile.DEFAULT) -> tuple[Problem, ...]:
    """Look at a profile (`.toml`) or an overlay (`.py`). Raises BadInput for any other kind of file."""
    match Path(path).suffix:
        case ".toml":
            return tuple(_profile_problems(path))
        case ".py":
            return tuple(sorted(_overlay_problems(path, profile_name), key=lambda problem: problem.line))
        case _:
            raise BadInput("only profiles (.toml) and overlays (.py) can be linted", where=path)


def _profile_problems(path: str) -> Iterator[Problem]:
    try:
        profile.load(path)
    except BadInput as error:
        yield Problem(0, str(error))
        return
    yield from (Problem(0, said) for said in _ask_child(["profile", path]))


def _overlay_problems(path: str, profile_name: str) -> Iterator[Problem]:
    try:
        declared.kernels(path)
    except BadInput as error:
        yield Problem(0, str(error))
        return
    for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
        yield from _node_problems(node)
    yield from (Problem(0, said) for said in _ask_child(["overlay", path, profile_name]))


def _node_problems(node: ast.AST) -> Iterator[Problem]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        for name in names:
            if name.partition(".")[0] not in ALLOWED_IMPORTS:
                yield Problem(node.lineno, f"imports {name}: a kernel is made of tensor operators only")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LEAVES_THE_DEVICE:
        yield Problem(node.lineno, f".{node.func.attr}() leaves the device, which counts as a fallback")


def _ask_child(arguments: list[str]) -> list[str]:
    """What only a process with the device can tell; it may die of what it is shown."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", __name__, str(build.ensure().path), *arguments]
    child = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    if child.returncode != 0:
        last = (child.stderr.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
        return [f"loading it fails: {last}"]
    said: list[str] = json.loads(child.stdout)
    return said


def _child(binary: str, kind: str, path: str, profile_name: str = "") -> list[str]:
    from neuronqa.device.neuron.adapter import NeuronAdapter
    from neuronqa.domain.build import BuildOrder

    overlays = (path,) if kind == "overlay" else ()
    chosen = profile_name or path
    try:
        NeuronAdapter().load(BuildOrder(device="neuron", profile=chosen, binary=binary, overlays=overlays))
    except BadInput as error:
        return [str(error)]
    return _unknown_operators(path) if kind == "profile" else []


def _unknown_operators(path: str) -> list[str]:
    """Names in rules and lists of primitives that no operator of this PyTorch has: a rule for nothing helps nobody.

    The lists of native operators are as their source has them and may name what this version lacks.
    """
    import torch
    import torch._higher_order_ops

    names = {name.partition("::")[2] for name in torch._C._dispatch_get_all_op_names()}
    known = names | {name.partition(".")[0] for name in names} | set(torch._ops._higher_order_ops)
    loaded = profile.load(path)
    named = {op: f"the rule {rule.name!r}" for rule in loaded.refusals for op in rule.operators}
    named |= dict.fromkeys(loaded.primitive, "a list of primitives")
    return [f"{where} names {op!r}, which is no operator" for op, where in sorted(named.items()) if op not in known]


if __name__ == "__main__":
    print(json.dumps(_child(*sys.argv[1:])))
