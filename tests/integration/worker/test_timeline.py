"""A case's timeline, from real children: every lane, the model's own lines, and what fell back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from neuronqa.cli.profile import app
from neuronqa.db.engine import open_engine
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.worker.tracing import trace_of
from neuronqa.workload.planner import plan_config

CONFIG = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 100,
}


@pytest.mark.parametrize("variant", ["eager/fp32/train", pytest.param("compile/bf16/infer", marks=pytest.mark.full)])
def test_a_case_has_a_timeline(variant: str) -> None:
    workload = plan_config(json.dumps(CONFIG)).workload
    assert workload is not None
    order = prepare(BuildOrder(device="neuron", profile="trn2-sdk2.33")).order
    made = trace_of(workload, Variant.parse(variant), order)
    slices = [item for item in made["traceEvents"] if item["ph"] == "X"]
    operators = {item["name"].partition(".")[0] for item in slices}
    assert {"aten::addmm", "aten::native_layer_norm", "aten::embedding"} <= operators
    assert made["otherData"]["modelled"]["mfu"] > 0
    assert made["otherData"]["modelled"]["memory_peak"] > 0
    assert "failure" not in made["otherData"]
    if variant.startswith("eager"):
        sources = {item["args"]["source"].partition(":")[0] for item in slices}
        assert "modeling_bert.py" in sources
        backward = [item for item in slices if item["cat"] == "backward"]
        assert any(item["args"]["source"].startswith("modeling_bert.py") for item in backward)
        flows = [item for item in made["traceEvents"] if item["ph"] == "s"]
        assert len(flows) > len(slices) / 2


def test_an_unknown_case_is_one_line(tmp_path: Path) -> None:
    database = str(tmp_path / "x.db")
    open_engine(database, create=True).dispose()
    ended = CliRunner().invoke(app, ["feed", "-o", str(tmp_path / "t.json"), "--db", database])
    assert "no case is named 'feed'" in str(ended.exception)
