"""What the CPU makes of NaN by all of its routes, down to a single number."""

from __future__ import annotations

import math

import pytest
import torch

from neuronqa.fixqueue.child.layout import Arrays, Packer
from neuronqa.fixqueue.child.routes import along, others
from neuronqa.fixqueue.kinds import Route

NAN = math.nan
SHAPES = [(), (1,), (3,), (5, 7)]


@pytest.mark.parametrize("shape", SHAPES)
def test_what_either_loop_of_the_cpu_makes_of_not_a_number_is_known_in_every_shape(
    shape: tuple[int, ...],
) -> None:
    arrays: Arrays = {}
    args = Packer(arrays, "0/").pack([torch.ones(shape), torch.full(shape, NAN)])
    call = {"id": 0, "op": "aten::hardswish_backward", "args": args, "kwargs": {}, "seed": 0, "cotangents": []}
    found = {Route.PLAIN: along(call, arrays, Route.PLAIN), **others(call, arrays)}
    said = {bool(torch.isnan(torch.from_numpy(one["r0"])).any()) for one in found.values()}
    assert said == {True, False}
