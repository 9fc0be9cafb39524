"""The roles that verification adds to those of a worker: `expect` never loads a device, `apply` never sees what is
expected of it.
"""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from neuronqa.device import registry
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.observation import Placement
from neuronqa.fixqueue.child.capture import Made, calls
from neuronqa.fixqueue.child.execution import Execution, writes
from neuronqa.fixqueue.child.layout import Arrays, NotPortable, Packer, host, tensors_of
from neuronqa.fixqueue.child.routes import along, others
from neuronqa.fixqueue.child.vary import transposed, varied
from neuronqa.fixqueue.kinds import Kind, Route
from neuronqa.worker.exchange import read_arrays, write_arrays

CALLS: Final = "calls.json"
INPUTS: Final = "inputs.safetensors"
EXPECTED: Final = "expected.safetensors"
ACTUAL: Final = "actual.safetensors"
SEEN: Final = "seen.json"
CURRENT: Final = "current"
"""Holds the number of the call being made."""


def expect(request: Mapping[str, Any]) -> None:
    """Draw calls of `request["ops"]` (operator -> dtypes) from `request["seed"]`, and say what the CPU makes of them:
    in the same precision and, beside it, in double precision. Those numbered in `request["fatal"]` are left out.
    """
    folder, ends = Path(request["out"]), time.monotonic() + float(request["seconds"])
    generator = random.Random(request["seed"])
    torch.manual_seed(generator.getrandbits(48))
    inputs: Arrays = {}
    expected: Arrays = {}
    made: list[dict[str, Any]] = []
    seen: list[dict[str, Any]] = []
    for number, (op, dtype, kind, one) in enumerate(_drawn(request["ops"], int(request["calls"]), generator)):
        if time.monotonic() > ends:
            break
        if number in request["fatal"]:
            continue
        (folder / CURRENT).write_text(str(number), "ascii")
        call, arrays = _packed(number, op, dtype, kind, one, generator)
        answer = _expected(call, arrays, expected, generator) if call else None
        if answer is not None:
            inputs |= arrays
            made.append(call)
            seen.append(answer)
    write_arrays(folder / INPUTS, inputs)
    write_arrays(folder / EXPECTED, expected)
    (folder / CALLS).write_text(json.dumps(made), "utf-8")
    (folder / SEEN).write_text(json.dumps(seen), "utf-8")


def _drawn(ops: Mapping[str, list[str]], count: int, generator: random.Random) -> Iterator[tuple[str, str, Kind, Made]]:
    """The plainest call of every operator and dtype first, so that little time is spread over all of them."""
    turns = [
        (op, dtype, varied(one, getattr(torch, dtype), generator))
        for op, dtypes in sorted(ops.items())
        for one in calls(op, generator)[:count]
        for dtype in dtypes
    ]
    while turns:
        left = []
        for op, dtype, variants in turns:
            try:
                kind, one = next(variants)
            except StopIteration:
                continue
            except Exception:  # noqa: BLE001  a variation that cannot be made ends this call's
                continue
            left.append((op, dtype, variants))
            yield op, dtype, kind, one
        turns = left


def _packed(
    number: int, op: str, dtype: str, kind: Kind, made: Made, generator: random.Random
) -> tuple[dict[str, Any], Arrays]:
    """The call in plain form; nothing for what has none."""
    if not writes(op):
        for tensor in made.tensors:
            tensor.requires_grad_(tensor.is_floating_point())
    arrays: Arrays = {}
    packer = Packer(arrays, f"{number}/")
    try:
        args = packer.pack(made.args)
        kwargs = {name: packer.pack(value) for name, value in made.kwargs.items()}
    except (NotPortable, RuntimeError):
        return {}, {}
    seed = generator.getrandbits(32)
    call = {"id": number, "op": op, "dtype": dtype, "kind": kind.value, "args": args, "kwargs": kwargs, "seed": seed}
    return call, arrays


def _expected(
    call: dict[str, Any], arrays: Arrays, expected: Arrays, generator: random.Random
) -> dict[str, Any] | None:
    """What the CPU makes of it, or None for a call that is not valid. Adds the cotangents to the call."""
    try:
        cpu = Execution(call, arrays, "cpu")
        seen = cpu.forward()
        shown = dict(seen.values)
        call["cotangents"] = _cotangents(call, cpu, arrays, generator)
    except Exception:  # noqa: BLE001  what the CPU cannot do is no question to the device
        return None
    gradients, exact = _differentiated(call, arrays, cpu)
    if not gradients:
        call["cotangents"] = []
        for said in tensors_of(call):
            said["grad"] = False
    number = call["id"]
    answer: dict[str, Any] = {"id": number, "values": {}, "gradients": {}, "aliases": seen.aliases}
    answer["changed"] = seen.changed
    for part, values in (("values", shown), ("gradients", gradients)):
        for name, value in values.items():
            answer[part][name] = kind_of(value)
            if isinstance(value, Tensor):
                expected[f"{number}/{Route.PLAIN}/{name}"] = host(value)
    found = {Route.DOUBLE: exact, **(others(call, arrays) if call["kind"] == Kind.NOT_FINITE else {})}
    for route, known in found.items():
        expected |= {f"{number}/{route}/{name}": value for name, value in known.items()}
    return answer


