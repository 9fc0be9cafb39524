"""From a workload to something that runs and trains."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch

from neuronqa.domain.identity import content_hash
from neuronqa.domain.outcome import Kind
from neuronqa.domain.workload import HfSpec, ModuleSpec, Workload
from neuronqa.workload.build import build
from neuronqa.workload.planner import plan_config
from neuronqa.workload.runnable import BuildFailure, Runnable


@pytest.fixture(autouse=True)
def nothing_learnt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NEURONQA_CACHE", str(tmp_path))


def workload(**fields: Any) -> Workload:
    found = plan_config(json.dumps(fields)).workload
    assert found is not None
    return found


def spec_with(**changes: Any) -> Workload:
    spec = workload(model_type="llama", architectures=["LlamaForCausalLM"]).spec
    assert isinstance(spec, HfSpec)
    return Workload(HfSpec(**{**vars(spec), "config": {**spec.config, **changes}}))


FAMILIES: dict[str, dict[str, Any]] = {
    "causal": {"model_type": "llama", "architectures": ["LlamaForCausalLM"]},
    "masked": {"model_type": "bert", "architectures": ["BertForMaskedLM"]},
    "sequence to sequence": {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"]},
    "experts": {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"]},
    "state space": {"model_type": "mamba", "architectures": ["MambaForCausalLM"]},
    "image classification": {"model_type": "vit", "architectures": ["ViTForImageClassification"]},
    "convolution": {"model_type": "resnet", "architectures": ["ResNetForImageClassification"]},
    "contrastive": {"model_type": "clip", "architectures": ["CLIPModel"]},
    "image and text": {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"]},
    "packed patches": {
        "model_type": "qwen2_5_vl",
        "architectures": ["Qwen2_5_VLForConditionalGeneration"],
        "text_config": {"hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4},
        "vision_config": {"out_hidden_size": 3584},
    },
    "speech": {"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"]},
    "waveform": {"model_type": "wav2vec2", "architectures": ["Wav2Vec2ForCTC"]},
    "time series": {"model_type": "patchtst", "architectures": ["PatchTSTForPrediction"]},
}


@pytest.mark.parametrize("fields", FAMILIES.values(), ids=FAMILIES)
def test_a_family_runs_and_its_loss_moves(fields: dict[str, Any]) -> None:
    runnable = build(workload(**fields))
    assert runnable.partial == ()
    first = _step(runnable)
    assert torch.isfinite(torch.tensor(first))
    assert first != _step(runnable)


def _step(runnable: Runnable) -> float:
    optimizer = torch.optim.SGD(runnable.module.parameters(), lr=0.01)
    loss = runnable.loss(runnable.module(**runnable.inputs))
    loss.backward()
    optimizer.step()
    return float(loss.detach())


def _fingerprint(runnable: Runnable) -> str:
    state = {name: value.detach().flatten().tolist() for name, value in runnable.module.state_dict().items()}
    inputs = {name: value.tolist() for name, value in runnable.inputs.items() if isinstance(value, torch.Tensor)}
    return content_hash([state, inputs])


def test_the_same_spec_gives_the_same_weights_and_inputs() -> None:
    made = workload(**FAMILIES["image and text"])
    torch.manual_seed(1)
    first = _fingerprint(build(made))
    torch.manual_seed(2)
    torch.rand(3)
    assert _fingerprint(build(made)) == first


def test_building_leaves_the_random_state_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    build(workload(**FAMILIES["masked"]))
    assert torch.equal(before, torch.get_rng_state())


def test_nothing_is_random_in_train_mode() -> None:
    runnable = build(workload(model_type="bert", architectures=["BertForMaskedLM"], hidden_dropout_prob=0.5))
    losses = set()
    for seed in range(3):
        torch.manual_seed(seed)
        losses.add(float(runnable.loss(runnable.module(**runnable.inputs)).detach()))
    assert runnable.module.training
    assert len(losses) == 1


def test_no_bias_norm_or_gate_hides_what_passes_it() -> None:
    runnable = build(workload(**FAMILIES["masked"]))
    constant = [name for name, p in runnable.module.named_parameters() if p.numel() > 1 and p.min() == p.max()]
    assert constant == []


def test_the_projection_gives_one_loss_in_every_precision() -> None:
    runnable = build(workload(model_type="llama", architectures=["LlamaModel"]))
    single = runnable.loss(runnable.module(**runnable.inputs))
    double = runnable.loss(runnable.module.double()(**runnable.inputs))
    assert double.dtype is torch.float64
    assert float(single.detach()) == pytest.approx(float(double.detach()), rel=1e-4)


def test_no_network_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", closed)
    monkeypatch.setattr(socket, "create_connection", closed)
    build(workload(**FAMILIES["image and text"]))


@pytest.mark.parametrize(
    ("changes", "kind", "detail"),
    [
        ({"num_hidden_layers": 0}, Kind.BUILD_VACUOUS, "no layers"),
        ({"num_hidden_layers": -2}, Kind.BUILD_VACUOUS, "no layers"),
        ({"rms_norm_eps": {"__float__": "NaN"}}, Kind.BUILD_ERROR, "NaN in the config"),
        ({"vocab_size": -1}, Kind.BUILD_ERROR, "vocab_size is not positive"),
        ({"pad_token_id": 512}, Kind.BUILD_ERROR, "token id beyond the vocabulary"),
        ({"vocab_size": 2**40}, Kind.BUILD_TOO_LARGE, "parameters after shrinking"),
    ],
)
def test_what_must_not_be_allocated_is_refused_by_name(changes: dict[str, Any], kind: Kind, detail: str) -> None:
    with pytest.raises(BuildFailure) as raised:
        build(spec_with(**changes))
    assert (raised.value.kind, raised.value.detail) == (kind, detail)


def test_a_class_that_is_not_there_is_a_build_failure() -> None:
    spec = workload(**FAMILIES["causal"]).spec
    assert isinstance(spec, HfSpec)
    with pytest.raises(BuildFailure) as raised:
        build(Workload(HfSpec(**{**vars(spec), "class_name": "LlamaForTelepathy"})))
    assert raised.value.kind is Kind.BUILD_ERROR


FACTORY = """
import torch
def linear(width):
    return torch.nn.Linear(width, 2), {"input": torch.ones(3, width)}
