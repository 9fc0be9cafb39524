"""Memory that changes between operators is noticed; memory that is written by one, or used again, is not."""

from __future__ import annotations

import torch
from torch import Tensor

from neuronqa.worker.continuity import Continuity


def broken(continuity: Continuity, tensor: Tensor) -> bool:
    return continuity.broken([tensor]) is not None


def test_a_tensor_that_is_as_it_was_left_is_whole() -> None:
    continuity, tensor = Continuity(), torch.arange(4.0)
    continuity.left([tensor])
    assert not broken(continuity, tensor)


def test_memory_that_something_wrote_over_is_noticed() -> None:
    continuity, tensor = Continuity(), torch.arange(4.0)
    continuity.left([tensor])
    tensor.untyped_storage()[0] = 7
    assert broken(continuity, tensor)


def test_what_an_operator_writes_is_no_breach() -> None:
    continuity, tensor = Continuity(), torch.arange(4.0)
    continuity.left([tensor])
    tensor.add_(1)
    assert not broken(continuity, tensor)
    continuity.left([tensor])
    assert not broken(continuity, tensor)


def test_memory_used_again_is_another_tensor() -> None:
    continuity = Continuity()
    for value in range(200):
        tensor = torch.full((1000,), float(value))
        assert not broken(continuity, tensor)
        continuity.left([tensor])
        del tensor


def test_it_does_not_matter_through_which_view_it_is_read() -> None:
    continuity, tensor = Continuity(), torch.arange(4.0)
    continuity.left([tensor])
    assert not broken(continuity, tensor[1:])
    tensor.untyped_storage()[0] = 7
    assert broken(continuity, tensor[1:].view(3, 1))
