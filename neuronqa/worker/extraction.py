"""What a script needs to do without us what a case does: its model, or the arguments of one operator in it.

A device child that leaves, in plain tensors and JSON, the built model with its inputs (a transformers model, where the
script's own way of making it gives the same loss, bit for bit) and the first call of the operator to blame.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves, tree_map

from neuronqa.device.dispatch import DispatchRecording
from neuronqa.device.outside import operator, tracing
from neuronqa.device.protocol import Adapter, Device, Recording
from neuronqa.domain.observation import Progress
from neuronqa.domain.repro import CALLED_FILE, CONFIG_FILE, LOSS_FILE, MODEL_FILE, OPERATOR_FILE
from neuronqa.domain.workload import HfSpec, Workload
from neuronqa.worker import device_child
from neuronqa.worker.device_child import Watching
from neuronqa.worker.reference import Build
from neuronqa.worker.training import Marks
from neuronqa.workload import loss as losses
from neuronqa.workload.model import without_dropout
from neuronqa.workload.runnable import Runnable

LARGEST: Final = 64 << 20
"""Bytes of arguments that are kept; an operator with more is shown in its model."""


def extract(
    request: Mapping[str, Any],
    build: Build,
    adapter: Callable[[str], Adapter],
    emit: Callable[[Progress], None],
) -> None:
    """Run what a device request asks for and leave what can be told of it in `request["out"]`.

    `request["operator"]`: `aten::sort.stable`, maybe empty; `request["dtype"]`: of one of its arguments, maybe empty.
    """
    folder = Path(request["out"])

    def exporting(workload: Workload) -> Runnable:
        runnable = build(workload)
        if isinstance(workload.spec, HfSpec):
            _export(runnable, folder)
        return runnable

    watching = _Taking(str(request["operator"]), str(request["dtype"]), folder / OPERATOR_FILE)
    device_child.observe(request, exporting, adapter, emit, watching)


class _Taking(Watching):
    repeats = False

    def __init__(self, name: str, dtype: str, file: Path) -> None:
        self._wanted = (name, dtype, file)

    def recording(self, device: Device, mark: Marks) -> Recording:
        del mark
        device.recording()  # A device may arm there what it was ordered to.
        return _Calls(*self._wanted)


class _Calls(DispatchRecording):
    """Keeps the arguments of the first call before it is made: the device may die of it."""

    def __init__(self, name: str, dtype: str, file: Path) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._name = name
        self._dtype = dtype
        self._file = file
        self._exact = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # `fmod.Scalar` comes by here and `fmod.Tensor`, which it is made of below, does not: any overload may be it.
        if not self._exact and not tracing() and func._schema.name == self._name.partition(".")[0]:
            self._keep(operator(func), (list(args), dict(kwargs)))
        return func(*args, **kwargs)

    def _keep(self, name: str, call: tuple[list[Any], dict[str, Any]]) -> None:
        tensors = [leaf for leaf in tree_leaves(call) if isinstance(leaf, Tensor)]
        dtypes = {str(one.dtype).removeprefix("torch.") for one in tensors}
        exact = name == self._name and (not self._dtype or self._dtype in dtypes)
        if (self._file.exists() and not exact) or sum(one.nbytes for one in tensors) > LARGEST:
            return
        if any(isinstance(leaf, torch.device) for leaf in tree_leaves(call)):
            return
        torch.save(tree_map(_on_host, call), self._file)
        self._file.with_name(CALLED_FILE).write_text(json.dumps(name), encoding="ascii")
        self._exact = exact


def _on_host(leaf: Any) -> Any:
    return leaf.detach().cpu().clone() if isinstance(leaf, Tensor) else leaf


def _export(runnable: Runnable, folder: Path) -> None:
    """Leave a transformers model, if a script that makes it from its parts computes the same."""
    model: Any = runnable.module
    own = runnable.loss is losses.own
    parts = {"state": model.state_dict(), "inputs": runnable.inputs}
    try:
        torch.save(parts, folder / MODEL_FILE)
        model.config.to_json_file(str(folder / CONFIG_FILE), use_diff=False)
        again = _remade(type(model), folder)
        same = torch.equal(_value(again, parts["inputs"], own), _value(model, parts["inputs"], own))
    except Exception:  # noqa: BLE001 - whatever cannot be exported is not
        same = False
    if same:
        (folder / LOSS_FILE).write_text(json.dumps("own" if own else ""), encoding="ascii")


def _remade(model_class: Any, folder: Path) -> nn.Module:
    """As the script makes it (:mod:`neuronqa.triage.scripts`)."""
    model: nn.Module = model_class(model_class.config_class.from_json_file(str(folder / CONFIG_FILE)))
    model.load_state_dict(torch.load(folder / MODEL_FILE, weights_only=True)["state"])
    without_dropout(model.train())
    return model


@torch.no_grad()
def _value(model: nn.Module, inputs: Mapping[str, Any], own: bool) -> Tensor:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        outputs = model(**inputs)
    if own:
        return losses.own(outputs)
    return torch.cat([tensor.double().flatten() for _, tensor in losses.tensors(outputs)])
