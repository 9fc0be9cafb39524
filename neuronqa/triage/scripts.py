"""The text of reproduction scripts. Each runs by itself, and has a `make()` that NeuronQA can run and judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from neuronqa.domain.case import Dtype, Mode, Phase, Variant
from neuronqa.domain.repro import CONFIG_FILE, MODEL_FILE, OPERATOR_FILE
from neuronqa.errors import BadInput

SIMULATED: Final = "neuron"

_HEAD: Final = '''"""{outcome}

{what}, {variant} on {device}. Run: {command}
"""
from pathlib import Path

import torch
'''
_OPERATOR: Final = """from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

HERE = Path(__file__).parent


class Operator(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, args, kwargs):
        out = torch.ops.{operator}(*{args}, **kwargs)
        return [leaf.float() * self.scale for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]


def make():
    args, kwargs = torch.load(HERE / "{file}")
    return Operator(), {{"args": args, "kwargs": kwargs}}
"""
_MODEL: Final = """from torch.utils._pytree import tree_leaves, tree_map
from {module} import {name}

HERE = Path(__file__).parent


def make():
    kept = torch.load(HERE / "{file}")
    model = {name}({name}.config_class.from_json_file(HERE / "{config}")).train()
    model.load_state_dict(kept["state"])
    return model, kept["inputs"]{loss}
"""
_FACTORY: Final = """from torch.utils._pytree import tree_leaves, tree_map

from source import {factory}


def make():
    torch.manual_seed({seed})
    return {factory}({arguments})
"""
_WORKLOAD: Final = """import json

from neuronqa.domain.workload import Workload
from neuronqa.workload.build import build
from torch.utils._pytree import tree_leaves, tree_map


def make():
    made = build(Workload.from_json(json.loads(Path(__file__).with_name("workload.json").read_text())))
    return made.module, made.inputs, made.loss
"""
_TAIL: Final = """

if __name__ == "__main__":
    module, inputs, *_ = make()
    run = {run}
    for device, forward in (("cpu", module), ("{place}", run)):
        module.to(device{dtype})
        on = tree_map(lambda x: x.to(device{cast}) if isinstance(x, torch.Tensor) else x, inputs)
        out = {call}
        leaves = [x for x in tree_leaves(out) if isinstance(x, torch.Tensor) and x.is_floating_point()]
        loss = sum(x.float().sum() for x in leaves)
        print(device, [x.float().norm().item() for x in leaves][:8]){backward}
"""
_NAMED: Final = "forward(**on)"
_ANYHOW: Final = "forward(**on) if isinstance(on, dict) else forward(*on) if isinstance(on, tuple) else forward(on)"
_LISTED: Final = """    print("ran on the CPU:", torch.neuron.get_fallback_ops())
"""


def operator(head: str, tail: str, name: str, *, writes: bool) -> str:
    """One operator: `aten::sort.stable`, whether it writes its arguments."""
    path = _dotted(name.replace("::", "."))
    args = "[a.clone() if isinstance(a, torch.Tensor) else a for a in args]" if writes else "args"
    return head + _OPERATOR.format(operator=path, args=args, file=OPERATOR_FILE) + tail


def model(head: str, tail: str, module: str, name: str, *, own_loss: bool) -> str:
    """A transformers model from its config, weights and inputs."""
    loss = ", lambda out: out.loss.mean()" if own_loss else ""
    module, name = _dotted(module), _dotted(name)
    return head + _MODEL.format(module=module, name=name, file=MODEL_FILE, config=CONFIG_FILE, loss=loss) + tail


def factory(head: str, tail: str, name: str, arguments: Mapping[str, Any], seed: int) -> str:
    """A factory in `source.py` beside the script."""
    given = f"**{dict(arguments)!r}" if arguments else ""
    return head + _FACTORY.format(factory=_dotted(name), arguments=given, seed=int(seed)) + tail


def workload(head: str, tail: str) -> str:
    """The workload in `workload.json` beside the script, as NeuronQA builds it."""
    return head + _WORKLOAD + tail


def head(outcome: str, what: str, variant: Variant, device: str, profile: str) -> str:
    """The docstring and the first imports."""
    profile = _quoted(profile)
    command = f"NEURONQA_PROFILE={profile} python repro.py" if device == SIMULATED else "python repro.py"
    told = f"{device}, profile {profile}" if device == SIMULATED else device
    return _HEAD.format(outcome=_quoted(outcome), what=_quoted(what), variant=variant, device=told, command=command)


def tail(variant: Variant, device: str, *, named: bool = True) -> str:
    """What the script does by itself: the CPU's numbers, then the device's. `named`: inputs are keyword arguments."""
    place, _, backend = device.partition(":")
    compiled = variant.mode is Mode.COMPILE or bool(backend)
    narrow = variant.dtype is Dtype.BF16
    text = _TAIL.format(
        run=f'torch.compile(module, backend="{backend or place}")' if compiled else "module",
        place=place,
        dtype=", torch.bfloat16" if narrow else "",
        cast=", torch.bfloat16 if x.is_floating_point() else x.dtype" if narrow else "",
        call=_NAMED if named else _ANYHOW,
        backward="\n        loss.backward()" if variant.phase is Phase.TRAIN else "",
    )
    return text + (_LISTED if device == SIMULATED else "")


def _quoted(text: str) -> str:
    """Fit for a docstring, whatever it is."""
    return " ".join(text.replace("\\", "/").replace('"', "'").split())


def _dotted(name: str) -> str:
    """A name as it stands in code. Raises BadInput for what is none: it comes from a database."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise BadInput(f"not a Python name: {name!r:.80}", hint="the database was not written by neuronqa")
    return name