def empty():
    return torch.nn.Identity(), {"input": torch.ones(1)}
"""


def module_workload(folder: Path, factory: str, **arguments: Any) -> Workload:
    path = folder / "factories.py"
    path.write_text(FACTORY, encoding="utf-8")
    import hashlib

    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return Workload(ModuleSpec(source=str(path), source_sha256=digest, factory=factory, arguments=arguments))


def test_a_factory_makes_a_module_with_weights_of_its_seed(tmp_path: Path) -> None:
    made = module_workload(tmp_path, "linear", width=4)
    assert _fingerprint(build(made)) == _fingerprint(build(made))


@pytest.mark.parametrize(
    ("factory", "kind", "detail"),
    [("empty", Kind.BUILD_VACUOUS, "no parameters"), ("absent", Kind.BUILD_ERROR, "no such factory")],
)
def test_a_factory_that_makes_nothing_is_refused(tmp_path: Path, factory: str, kind: Kind, detail: str) -> None:
    with pytest.raises(BuildFailure) as raised:
        build(module_workload(tmp_path, factory))
    assert (raised.value.kind, raised.value.detail) == (kind, detail)


def test_a_file_that_changed_is_not_the_one_the_spec_names(tmp_path: Path) -> None:
    made = module_workload(tmp_path, "linear", width=4)
    (tmp_path / "factories.py").write_text("raise SystemExit", encoding="utf-8")
    with pytest.raises(BuildFailure, match="has changed"):
        build(made)


def test_what_one_build_learnt_spares_another_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    made = workload(**FAMILIES["image and text"])
    first = build(made)
    assert first.repairs
    monkeypatch.setenv("NEURONQA_CACHE", "/nonexistent")
    second = build(made, first.adaptation)
    assert second.repairs == first.repairs
    assert _fingerprint(second) == _fingerprint(build(made))
