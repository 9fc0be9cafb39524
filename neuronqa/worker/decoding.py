"""Generation with a cache, teacher-forced: every run is fed the same tokens, so that one choice on which two runs
differ does not make all that follows incomparable. What each would have chosen is kept beside."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from neuronqa.domain.observation import Progress
from neuronqa.worker.training import Marks, Notes, Subject

TOKENS: Final = 4


class NoCache(Exception):
    """The model takes no tokens, or returns no cache to go on from: there is nothing to generate."""


def decode(subject: Subject, notes: Notes, mark: Marks) -> None:
    """Prefill, then :data:`TOKENS` single tokens; keeps the logits and the choice of each step.

    The tokens are the prompt's own, from its start: weights are random, so any text is as good as another.
    """
    mark(Progress.FORWARD)
    inputs = {name: value for name, value in subject.inputs.items() if "labels" not in name}
    decoder = "decoder_input_ids" if _encodes(subject, inputs) else "input_ids"
    prompt = inputs.get(decoder)
    if prompt is None and decoder == "decoder_input_ids":
        labels = subject.inputs.get("labels")
        prompt = labels.clamp(min=0) if isinstance(labels, Tensor) else None
        inputs[decoder] = prompt
    if not isinstance(prompt, Tensor) or prompt.dim() != 2:
        raise NoCache(f"the model takes no {decoder} to go on from")
    with torch.no_grad():
        outputs = subject.forward(**{**inputs, "use_cache": True})
        _keep(outputs, 0, notes)
        for step in range(TOKENS):
            token = prompt[:, step % prompt.shape[1]][:, None]
            outputs = subject.forward(**_next(inputs, decoder, token, outputs))
            _keep(outputs, step + 1, notes)


def _encodes(subject: Subject, inputs: dict[str, Any]) -> bool:
    config = getattr(subject.module, "config", None)
    return bool(getattr(config, "is_encoder_decoder", False)) or "decoder_input_ids" in inputs


def _next(inputs: dict[str, Any], decoder: str, token: Tensor, outputs: Any) -> dict[str, Any]:
    """Inputs of a single step: the token, the cache, and a mask that covers both."""
    step = {decoder: token, "past_key_values": _cache(outputs), "use_cache": True}
    if decoder == "decoder_input_ids":
        encoded = getattr(outputs, "encoder_last_hidden_state", None)
        kept = {name: inputs[name] for name in ("attention_mask",) if name in inputs}
        return {**step, **kept, "encoder_outputs": (encoded,)}
    mask = inputs.get("attention_mask")
    if isinstance(mask, Tensor) and mask.dim() == 2:
        inputs["attention_mask"] = torch.cat([mask, mask.new_ones(mask.shape[0], 1)], dim=-1)
        step["attention_mask"] = inputs["attention_mask"]
    return step


def _cache(outputs: Any) -> Any:
    cache = getattr(outputs, "past_key_values", None)
    if cache is None:
        raise NoCache("the model returns no cache to go on from")
    return cache


def _keep(outputs: Any, step: int, notes: Notes) -> None:
    logits = getattr(outputs, "logits", None)
    if not isinstance(logits, Tensor):
        raise NoCache("the model returns no logits to choose from")
    with notes.aside():
        last = logits[:, -1].detach()
        notes.keep(f"output/step.{step}", last)
        best = last.double().cpu().topk(2, dim=-1)
        notes.keep(f"token/{step}", best.indices[:, 0])
        notes.keep(f"margin/{step}", best.values[:, 0] - best.values[:, 1])
