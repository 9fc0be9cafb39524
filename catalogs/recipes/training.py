"""Qwen3 and gpt-oss at shrunken size, trained a few steps by unmodified trainers. Returns the loss of every step.

Every step sees all rows, split over the ranks, so the loss of a step is the same however many ranks there are: the
plain run trains on all of them by itself. Needs transformers, and accelerate for two of the trainers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, GptOssConfig, PreTrainedConfig, Qwen3Config

STEPS = 6
ROWS = 4
LENGTH = 16
RATE = 0.003
SIZES: dict[str, Any] = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "head_dim": 16,
    "max_position_embeddings": 64,
    "initializer_range": 0.1,
    "use_cache": False,
}
CONFIGS: dict[str, Callable[[], PreTrainedConfig]] = {
    "qwen3": lambda: Qwen3Config(**SIZES),
    "gpt-oss": lambda: GptOssConfig(**SIZES, num_local_experts=4, num_experts_per_tok=2, sliding_window=8),
}


class SigmoidRouter(nn.Module):
    """Scores each chosen expert by itself, where gpt-oss weighs them against each other."""

    def __init__(self, router: Any) -> None:
        super().__init__()
        self.weight, self.bias, self.top_k = router.weight, router.bias, router.top_k

    def forward(self, hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits = nn.functional.linear(hidden_states, self.weight, self.bias)
        values, chosen = logits.topk(self.top_k, dim=-1)
        return logits, torch.sigmoid(values), chosen


def model_of(family: str, edit: str) -> Any:
    """The model on the CPU in float32, the same on every rank, with one part of its architecture exchanged."""
    torch.manual_seed(0)
    config = CONFIGS[family]()
    if edit == "activation":
        config.hidden_act = "gelu"
    model: Any = AutoModelForCausalLM.from_config(config)
    for layer in model.model.layers:
        if edit == "norm":
            layer.input_layernorm = nn.LayerNorm(config.hidden_size)
            layer.post_attention_layernorm = nn.LayerNorm(config.hidden_size)
        elif edit == "router":
            layer.mlp.router = SigmoidRouter(layer.mlp.router)
    return model


def tokens() -> Tensor:
    return torch.randint(0, SIZES["vocab_size"], (ROWS, LENGTH), generator=torch.Generator().manual_seed(1))


def train(place: Any, trainer: str, family: str, edit: str = "") -> dict[str, Tensor]:
    """The loss before each step, over all rows."""
    model = model_of(family, edit)
    if place.whole:
        with place.exactly():
            losses = _loop(model.to(place.dtype), tokens(), lambda loss: loss)
    else:
        losses = TRAINERS[trainer](place, model)
    return {"loss": torch.tensor(losses, dtype=torch.float64)}


def _loop(
    model: Any, rows: Tensor, mean: Callable[[Tensor], Tensor], back: Any = None, *, foreach: bool | None = None
) -> list[float]:
    """Plain PyTorch; `back` goes backward in the loss's place. Sharded and whole tensors do not mix in `foreach`."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, foreach=foreach)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = model(input_ids=rows, labels=rows).loss
        losses.append(float(mean(loss.detach())))
        (back or Tensor.backward)(loss)
        optimizer.step()
    return losses


def _mean(loss: Tensor) -> Tensor:
    dist.all_reduce(loss)
    return loss / dist.get_world_size()


def _mine(place: Any) -> Tensor:
    return tokens().chunk(place.ranks)[place.rank].to(place.device)


def data_parallel(place: Any, model: Any) -> list[float]:
    place.join()
    parallel = nn.parallel.DistributedDataParallel(model.to(place.device))
    return _loop(parallel, _mine(place), _mean)


def fully_sharded(place: Any, model: Any) -> list[float]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    place.join()
    mesh = init_device_mesh(place.device.type, (place.ranks,))
    model = model.to(place.device)
    for part in (*model.model.layers, model):
        fully_shard(part, mesh=mesh)
    return _loop(model, _mine(place), _mean)


def tensor_parallel(place: Any, model: Any) -> list[float]:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    place.join()
    mesh = init_device_mesh(place.device.type, (place.ranks,))
    model = model.to(place.device)
    columns, rows = ("q_proj", "k_proj", "v_proj"), ("o_proj",)
    plan: dict[str, Any] = {f"self_attn.{name}": ColwiseParallel() for name in columns}
    plan |= {f"self_attn.{name}": RowwiseParallel() for name in rows}
    plan |= {"mlp.gate_proj": ColwiseParallel(), "mlp.up_proj": ColwiseParallel(), "mlp.down_proj": RowwiseParallel()}
    for layer in model.model.layers:
        parallelize_module(layer, mesh, plan)
    return _loop(model, tokens().to(place.device), lambda loss: loss, foreach=False)


def accelerate(place: Any, model: Any) -> list[float]:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=place.device.type == "cpu")
    prepared = accelerator.prepare(model)
    rows = _mine(place)
    return _loop(prepared, rows, lambda loss: accelerator.reduce(loss, reduction="mean"), accelerator.backward)


def hf_trainer(place: Any, model: Any) -> list[float]:
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir="trainer",
        max_steps=STEPS,
        per_device_train_batch_size=ROWS // place.ranks,
        learning_rate=RATE,
        weight_decay=0.01,
        max_grad_norm=0.0,
        lr_scheduler_type="constant",
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=place.device.type == "cpu",
        dataloader_pin_memory=False,
    )
    dataset = [{"input_ids": row, "labels": row} for row in tokens()]
    trainer = Trainer(model=model, args=arguments, train_dataset=dataset)
    trainer.train()
    return [float(line["loss"]) for line in trainer.state.log_history if "loss" in line]


TRAINERS: dict[str, Callable[[Any, Any], list[float]]] = {
    "ddp": data_parallel,
    "fsdp2": fully_sharded,
    "tensor-parallel": tensor_parallel,
    "accelerate": accelerate,
    "hf-trainer": hf_trainer,
}
