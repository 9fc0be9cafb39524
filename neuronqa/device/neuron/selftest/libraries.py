"""accelerate and transformers on the device, as their users write it: no code of ours in between.

Both remember at their first look whether `torch_neuronx` can be imported, so it has to be there before them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from neuronqa.device.neuron.selftest.behaviour import N, library_behaviour


@library_behaviour
def accelerate_prepares_models_for_the_device() -> None:
    from accelerate import Accelerator

    accelerator = Accelerator()
    assert accelerator.device.type == N
    model: Any = nn.Linear(2, 2)
    optimizer: Any = torch.optim.AdamW(model.parameters())
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.backward(model(torch.ones(1, 2, device=accelerator.device)).sum())
    optimizer.step()


def _tiny_llama() -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    return LlamaForCausalLM(config)


def _train(**options: Any) -> None:
    from transformers import Trainer, TrainingArguments

    rows = [{"input_ids": torch.arange(8), "labels": torch.arange(8)}] * 8
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=3,
            per_device_train_batch_size=2,
            logging_steps=1,
            report_to=[],
            save_strategy="no",
            disable_tqdm=True,
            **options,
        )
        model = _tiny_llama()
        trainer = Trainer(model=model, args=arguments, train_dataset=rows)
        assert trainer.args.device.type == N
        trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < losses[0]
    assert next(model.parameters()).device.type == N


@library_behaviour
def the_trainer_trains() -> None:
    _train()


@library_behaviour
def the_trainer_trains_in_bfloat16() -> None:
    _train(bf16=True)


@library_behaviour
def the_trainer_compiles() -> None:
    _train(torch_compile=True)
    assert torch.get_device_module(N).get_dynamo_metrics()


@library_behaviour
def a_pretrained_model_loads_onto_the_device_and_generates() -> None:
    from transformers import LlamaForCausalLM

    with tempfile.TemporaryDirectory() as folder:
        _tiny_llama().save_pretrained(Path(folder))
        model = LlamaForCausalLM.from_pretrained(folder, device_map=N)
    assert model.device.type == N
    tokens = model.generate(torch.ones(1, 3, dtype=torch.long, device=N), max_new_tokens=3, do_sample=False)
    assert tokens.shape == (1, 6)
