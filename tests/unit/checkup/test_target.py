"""What a person may name, and what each refusal says to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from neuronqa.checkup.target import resolve
from neuronqa.domain.workload import ModuleSpec
from neuronqa.errors import BadInput
from tests.integration.catalog.hub_server import FakeHub, Model, llama, refusing, row, serving

LLAMA = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2}
CUSTOM = {"model_type": "mine", "auto_map": {"AutoConfig": "code.MyConfig", "AutoModel": "code.MyModel"}}


def test_a_factory_is_named_by_its_file_and_content(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def make(): ...\n")
    target = resolve(f"{file}:make")
    (workload,) = target.workloads
    assert isinstance(workload.spec, ModuleSpec)
    assert (workload.spec.source, workload.spec.factory, target.own) == (str(file), "make", True)
    file.write_text("def make(): pass\n")
    assert resolve(f"{file}:make").workloads != target.workloads


def test_a_file_without_a_factory_says_which_it_has(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def _helper(): ...\ndef make(): ...\n")
    with pytest.raises(BadInput, match=f"name the factory.*{file}:make"):
        resolve(str(file))


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("no/such/place/at/all", "there is no 'no/such/place/at/all'"),
        ("missing.py:make", "cannot read: No such file"),
    ],
)
def test_what_does_not_exist_is_said_to(what: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        resolve(what)


def test_a_config_is_checked_at_its_size_and_then_shrunk(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    target = resolve(str(tmp_path / "config.json"))
    full, small = target.workloads
    assert full.to_json()["spec"]["config"]["hidden_size"] == 64
    assert small.to_json()["spec"]["config"]["hidden_size"] < 64
    assert not target.own


def test_a_folder_with_code_of_its_own_says_how_to_pass_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CUSTOM))
    with pytest.raises(BadInput, match=r"remote_code.*from code import MyModel.*neuronqa check .*/check\.py:make"):
        resolve(str(tmp_path))


def test_a_folder_without_a_config_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no config\.json.*FILE\.py:FACTORY"):
        resolve(str(tmp_path))


def test_a_model_of_the_hub_is_its_newest_config_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(FakeHub([Model(row(0, "org/mine"), llama(0))])) as hub:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
        target = resolve("org/mine")
        asked = [path for path in hub.requests if "mine" in path]
        assert asked == ["/org/mine/resolve/main/config.json"]
    assert [one.to_json()["spec"]["config"]["model_type"] for one in target.workloads] == ["llama", "llama"]


@pytest.mark.parametrize(("status", "code"), [(404, "RepoNotFound"), (403, "GatedRepo")])
def test_a_model_the_hub_refuses_is_said_to_be(status: int, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(FakeHub([Model(row(0, "org/mine"), refusing(status, **{"X-Error-Code": code}))])) as hub:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
        with pytest.raises(BadInput, match=r"the Hub gives no config: .*a config\.json on disk"):
            resolve("org/mine")
