"""The work of the published runs, as it stands in the data, is what going through the models gives."""

import pytest

from neuronqa.device.neuron.cost.compile_time import PublishedRun, published
from neuronqa.worker.first_step import work_of


@pytest.mark.full
@pytest.mark.parametrize("run", published(), ids=lambda run: run.name)
def test_the_work_of_a_published_run_can_be_counted_anew(run: PublishedRun) -> None:
    assert work_of(run) == (run.work, run.block)
