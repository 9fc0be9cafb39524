"""What the built-in solver writes computes what the operator computes, and may be handed in."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch

from neuronqa.device.neuron import declared, overlay, profile
from neuronqa.fixqueue import solver
from neuronqa.fixqueue.child.capture import overload
from neuronqa.fixqueue.policy import objections
from neuronqa.fixqueue.solver import DEFINITIONS

INF, NAN = float("inf"), float("nan")
A = torch.tensor([[-4.0, -1.0, 0.0, 0.25, 1.0, 3.0, INF, -INF, NAN, 2.0]] * 3)
B = torch.tensor([[1.0, NAN, 0.0, -3.0, 7.0, 3.0, 1.0, -INF, NAN, INF]]).T.expand(10, 3).T
V, G = torch.randn(4, 3, 2, generator=torch.Generator().manual_seed(0)), torch.ones(4, 1, 1)
NORM = V.flatten(1).norm(dim=1).reshape(4, 1, 1)
CALLS = {
    "aten::minimum": (A, B),
    "aten::maximum": (A, B),
    "aten::fmin": (A, B),
    "aten::fmax": (A, B),
    "aten::hardtanh": (A, -0.5, 0.75),
    "aten::hardsigmoid": (A,),
    "aten::hardswish": (A,),
    "aten::leaky_relu": (A, 0.2),
    "aten::leaky_relu_backward": (B.clone(), A, 0.2, False),
    "aten::roll": (A, [3, -1], [1, 0]),
    "aten::mse_loss": (V, V.flip(0), 1),
    "aten::mse_loss_backward": (G[0, 0, 0], V, V.flip(0), 1),
    "aten::argmax": (A, 1, True),
    "aten::var_mean.correction": (V, [0, -1]),
    "aten::native_batch_norm": (V, G[:3, 0, 0], None, torch.zeros(3), torch.ones(3), True, 0.1, 1e-5),
    "aten::_weight_norm_interface": (V, G, 0),
    "aten::_weight_norm_interface_backward": (V.flip(0), V, G, NORM, 0),
}


@pytest.mark.parametrize("operator", sorted(DEFINITIONS))
def test_a_definition_computes_what_the_operator_does(operator: str, tmp_path: Path) -> None:
    text = solver.overlay(operator, DEFINITIONS[operator])
    assert objections(text, (operator,)) == ()
    path = tmp_path / "overlay.py"
    path.write_text(text)
    assert set(declared.kernels(str(path))) == {operator}
    (made,) = overlay.read(str(path))
    ours, theirs = copy.deepcopy(CALLS[operator]), copy.deepcopy(CALLS[operator])
    torch.testing.assert_close(made.function(*ours), overload(operator)(*theirs), equal_nan=True)
    torch.testing.assert_close(ours, theirs, equal_nan=True)


def test_every_definition_has_only_parts_of_the_default_profile() -> None:
    primitives = profile.load().primitive
    assert [one for one in DEFINITIONS if solver.proved(one, primitives) is None] == []


def test_the_solver_gives_up_where_a_part_is_missing() -> None:
    primitives = set(profile.load().primitive) - {"where"}
    assert solver.proved("aten::minimum", primitives) is None
    assert solver.proved("aten::hardswish", primitives) is not None
    assert solver.solve({"operator": "aten::_ctc_loss", "profile": "trn2-sdk2.33"}) is None