def _differentiated(call: Mapping[str, Any], arrays: Arrays, cpu: Execution) -> tuple[dict[str, Tensor | None], Arrays]:
    """Gradients on the CPU, and everything in double precision; what cannot be had is left out."""
    gradients: dict[str, Tensor | None] = {}
    try:
        if call["cotangents"]:
            gradients = cpu.backward()
    except Exception:  # noqa: BLE001  not differentiable
        gradients = {}
    known = call if gradients else {**call, "cotangents": []}
    return gradients, along(known, arrays, Route.DOUBLE)


def _cotangents(call: Mapping[str, Any], cpu: Execution, arrays: Arrays, generator: random.Random) -> list[Any]:
    roots = cpu.differentiable()
    seeded = torch.Generator().manual_seed(generator.getrandbits(48))
    drawn = [torch.randn(root.shape, generator=seeded).to(root.dtype) for root in roots]
    if call["kind"] == Kind.STRIDES:
        drawn = [transposed(one) for one in drawn]
    packed = Packer(arrays, f"{call['id']}/c").pack(drawn)
    cpu.take(drawn)
    return list(packed)


def kind_of(value: Any) -> Any:
    """What a result is, without its numbers: dtype and shape of a tensor, or the value itself."""
    if isinstance(value, Tensor):
        return {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape)}
    return value if value is None or isinstance(value, bool | int | float) else str(type(value).__name__)


def apply(request: Mapping[str, Any]) -> None:
    """Load what `request["order"]` says and make the calls in `request["given"]` on it. Without calls: only load."""
    folder = Path(request["out"])
    order = BuildOrder.from_json(request["order"])
    device = registry.adapter(order.device).load(order, request.get("last_op_file", ""))
    (folder / SEEN).write_text("[]", "utf-8")
    given = request.get("given", "")
    if not given:
        return
    made = json.loads((Path(given) / CALLS).read_text("utf-8"))
    arrays = read_arrays(Path(given) / INPUTS)
    actual: Arrays = {}
    seen = [_applied(device, call, arrays, actual, frozenset(request["ops"])) for call in made]
    write_arrays(folder / ACTUAL, actual)
    (folder / SEEN).write_text(json.dumps(seen), "utf-8")


def _applied(
    device: Any, call: Mapping[str, Any], arrays: Arrays, actual: Arrays, ops: frozenset[str]
) -> dict[str, Any]:
    number = call["id"]
    answer: dict[str, Any] = {"id": number, "values": {}, "gradients": {}, "error": "", "fell_back": []}
    recording = device.recording()
    began = time.process_time()
    try:
        run = Execution(call, arrays, device.torch_device.type)
        recording.start()
        try:
            seen = run.forward()
        finally:
            recording.stop()
        uses = recording.ops()
        answer["fell_back"] = sorted({use.op for use in uses if use.placement is Placement.CPU})
        answer["operators"] = sum(use.count for use in uses)
        answer |= {"aliases": seen.aliases, "changed": seen.changed}
        parts = {"values": dict(seen.values), "gradients": {}}
        if call["cotangents"]:
            recording.start()
            try:
                parts["gradients"] = run.backward()
            finally:
                recording.stop()
            uses = {use.op for use in recording.ops() if use.placement is Placement.CPU}
            answer["fell_back"] = sorted({*answer["fell_back"], *(uses & ops)})
        for part, values in parts.items():
            for name, value in values.items():
                answer[part][name] = kind_of(value)
                if isinstance(value, Tensor):
                    actual[f"{number}/{name}"] = host(value)
        if call["kind"] == Kind.PLAIN:
            answer["repeats"] = _repeats(call, arrays, device, actual)
    except Exception as error:  # noqa: BLE001  what a submission raises is data
        answer["error"] = type(error).__name__
    answer["seconds"] = time.process_time() - began
    return answer


def _repeats(call: Mapping[str, Any], arrays: Arrays, device: Any, actual: Arrays) -> bool:
    """Does the same call give the same bits, where nobody wants a gradient of it?"""
    bare = copy.deepcopy(dict(call))
    for said in tensors_of(bare):
        said["grad"] = False
    again = Execution(bare, arrays, device.torch_device.type).forward()
    return all(
        host(value).tobytes() == actual[f"{call['id']}/{name}"].tobytes()
        for name, value in again.values.items()
        if isinstance(value, Tensor)
    )
