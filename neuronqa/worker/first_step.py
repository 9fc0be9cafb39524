"""`python -m neuronqa.worker.first_step`: published first steps beside what the model of the compiler makes of them.

Goes through every published model on the meta device, so that the numbers in the data can be had again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import torch
import transformers

from neuronqa.device.neuron import profile
from neuronqa.device.neuron.cost import first_step
from neuronqa.device.neuron.cost.compile_time import PublishedRun, Work, constants, published


def work_of(run: PublishedRun) -> tuple[Work, Work]:
    """What the compiler is given for `run`, gone through anew: all of it, and one block."""

    def model_of(layers: int) -> first_step.Model:
        return _model(run, layers)

    hardware = profile.load(run.profile).hardware
    if run.mode == "eager":
        return first_step.eager(model_of, hardware), Work(0, 0, 0)
    return first_step.compiled(model_of, run.distinct_blocks, hardware)


def _model(run: PublishedRun, layers: int) -> first_step.Model:
    """Experts as grouped products, and a mask that is not looked into: both can be gone through without numbers."""
    kind = str(run.config["model_type"])
    config = transformers.AutoConfig.for_model(**run.config, num_hidden_layers=layers)
    if "num_local_experts" in run.config:
        config._experts_implementation = "grouped_mm"
    config._attn_implementation = "eager" if kind == "gpt_oss" else "sdpa"
    made: Any = transformers.AutoModelForCausalLM
    with torch.device("meta"):
        model = made.from_config(config, dtype=torch.bfloat16)
    tokens = first_step.meta((1, run.tokens))
    inputs: Mapping[str, Any] = {"input_ids": tokens, "labels": tokens, "use_cache": False}
    if kind != "gpt_oss":
        inputs = {**inputs, "attention_mask": {"full_attention": None}}
    return model.train(), inputs


def main() -> None:
    known = constants()
    for run in published():
        estimate = run.estimate(known)
        print(
            json.dumps(
                {
                    "run": run.name,
                    "published_s": run.first_step_s,
                    "modelled_s": round(estimate, 1),
                    "error": round(estimate / run.first_step_s - 1, 4),
                    "warm_s": round(run.step_s, 1),
                    "one_layer_edit_s": round(run.after_edit(known), 1),
                    "work": [asdict(one) for one in work_of(run)],
                }
            )
        )


if __name__ == "__main__":
    main()
