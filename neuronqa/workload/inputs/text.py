"""Arguments made of token ids and of what goes with them."""

from __future__ import annotations

from typing import Final

import torch
from transformers import PreTrainedConfig

from neuronqa.workload.inputs.scene import Form, Scene

CLASSES: Final = 4
CLASS_TOKENS: Final = 6


def input_ids(scene: Scene) -> list[Form]:
    codebooks = scene.count("num_codebooks", default=0)
    plain = Form("ids", lambda: scene.ids("input_ids", scene.batch, scene.tokens))
    frames = Form("frames", lambda: scene.ids("input_ids", scene.batch, scene.tokens, codebooks))
    return [plain, frames] if codebooks else [plain]


def decoder_input_ids(scene: Scene) -> list[Form]:
    decoder = scene.read("decoder", "decoder_config", "text_config")
    size = scene.read("vocab_size", of=decoder) if isinstance(decoder, PreTrainedConfig) else None
    return [Form("ids", lambda: scene.ids("decoder_input_ids", scene.batch, scene.tokens, vocabulary=size))]


def ones(scene: Scene) -> list[Form]:
    return [Form("ones", lambda: torch.ones(scene.batch, scene.tokens, dtype=torch.long))]


def zeros(scene: Scene) -> list[Form]:
    return [Form("zeros", lambda: torch.zeros(scene.batch, scene.tokens, dtype=torch.long))]


def positions(scene: Scene) -> list[Form]:
    return [Form("range", lambda: torch.arange(scene.tokens).repeat(scene.batch, 1))]


def embeddings(scene: Scene) -> list[Form]:
    other = scene.count("encoder_hidden_size", "cross_attention_hidden_size", default=scene.hidden)
    return [
        Form("hidden", lambda: scene.noise("embeddings", scene.batch, scene.tokens, scene.hidden)),
        Form("cross", lambda: scene.noise("embeddings", scene.batch, scene.tokens, other)),
    ]


def boxes(scene: Scene) -> list[Form]:
    """Left, top, right, bottom of each token on a page of 1000 by 1000."""

    def make() -> torch.Tensor:
        corner = scene.integers("bbox", 400, scene.batch, scene.tokens, 2)
        return torch.cat([corner, corner + 100], -1)

    return [Form("boxes", make)]


def class_names(scene: Scene) -> list[Form]:
    return [Form("ids", lambda: scene.ids("classes", CLASSES, CLASS_TOKENS))]


def class_mask(scene: Scene) -> list[Form]:
    del scene
    return [Form("ones", lambda: torch.ones(CLASSES, CLASS_TOKENS, dtype=torch.long))]


def class_structure(scene: Scene) -> list[Form]:
    return [Form("even", lambda: torch.full((scene.batch,), CLASSES // scene.batch))]


def task_names(scene: Scene) -> list[Form]:
    return [Form("ids", lambda: scene.ids("tasks", scene.batch, CLASS_TOKENS))]


def task_mask(scene: Scene) -> list[Form]:
    return [Form("ones", lambda: torch.ones(scene.batch, CLASS_TOKENS, dtype=torch.long))]


def task_inputs(scene: Scene) -> list[Form]:
    length = scene.count("task_seq_len", default=77)
    return [Form("ids", lambda: scene.ids("task_inputs", scene.batch, length))]


def text_inputs(scene: Scene) -> list[Form]:
    length = scene.count("max_seq_len", default=77)
    return [Form("ids", lambda: scene.ids("text_inputs", scene.batch, length))]


def qformer_ids(scene: Scene) -> list[Form]:
    qformer = scene.read("qformer_config")
    size = scene.count("vocab_size", of=qformer, default=scene.vocabulary) if qformer is not None else None
    return [Form("ids", lambda: scene.ids("qformer_input_ids", scene.batch, scene.tokens, vocabulary=size))]
