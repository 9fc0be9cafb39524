"""What ranks leave is read as one: every tensor, everybody's dtypes, and the first failure speaks."""

from pathlib import Path

import numpy as np

from neuronqa.domain.observation import TENSOR_FILE, Failure, Observation, Progress
from neuronqa.worker.exchange import read_observation, read_tensors, write_arrays, write_observation


def leave(folder: Path, rank: int, failure: Failure | None = None) -> None:
    own = folder / f"rank.{rank}"
    own.mkdir()
    write_arrays(own / TENSOR_FILE, {f"output/rank.{rank}.x": np.full(2, rank)})
    reached = Progress.DONE if failure is None else Progress.FORWARD
    dtypes = {f"output/rank.{rank}.x": "int64"}
    write_observation(own, Observation(role="device", reached=reached, failure=failure, dtypes=dtypes))


def test_tensors_and_dtypes_of_all_ranks_are_read(tmp_path: Path) -> None:
    for rank in (0, 1):
        leave(tmp_path, rank)
    assert set(read_tensors(tmp_path)) == {"output/rank.0.x", "output/rank.1.x"}
    found = read_observation(tmp_path)
    assert found is not None
    assert set(found.dtypes) == {"output/rank.0.x", "output/rank.1.x"}


def test_the_first_rank_that_failed_speaks_for_all(tmp_path: Path) -> None:
    leave(tmp_path, 0)
    leave(tmp_path, 1, Failure(progress=Progress.FORWARD, error="ValueError", message="one"))
    leave(tmp_path, 2, Failure(progress=Progress.FORWARD, error="TypeError", message="two"))
    found = read_observation(tmp_path)
    assert found is not None
    assert found.failure is not None
    assert found.failure.message == "one"


def test_a_rank_that_left_nothing_leaves_the_case_without_an_observation(tmp_path: Path) -> None:
    leave(tmp_path, 0)
    (tmp_path / "rank.1").mkdir()
    assert read_observation(tmp_path) is None
