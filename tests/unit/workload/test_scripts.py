"""A script's needs are looked at before it runs, and its place is announced as launchers do."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from neuronqa.domain.outcome import Kind
from neuronqa.domain.workload import ScriptSpec
from neuronqa.workload.runnable import BuildFailure
from neuronqa.workload.scripts import Place, script


def spec(path: Path, **changes: Any) -> ScriptSpec:
    path.write_text("def f(place, add):\n    return {'sum': place.rank + add}\n")
    given: dict[str, Any] = {
        "source": str(path),
        "source_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "function": "f",
    }
    return ScriptSpec(**{**given, **changes})


def place(rank: int = 1) -> Place:
    return Place(rank=rank, ranks=2, device=torch.device("cpu"), dtype=torch.float32, store="")


def test_a_script_is_called_with_its_place(tmp_path: Path) -> None:
    assert script(spec(tmp_path / "s.py"))(place(), add=2) == {"sum": 3}


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"requires": ("no-such-distribution",)}, Kind.BUILD_MISSING_DEPENDENCY),
        ({"function": "g"}, Kind.BUILD_ERROR),
        ({"source_sha256": "0" * 64}, Kind.BUILD_ERROR),
    ],
)
def test_what_a_script_lacks_is_named(tmp_path: Path, changes: dict[str, Any], kind: Kind) -> None:
    with pytest.raises(BuildFailure) as caught:
        script(spec(tmp_path / "s.py", **changes))
    assert caught.value.kind is kind


def test_a_missing_package_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(BuildFailure, match=r"pip install 'neuronqa\[recipes\]'"):
        script(spec(tmp_path / "s.py", requires=("no-such-distribution",)))


def test_a_place_is_announced_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "")
    place().announce()
    assert (os.environ["RANK"], os.environ["LOCAL_RANK"], os.environ["WORLD_SIZE"]) == ("1", "1", "2")
    assert os.environ["MASTER_ADDR"] == "127.0.0.1"
