"""The compiler's modelled time: fitted on published first steps alone, and those figures are met."""

import numpy as np
import pytest
import torch
from torch import nn

from neuronqa.device.neuron import profile
from neuronqa.device.neuron.cost import first_step
from neuronqa.device.neuron.cost.compile_time import Constants, Work, compile_seconds, constants, published

HARDWARE = profile.load("trn2-sdk2.33").hardware


def test_the_constants_solve_the_published_runs_and_nothing_else() -> None:
    runs = published()
    table = [[run.work.graphs, run.work.operators, run.work.instructions] for run in runs]
    solved = np.linalg.solve(np.array(table, dtype=float), [run.first_step_s - run.step_s for run in runs])
    known = constants()
    assert [known.per_graph, known.per_operator, known.per_instruction] == pytest.approx(list(solved), rel=1e-3)


def test_every_constant_is_a_time_and_every_published_first_step_is_met() -> None:
    known = constants()
    assert min(known.per_graph, known.per_operator, known.per_instruction) > 0
    for run in published():
        assert run.estimate(known) == pytest.approx(run.first_step_s, rel=0.01), run.name
        assert run.source
        assert run.step_s <= run.after_edit(known) < run.first_step_s


def test_seconds_add_up() -> None:
    known = Constants(per_graph=2.0, per_operator=0.5, per_instruction=0.25)
    assert known.seconds(Work(graphs=1, operators=2, instructions=4)) == 4.0
    assert compile_seconds(10, 100) < compile_seconds(11, 100) < compile_seconds(11, 200)


class Stack(nn.Module):
    """Equal blocks between two products."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 256), nn.Linear(256, 8)
        self.blocks = nn.ModuleList(nn.Linear(256, 256) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> "Result":
        x = self.first(x)
        for block in self.blocks:
            x = block(x).relu()
        return Result(self.last(x).sum())


class Result:
    def __init__(self, loss: torch.Tensor) -> None:
        self.loss = loss


def stack(layers: int) -> first_step.Model:
    with torch.device("meta"):
        return Stack(layers), {"x": torch.empty(128, 8)}


def test_more_layers_of_one_shape_are_no_more_work_in_eager_mode_and_one_block_compiled() -> None:
    assert first_step.step(*stack(2), HARDWARE).eager == first_step.step(*stack(6), HARDWARE).eager
    (one, block), (six, _) = (first_step.compiled(stack, blocks, HARDWARE) for blocks in (1, 6))
    assert six.graphs - one.graphs == 2 * 5
    assert six.operators - one.operators == 5 * block.operators
    whole = first_step.step(*stack(6), HARDWARE).whole
    assert six.instructions == whole.instructions
