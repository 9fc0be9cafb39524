from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
import torch

from neuronqa import extras


@pytest.fixture
def half_torchvision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A torchvision whose compiled half did not load: it registers the shapes of operators nobody declared."""
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text("from torchvision import _meta_registrations\n")
    (package / "_meta_registrations.py").write_text(
        "import torch\n"
        "\n"
        "@torch.library.impl('torchvision::nms', 'Meta')\n"
        "def nms(dets, scores, iou_threshold):\n"
        "    return dets.new_empty(0)\n"
    )
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("half_torchvision")
def test_torchvision_loads_beside_a_torch_its_compiled_half_is_not_for(monkeypatch: pytest.MonkeyPatch) -> None:
    importlib.import_module("torchvision")
    for name in ("torchvision", extras.SHAPES):
        monkeypatch.delitem(sys.modules, name)
    boxes = torch.empty(3, 4, device="meta")
    assert torch.ops.torchvision.nms(boxes, boxes[:, 0], 0.5).shape == (0,)


def test_operators_that_are_there_are_not_declared_again() -> None:
    extras.declare()
    extras.declare()
    extras.install()
    assert sum(isinstance(finder, extras.HalfTorchvision) for finder in sys.meta_path) == 1
