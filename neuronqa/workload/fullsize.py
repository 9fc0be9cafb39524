"""A listed model in its full size, on the meta device: shapes without numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from neuronqa.domain.workload import HfSpec
from neuronqa.workload.complete import complete, instantiate
from neuronqa.workload.decode import decode
from neuronqa.workload.model import skeleton
from neuronqa.workload.planner import plan_config

TOKENS: Final = 1024
"""Batch 1 of 1024 tokens: what TorchNeuron's own model tests run."""


def full_size(config_text: str, dtype: torch.dtype = torch.bfloat16) -> PreTrainedModel | None:
    """The model a config.json describes, or None for a config that names none. Raises BuildFailure."""
    workload = plan_config(config_text).workload
    if workload is None or not isinstance(workload.spec, HfSpec):
        return None
    spec = workload.spec
    fields = complete(instantiate(spec.model_type, decode(config_text)), spec.module)
    model = skeleton(spec, fields)
    nn.Module.to(model, dtype)
    return model


def inputs_of(model: PreTrainedModel) -> Mapping[str, Tensor] | None:
    """One example of full size for the usual kinds of input; None for a model that takes another."""
    config = model.config
    text = config.get_text_config()
    dtype = model.dtype
    match model.main_input_name:
        case "input_ids":
            length = min(TOKENS, _number(text, "max_position_embeddings", TOKENS))
            inputs = {"input_ids": _meta((1, length), torch.long)}
            if text.is_encoder_decoder:
                inputs["decoder_input_ids"] = _meta((1, length), torch.long)
            return inputs
        case "pixel_values":
            size = getattr(getattr(config, "vision_config", config), "image_size", None)
            if size is None:
                return None
            height, width = (size, size) if isinstance(size, int) else tuple(size)
            channels = _number(config, "num_channels", 3)
            return {"pixel_values": _meta((1, channels, height, width), dtype)}
        case _:
            return None


def _meta(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def _number(config: Any, name: str, default: int) -> int:
    value = getattr(config, name, None)
    return value if isinstance(value, int) and value > 0 else default
