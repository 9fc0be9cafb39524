"""What another device made is compared with, if it started from the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from neuronqa.domain.case import Variant
from neuronqa.domain.outcome import Check
from neuronqa.domain.policy import Thresholds
from neuronqa.errors import BadInput
from neuronqa.worker import bundle as bundles
from neuronqa.worker.judge import judge_device
from tests.integration.roles.families import small
from tests.integration.roles.played import DONE, Stage

EAGER, COMPILED = Variant.parse("eager/fp32/train"), Variant.parse("compile/fp32/train")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path / "stage", "small", small)
    stage.record()
    stage.observe()
    return stage


def test_a_device_is_compared_with_what_was_kept_of_another(tmp_path: Path, stage: Stage) -> None:
    bundle = bundles.create(tmp_path / "bundle", "cuda", {"torch": "2"})
    bundles.keep(bundle, "w", EAGER, stage.reference, stage.device)
    second = bundles.find(bundle.folder, "w", COMPILED, stage.reference)
    assert second is not None
    found = judge_device(stage.reference, stage.device, DONE, EAGER, Thresholds(), second=second)
    said: Any = next(one for one in found if one.check is Check.PARITY).evidence["second_reference"]
    assert (said["device"], said["further"]) == ("cuda", 0)
    assert said["compared"] > 0


def test_another_workload_dtype_or_start_is_not_compared_with(tmp_path: Path, stage: Stage) -> None:
    bundle = bundles.create(tmp_path / "bundle", "cuda", {"torch": "2"})
    bundles.keep(bundle, "w", EAGER, stage.reference, stage.device)
    assert bundles.find(bundle.folder, "v", EAGER, stage.reference) is None
    assert bundles.find(bundle.folder, "w", Variant.parse("eager/bf16/train"), stage.reference) is None
    weights = stage.reference / "weights.safetensors"
    weights.write_bytes(weights.read_bytes() + b" ")
    assert bundles.find(bundle.folder, "w", EAGER, stage.reference) is None


def test_a_bundle_is_of_one_device(tmp_path: Path) -> None:
    bundles.create(tmp_path, "cuda", {"torch": "2"})
    assert bundles.create(tmp_path, "cuda", {"torch": "2"}).device == "cuda"
    with pytest.raises(BadInput, match="other versions"):
        bundles.create(tmp_path, "cpu", {"torch": "2"})


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"schema_version": 2, "device": "cuda", "versions": {}}'])
def test_what_is_no_bundle_is_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / bundles.MANIFEST).write_text(content)
    with pytest.raises(BadInput, match="no reference bundle"):
        bundles.load(tmp_path)


def test_the_manifest_says_what_made_it(tmp_path: Path) -> None:
    bundles.create(tmp_path, "cuda", {"torch": "2"})
    assert json.loads((tmp_path / bundles.MANIFEST).read_text())["device"] == "cuda"
