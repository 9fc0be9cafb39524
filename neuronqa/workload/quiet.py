"""Nothing random, nothing cached, nothing named: what a spec's config must not carry."""

from __future__ import annotations

from typing import Any, Final

from neuronqa.workload.meaning import Meaning, meaning
from neuronqa.workload.tree import Node, is_count, nodes

_DROPPED: Final = frozenset({"architectures", "label2id", "transformers_version", "dtype", "torch_dtype", "auto_map"})
_KEPT_NAMES: Final = frozenset(
    {"model_type", "num_labels", "languages", "default_language", "architecture", "id2label"}
)
_SETTINGS: Final = ("_length", "_min_masks")
"""NOISE fields that only shape noise which is off."""
MOST_LABELS: Final = 8


def silence(node: Node) -> None:
    """Set every dropout-like probability to zero and turn caches and random masking off."""
    fields = node.fields
    for name, value in fields.items():
        match meaning(name):
            case Meaning.NOISE:
                fields[name] = _silent(name, value)
            case Meaning.OUTPUT if isinstance(value, bool) and name in ("use_cache", "output_attentions"):
                fields[name] = False
            case _:
                if name == "gradient_checkpointing":
                    fields[name] = False


def anonymise(node: Node) -> None:
    """Drop names, label texts and versions; keep the number of labels, at most eight."""
    fields = node.fields
    labels = fields.pop("id2label", None)
    if isinstance(labels, dict):
        fields["num_labels"] = min(len(labels), MOST_LABELS)
    for name in list(fields):
        private = name.startswith("_") and name != "_sliding_window_pattern"
        named = meaning(name) is Meaning.IDENTITY and name not in _KEPT_NAMES
        if private or named or name in _DROPPED:
            del fields[name]


def settle(root: dict[str, Any]) -> None:
    """Name the tokens that batches and decoders need and that many checkpoints leave to the tokenizer."""
    for node in nodes(root):
        fields = node.fields
        if fields.get("vocab_size") and "pad_token_id" in fields and fields["pad_token_id"] is None:
            fields["pad_token_id"] = 0
        if fields.get("is_encoder_decoder") and fields.get("decoder_start_token_id") is None:
            pad = fields.get("pad_token_id")
            fields["decoder_start_token_id"] = pad if is_count(pad) else 0
    if "pad_token_id" in root and root["pad_token_id"] is None:
        root["pad_token_id"] = 0


def _silent(name: str, value: Any) -> Any:
    if name.endswith(_SETTINGS):
        return value
    if name.startswith("pos_embed_"):
        return None
    if isinstance(value, bool):
        return value if name == "token_dropout" else False
    if isinstance(value, float) or is_count(value):
        return type(value)(0)
    if isinstance(value, list):
        return [_silent(name, each) for each in value]
    return value
