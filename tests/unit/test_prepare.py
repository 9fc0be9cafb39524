"""A device is prepared in a child: what the child says is passed on, and how it may die is said in one line."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from neuronqa.device import prepare as prepare_module
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder, Prepared
from neuronqa.errors import BadInput, EnvironmentFault
from tests.builders import vector

ORDER = BuildOrder(device="neuron", profile="ideal", overlays=("a.py",))


def child(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(prepare_module, "COMMAND", (sys.executable, "-c", code))


def test_what_was_prepared_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"vector": asdict(vector(kernels={"aten::add": "k"})), "seconds": 1.5}
    child(
        monkeypatch,
        f"import json, sys; order = json.load(sys.stdin); print(json.dumps({{**{answer!r}, 'order': order}}))",
    )
    assert prepare(ORDER) == Prepared(order=ORDER, vector=vector(kernels={"aten::add": "k"}), seconds=1.5)


def test_files_are_named_from_the_root_for_processes_with_another_working_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "mine.toml"):
        Path(name).touch()
    answer = {"vector": asdict(vector()), "seconds": 0.0}
    child(
        monkeypatch,
        f"import json, sys; order = json.load(sys.stdin); print(json.dumps({{**{answer!r}, 'order': order}}))",
    )
    order = prepare(BuildOrder(device="neuron", profile="mine.toml", overlays=("a.py", "none.py"))).order
    assert order.profile == str(tmp_path / "mine.toml")
    assert order.overlays == (str(tmp_path / "a.py"), "none.py")


@pytest.mark.parametrize(("exit_code", "kind"), [(3, BadInput), (4, EnvironmentFault)])
def test_an_error_of_the_child_is_ours(
    monkeypatch: pytest.MonkeyPatch, exit_code: int, kind: type[BadInput | EnvironmentFault]
) -> None:
    said = json.dumps({"error": "no such profile", "where": "x.toml", "hint": "try ideal", "exit_code": exit_code})
    child(monkeypatch, f"print({said!r})")
    with pytest.raises(kind, match=r"no such profile \(x.toml\) - try ideal"):
        prepare(ORDER)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit('g++: command not found')", "g++: command not found"),
        ("import os; os.kill(os.getpid(), 9)", "it said nothing"),
        ("print('compiling ...')", "cannot be prepared"),
        ("raise ImportError('no torch here')", "ImportError: no torch here"),
    ],
)
def test_a_child_that_dies_is_an_environment_fault(monkeypatch: pytest.MonkeyPatch, code: str, words: str) -> None:
    child(monkeypatch, code)
    with pytest.raises(EnvironmentFault) as caught:
        prepare(ORDER)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_device_is_bad_input() -> None:
    with pytest.raises(BadInput, match="no device named 'abacus'"):
        prepare(BuildOrder(device="abacus", profile=""))
