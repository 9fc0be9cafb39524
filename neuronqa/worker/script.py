"""Scripts as reference and as device child: one rank of a function that trains, or talks to others, by itself.

Tensors are named `output/rank.R.NAME`. The reference's oracle is the script's own plain run, by itself in float64.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from neuronqa.checks.tensors import spread
from neuronqa.device.protocol import Adapter, Device
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.observation import TENSOR_FILE, Failure, Observation, Progress
from neuronqa.domain.workload import ScriptSpec, Workload
from neuronqa.worker.exchange import Arrays, write_arrays, write_observation
from neuronqa.worker.failures import MESSAGE_LIMIT, describe
from neuronqa.worker.oracle import float64
from neuronqa.worker.reference import DTYPES
from neuronqa.worker.training import Marks, seed_everything
from neuronqa.worker.trees import leaves, to_array
from neuronqa.workload.runnable import BuildFailure
from neuronqa.workload.scripts import Place, script

CPU = torch.device("cpu")


def record(request: Mapping[str, Any], emit: Callable[[Progress], None]) -> None:
    """Fill `request["out"]` with what the script gets on the CPU, and with its plain run in float64."""
    mark = Marks(emit)
    folder = Path(request["out"])
    observation = Observation(role="reference", reached=Progress.STARTED)
    arrays: Arrays = {}
    try:
        mark(Progress.BUILD)
        place, spec = _place(request, CPU), _spec(request)
        function = script(spec)
        mark(Progress.REFERENCE)
        same, dtypes = _call(function, place, spec)
        arrays, no_oracle = _beside(same, function, place, spec)
        observation = replace(observation, reached=Progress.DONE, no_oracle=no_oracle)
        observation = replace(observation, dtypes={f"same/{name}": dtype for name, dtype in dtypes.items()})
    except BuildFailure as error:
        failure = describe(error, mark.current, kind=error.kind.value, detail=error.detail)
        observation = replace(observation, reached=mark.current, failure=failure)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the script raises is data
        observation = replace(observation, reached=mark.current, failure=describe(error, mark.current))
    mark(Progress.REPORT)
    _write(folder, arrays)
    write_observation(folder, observation)


def observe(request: Mapping[str, Any], adapter: Callable[[str], Adapter], emit: Callable[[Progress], None]) -> None:
    """Fill `request["out"]` with what the script gets on the device."""
    mark = Marks(emit)
    folder = Path(request["out"])
    observation = Observation(role="device", reached=Progress.STARTED)
    arrays: Arrays = {}
    mark(Progress.LOAD)
    order = BuildOrder.from_json(request["order"])
    _place(request, CPU).announce()  # a device chooses its index by it
    device = adapter(order.device).load(order, request.get("last_op_file", ""))
    _look_again(device)
    recording = device.recording()
    try:
        spec, place = _spec(request), _place(request, device.torch_device)
        function = script(spec)
        mark(Progress.FORWARD)
        recording.start()
        try:
            arrays, dtypes = _call(function, place, spec)
        finally:
            recording.stop()
        device.synchronize()
        observation = replace(observation, reached=Progress.DONE, dtypes=dtypes)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever script and device raise is data
        failure: Failure = describe(error, mark.current, code=device.error_code)
        observation = replace(observation, reached=mark.current, failure=failure)
    mark(Progress.REPORT)
    _write(folder, arrays)
    observation = replace(observation, ops=recording.ops(), ops_complete=recording.complete)
    observation = replace(observation, memory_peak=device.memory_peak(), not_observable=device.not_observable)
    write_observation(folder, observation)


def _look_again(device: Device) -> None:
    """Libraries that were imported before the device was loaded remember that there was none."""
    offer: Callable[[], None] = getattr(device, "offer_names", lambda: None)
    offer()
    for name in ("accelerate.utils.imports", "transformers.utils.import_utils"):
        for known in vars(sys.modules.get(name, sys)).values():
            if hasattr(known, "cache_clear"):
                known.cache_clear()


def _write(folder: Path, arrays: Arrays) -> None:
    if arrays:  # a file of no tensors cannot be read back
        write_arrays(folder / TENSOR_FILE, arrays)


def _spec(request: Mapping[str, Any]) -> ScriptSpec:
    spec = Workload.from_json(request["workload"]).spec
    assert isinstance(spec, ScriptSpec)
    return spec


def _place(request: Mapping[str, Any], device: torch.device) -> Place:
    return Place(
        rank=int(request.get("rank", 0)),
        ranks=int(request.get("ranks", 1)),
        device=device,
        dtype=DTYPES[Variant.parse(request["variant"]).dtype],
        store=str(request.get("store", Path.cwd() / "store")),
    )


def _call(function: Callable[..., Any], place: Place, spec: ScriptSpec) -> tuple[Arrays, dict[str, str]]:
    """What a run returns, by name, and the dtypes. Leaves no process group behind."""
    place.announce()
    seed_everything()
    try:
        results = dict(leaves(function(place, **spec.arguments)))
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()
    named = {f"output/rank.{place.rank}.{name}": to_array(leaf) for name, leaf in results.items()}
    return {name: array for name, (array, _) in named.items()}, {name: dtype for name, (_, dtype) in named.items()}


def _beside(same: Arrays, function: Callable[..., Any], place: Place, spec: ScriptSpec) -> tuple[Arrays, str]:
    """The CPU's run, the plain one, and how far they are apart, under the names the judge reads."""
    arrays: Arrays = {f"same/{name}": array for name, array in same.items()}
    plain = replace(place, dtype=torch.float64, whole=True, exactly=partial(float64, place.dtype))
    try:
        oracle, _ = _call(function, plain, spec)
    except Exception as error:  # noqa: BLE001 - a plain run may need what the case does not
        return arrays, f"{type(error).__name__}: {error}"[:MESSAGE_LIMIT]
    for name, array in same.items():
        if name in oracle:
            arrays[f"oracle/{name}"] = oracle[name]
            if array.dtype.kind == "f":
                arrays[f"noise/{name}"], arrays[f"gain/{name}"] = spread(oracle[name], [np.asarray(array)])
    return arrays, ""
