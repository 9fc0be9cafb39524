"""Recipes of text families."""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor

from neuronqa.workload.architectures import Architecture, Task
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.recipes.recipe import Recipe, Shrunk, defaults, fixed
from neuronqa.workload.tree import is_count

SEPARATORS: Final = (4, 8, 12)
ENTITIES: Final = 3
MENTION: Final = 2
PATCH_BYTES: Final = 4


def _default_language(shrunk: Shrunk) -> None:
    languages = shrunk.full.get("languages") or ["en_XX"]
    shrunk.small["default_language"] = shrunk.small.get("default_language") or languages[0]


def _global_attention(scene: Scene, given: dict[str, Any]) -> None:
    """The first token attends to all; questions end at the separators."""
    ids = given["input_ids"]
    separator = scene.read("sep_token_id")
    if scene.task in (Task.QUESTION_ANSWERING, Task.MULTIPLE_CHOICE) and isinstance(separator, int):
        ids[ids == separator] = 3 if separator != 3 else 4
        for place in SEPARATORS:
            ids[..., place] = separator
        return
    mask = torch.zeros_like(ids)
    mask[:, 0] = 1
    given["global_attention_mask"] = mask


def _segments(scene: Scene, given: dict[str, Any]) -> None:
    """Two segments, so that relations between and within them both occur."""
    del scene
    segments = torch.zeros_like(given["input_ids"])
    segments[..., segments.shape[-1] // 2 :] = 1
    given["token_type_ids"] = segments


def _entities(scene: Scene, given: dict[str, Any]) -> None:
    """Entities, each named by a few tokens."""
    batch = given["input_ids"].shape[:-1]
    size = scene.count("entity_vocab_size", default=16)
    ids = 1 + scene.integers("entity_ids", size - 1, *batch, ENTITIES)
    places = torch.full((*batch, ENTITIES, MENTION), -1)
    places[..., :MENTION] = torch.arange(ENTITIES * MENTION).view(ENTITIES, MENTION)
    given |= {"entity_ids": ids, "entity_position_ids": places, "entity_attention_mask": torch.ones_like(ids)}


def _shapes_and_sounds(scene: Scene, given: dict[str, Any]) -> None:
    shape = given["input_ids"].shape
    given["input_shape_ids"] = scene.integers("shapes", scene.count("shape_vocab_size", default=8), *shape)
    given["input_pronunciation_ids"] = scene.integers(
        "sounds", scene.count("pronunciation_vocab_size", default=8), *shape
    )


def _questions(scene: Scene, given: dict[str, Any]) -> None:
    if "question_positions" in scene.parameters:
        given["question_positions"] = torch.full((scene.batch, 1), 2)
    if scene.task is Task.QUESTION_ANSWERING:
        given.pop("question_positions", None)
        given["input_ids"][:, 2] = scene.count("question_token_id", default=104)


def _whole_groups(shrunk: Shrunk) -> None:
    """Groups of state-space heads divide the heads."""
    small = shrunk.small
    heads = next((small[n] for n in _STATE_HEADS if is_count(small.get(n))), 0)
    for name in ("n_groups", "mamba_n_groups", "mamba_ngroups", "ssm_n_groups"):
        groups = small.get(name)
        if is_count(groups) and heads and groups > 1 and heads % groups:
            small[name] = 2 if heads % 2 == 0 else 1


_STATE_HEADS: Final = ("mamba_n_heads", "n_mamba_heads", "mamba_num_heads", "num_heads")


def _mamba2(shrunk: Shrunk) -> None:
    """Heads times their dimension is the expanded width."""
    small = shrunk.small
    inner = small["hidden_size"] * small.get("expand", 2)
    small["num_heads"] = max(2, inner // small["head_dim"])
    small["head_dim"] = inner // small["num_heads"]
    _whole_groups(shrunk)


def _three_stacks(shrunk: Shrunk) -> None:
    """One layer each of input, recurrence and output."""
    small, types = shrunk.small, [kind for kind in dict.fromkeys(shrunk.full["layer_types"]) if kind != "mlp"]
    small |= {"num_hidden_layers": 3, "n_input_layers": 1, "n_recurrent_layers": 1, "n_output_layers": 1}
    small["layer_types"] = [types[place % len(types)] for place in range(3)]


def _shared_blocks(shrunk: Shrunk) -> None:
    """Two layers share the transformer block, so that there is something to tie."""
    small = shrunk.small
    kinds = ["linear_attention", "hybrid", "hybrid"]
    small |= {"layers_block_type": kinds, "num_hidden_layers": len(kinds)}
    if "hybrid_layer_ids" in small:
        small["hybrid_layer_ids"] = [1, 2]
    if "attention_hidden_size" in small:
        small["attention_hidden_size"] = 2 * small["hidden_size"]
        small["attention_head_dim"] = 2 * small["hidden_size"] // small["num_attention_heads"]


def _zamba2(shrunk: Shrunk) -> None:
    _shared_blocks(shrunk)
    small = shrunk.small
    small["n_mamba_heads"] = 4
    small["mamba_headdim"] = small["hidden_size"] * small.get("mamba_expand", 2) // small["n_mamba_heads"]
    small["mamba_ngroups"] = 1


def _hashes(shrunk: Shrunk) -> None:
    shrunk.small["encoder_hash_byte_group_vocab"] = min(shrunk.small["encoder_hash_byte_group_vocab"], 512)


def _patches_of_bytes(scene: Scene, given: dict[str, Any]) -> None:
    """The first byte alone, as upstream's patcher has it, then patches of several: one has no other to attend to."""
    patches = -(-scene.tokens // PATCH_BYTES)
    given["patch_lengths"] = torch.tensor([[1] + [PATCH_BYTES] * patches] * scene.batch)


def _narrow_layers(shrunk: Shrunk) -> None:
    """Feed-forward layers of eight times the width, one by one: twice as wide is as good."""
    small = shrunk.small
    if isinstance(small.get("intermediate_size"), list):
        small["intermediate_size"] = [2 * small["hidden_size"]] * len(small["intermediate_size"])


def _reformer(shrunk: Shrunk) -> None:
    """Positions without axes: axial ones must multiply to the very length of the text."""
    shrunk.small.update({"axial_pos_embds": False, "attn_layers": ["local", "lsh"]})


def _reformer_example(architecture: Architecture) -> dict[str, Any]:
    return defaults("reformer") | {"is_decoder": "LMHead" in architecture.class_name, "axial_pos_embds": False}


def _t5gemma_example(architecture: Architecture) -> dict[str, Any]:
    fields = defaults("t5gemma")
    alone = "Encoder" in architecture.class_name
    return fields | ({"is_encoder_decoder": False} if alone else {})


def _cross(scene: Scene, given: dict[str, Any]) -> None:
    """A decoder used alone still has its cross attention: states of an encoder to attend to."""
    if scene.task is not Task.CAUSAL_LM or not _has_ids(given):
        return
    width = scene.count("cross_attention_hidden_size", default=scene.hidden)
    states = scene.noise("encoder", scene.batch, scene.tokens, width)
    if "encoder_hidden_states" in scene.parameters:
        given["encoder_hidden_states"] = states
    elif "encoder_outputs" in scene.parameters and scene.class_name.endswith("CausalLM"):
        given["encoder_outputs"] = (states,)


def _has_ids(given: dict[str, Any]) -> bool:
    return isinstance(given.get("input_ids"), Tensor)


def _of_all_places(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    """The decoder has an output for each of its places, whatever the text's length."""
    del given
    if scene.task is not Task.MASKED_LM:
        return None
    return {"labels": scene.ids("labels", scene.batch, scene.count("max_position_embeddings", default=16))}


def _text_and_regions(scene: Scene, given: dict[str, Any]) -> dict[str, Any] | None:
    if scene.task is not Task.PRETRAINING:
        return None
    length = scene.tokens + given["visual_embeds"].shape[1]
    return {"labels": scene.ids("labels", scene.batch, length), "sentence_image_labels": torch.tensor([0, 1])}


RECIPES: Final[tuple[Recipe, ...]] = (
    Recipe(
        families=("xmod",),
        reason="adapters are chosen by a language that the config leaves open",
        shrink=_default_language,
    ),
    Recipe(
        families=("longformer", "led"),
        reason="global attention has weights of its own, and questions are told by separators",
        inputs=_global_attention,
    ),
    Recipe(families=("xlnet", "funnel"), reason="segments are told relative to each other", inputs=_segments),
    Recipe(families=("luke",), reason="entities are an input of their own", inputs=_entities),
    Recipe(families=("roc_bert",), reason="characters come with shape and pronunciation", inputs=_shapes_and_sounds),
    Recipe(families=("splinter",), reason="spans are asked for at question tokens", inputs=_questions),
    Recipe(
        families=("mamba2",), reason="heads, head dimension and groups are tied to the expanded width", shrink=_mamba2
    ),
    Recipe(
        families=("nemotron_h", "bamba", "granitemoehybrid", "falcon_h1"),
        reason="groups of state-space heads divide them",
        shrink=_whole_groups,
    ),
    Recipe(
        families=("perceiver",),
        reason="the decoder has as many outputs as places",
        shrink=fixed(max_position_embeddings=SEPARATORS[-1] + 4),
        labels=_of_all_places,
    ),
    Recipe(
        families=("visual_bert",),
        reason="labels are of text and regions",
        adaptation=Adaptation(extra=frozenset({"attention_mask", "visual_attention_mask"})),
        labels=_text_and_regions,
    ),
    Recipe(families=("dory",), reason="three stacks add up to the depth", shrink=_three_stacks),
    Recipe(families=("zamba",), reason="tied blocks need two layers", shrink=_shared_blocks),
    Recipe(families=("zamba2",), reason="tied blocks need two layers, and widths are multiples", shrink=_zamba2),
    Recipe(
        families=("blt",),
        reason="its hash tables are vocabularies by another name, and bytes come in patches",
        version=2,
        shrink=_hashes,
        inputs=_patches_of_bytes,
    ),
    Recipe(
        families=("reformer",),
        reason="axial positions fix the length of a text",
        shrink=_reformer,
        example=_reformer_example,
    ),
    Recipe(
        families=("gemma3n_text",),
        reason="all kinds of layers of so many widths are too large together",
        version=2,
        shrink=_narrow_layers,
    ),
    Recipe(families=("t5gemma",), reason="its encoder alone wants a config that says so", example=_t5gemma_example),
    Recipe(
        families=(
            "bart",
            "bigbird_pegasus",
            "blenderbot",
            "blenderbot-small",
            "marian",
            "mbart",
            "mvp",
            "pegasus",
            "plbart",
            "prophetnet",
            "m2m_100",
            "nllb-moe",
            "pegasus_x",
            "whisper",
            "trocr",
            "pp_formulanet_text",
        ),
        reason="the decoder alone keeps its cross attention",
        inputs=_cross,
    ),
    Recipe(
        families=("esm",),
        reason="the class leaves the vocabulary open",
        completion={"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    ),
    Recipe(
        families=("hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl_text", "ministral"),
        reason="the class leaves the head dimension open",
        completion={"head_dim": 128},
    ),
    Recipe(
        families=("nemotron",),
        reason="the class leaves key-value heads open",
        completion={"num_key_value_heads": 8},
    ),
    Recipe(
        families=("dots1",),
        reason="the class leaves experts open",
        completion={
            "n_routed_experts": 128,
            "n_shared_experts": 2,
            "num_experts_per_tok": 6,
            "n_group": 1,
            "topk_group": 1,
        },
    ),
    Recipe(families=("deepseek_v2",), reason="the class leaves top-k open", completion={"num_experts_per_tok": 6}),
    Recipe(
        families=("lfm2_moe",),
        reason="the class leaves layer kinds open",
        completion={"layer_types": ["conv", "full_attention"] * 16},
    ),
    Recipe(
        families=("cohere_compass_text",),
        reason="the class names rotary settings for no kind of layer",
        completion={
            "rope_parameters": {
                "sliding_attention": {"rope_type": "default", "rope_theta": 50000.0, "mrope_section": [24, 20, 20]},
                "full_attention": None,
            }
        },
    ),
)
