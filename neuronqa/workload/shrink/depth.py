"""Fewer layers, with every kind of layer kept.

A layer's kind is what the config says of it: its entry in each per-layer list, its membership in each list of layer
numbers, its side of each threshold. The first layer of each kind is kept, in order, and every per-layer field is
rewritten to the layers that stay. Two layers at least: many models treat the first apart (a relative position table,
an embedding norm) without a word in the config, and one that reads a hidden state before the last needs a second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from neuronqa.domain.identity import canonical_json
from neuronqa.workload.levels import Reach
from neuronqa.workload.meaning import Meaning, meaning
from neuronqa.workload.tree import Node, is_count, is_counts, is_numbered, is_subconfig

LEAST_LAYERS: Final = 2
MOST_KINDS: Final = 6
"""A per-layer list with more kinds than this holds sizes, not kinds: any two layers stand for it."""

_NOT_PER_LAYER: Final = re.compile(
    r"token|dims?$|dims_|rates?$|ratios?$|sizes?$|upsampl|dilation|channels|kernel|stride|mean|std|_index|conv|scales?$"
    r"|factors?$|patch|depths?$|label|stage|quantiles|weights$|range$|padding|shape|pinpoints|resolution"
)
_KIND_NUMBERS: Final = re.compile(
    r"(global_att\w*|fullatt\w*|full_att\w*|attn_layer|mlp_only|moe|cross_attention|window_block|residual_block"
    r"|global_attention|hybrid|local|kda|full_attn|linear_attn|dense|sparse)_?\w*(layers|indexes|indices|idxs|ids|blocks)"
)
_TAPS: Final = re.compile(
    r"deepstack\w*_(indexes|layers|indices)|vision_feature_layers|intermediate_(layers_indices|hook_ids)|out_indices"
    r"|backbone_out_indices|intermediate_hidden_state_indices|extract_layers|cat_hidden_layers|target_layer_ids"
    r"|spatial_target_layers|audio_feature_layers"
)
_FIRST: Final = frozenset({"first_k_dense_replace", "num_dense_layers", "num_hash_layers"})
"""The first so many layers are of another kind."""
_LAST: Final = frozenset({"num_kv_shared_layers"})
"""The last so many layers are of another kind."""
_UP_TO: Final = frozenset({"max_window_layers", "moe_layer_end_index"})
"""Layer numbers that must stay within the depth but name no kind of their own."""
_STAGES: Final = re.compile(
    r"(\w+_)?depths?|num_blocks|block_repeats|num_block_repeats|\w*_num_blocks|blocks_per_stage|stage_numb_of_layers"
    r"|layer_depths|depth_list|num_conv_blocks|stage_layers|num_layers_per_stage"
)
"""Lists that hold the depth of each stage of a hierarchical model."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """Layers that stay, of `total`."""

    total: int
    kept: tuple[int, ...]

    def place(self, layer: int) -> int:
        """Where layer number `layer` is found now: itself if kept, else the kept one before it."""
        return max(0, sum(1 for k in self.kept if k <= layer) - 1)


def cut(node: Node, reach: Reach) -> None:
    """Shorten every stack of layers in one (sub-)config."""
    fields = node.fields
    for stages in [name for name, value in fields.items() if _STAGES.fullmatch(name) and is_counts(value)]:
        fields[stages] = [min(LEAST_LAYERS * reach.periods, depth) for depth in fields[stages]]
    for total in sorted(_depths(fields), reverse=True):
        cutting = _Cut(total, _kept(fields, total, reach))
        if len(cutting.kept) < total:
            _rewrite(fields, cutting)
    _shorten_periods(fields)


def layer_kinds(fields: dict[str, Any]) -> tuple[list[str], frozenset[str]]:
    """The distinct kinds of layer a (sub-)config names, sorted, and the fields that name them.

    Empty where nothing tells layers apart. A list with more kinds than layers usually come in is named `varied`.
    """
    found: set[str] = set()
    names: set[str] = set()
    for total in _depths(fields):
        telling = _telling(fields, total)
        names |= {*telling, *_tapping(fields, total)}
        kinds = set(_joined(telling, total))
        found |= kinds if len(kinds) <= MOST_KINDS else {f"varied:{sorted(telling)}"}
    return (sorted(found) if names else []), frozenset(names)


def _depths(fields: dict[str, Any]) -> set[int]:
    """Every number of layers a stack of this (sub-)config has; some are told only by a list with each layer's kind."""
    counted = {value for name, value in fields.items() if _is_depth(fields, name, value)}
    listed = fields.get("layers_block_type")
    if isinstance(listed, list) and "num_hidden_layers" not in fields and len(listed) > LEAST_LAYERS:
        counted.add(len(listed))
    return counted


def _is_depth(fields: dict[str, Any], name: str, value: Any) -> bool:
    if meaning(name) is not Meaning.DEPTH or not is_count(value) or value <= LEAST_LAYERS:
        return False
    return not any(_STAGES.fullmatch(n) and isinstance(v, list) and len(v) == value for n, v in fields.items())


def _kept(fields: dict[str, Any], total: int, reach: Reach) -> tuple[int, ...]:
    kinds = _joined(_telling(fields, total), total)
    least = min(total, max(LEAST_LAYERS * reach.periods, _taps_needed(fields, total)))
    places: dict[str, list[int]] = {}
    for layer, kind in enumerate(kinds):
        places.setdefault(kind, []).append(layer)
    chosen: set[int] = set()
    if len(places) <= MOST_KINDS:
        chosen = {layer for found in places.values() for layer in found[: reach.periods]}
    for layer in range(total):
        if len(chosen) >= least:
            break
        chosen.add(layer)
    return tuple(sorted(chosen))


def _telling(fields: dict[str, Any], total: int) -> dict[str, Sequence[Any]]:
    """What each field says of each of `total` layers, for the fields that say anything."""
    told: dict[str, Sequence[Any]] = {}
    for name, value in fields.items():
        if _is_per_layer(name, value, total):
            told[name] = value
        elif is_numbered(value):
            told[name] = [value.get(_key(value, layer)) for layer in range(total)]
        elif _KIND_NUMBERS.fullmatch(name) and is_counts(value) and max(value) < total:
            told[name] = [layer in value for layer in range(total)]
        elif name in _FIRST and is_count(value):
            told[name] = [layer < value for layer in range(total)]
        elif name in _LAST and is_count(value):
            told[name] = [layer >= total - value for layer in range(total)]
    return told


def _joined(told: dict[str, Sequence[Any]], total: int) -> list[str]:
    return [canonical_json({name: each[layer] for name, each in told.items()}) for layer in range(total)]


def _tapping(fields: dict[str, Any], total: int) -> list[str]:
    return [
        n
        for n, v in fields.items()
        if _TAPS.fullmatch(n) and is_counts(v) and max(v) <= total and _counts(fields, n, total)
    ]


def _counts(fields: dict[str, Any], name: str, total: int) -> bool:
    """Does `name` number the stages of this very stack? A backbone numbers what its `stage_names` name."""
    stages = fields.get("stage_names")
    return name != "out_indices" or not isinstance(stages, list) or len(stages) == total + 1


def _taps_needed(fields: dict[str, Any], total: int) -> int:
    """Layers whose outputs are read by another part of the model: there must be as many as it reads."""
    counts = [len(fields[name]) for name in _tapping(fields, total) if not name.startswith("deepstack")]
    return max(counts, default=0)


def _rewrite(fields: dict[str, Any], cutting: _Cut) -> None:
    total, kept = cutting.total, cutting.kept
    for name, value in list(fields.items()):
        if (_is_depth(fields, name, value) and value == total) or not _counts(fields, name, total):
            continue
        new = _rewritten(name, value, cutting)
        if new is not value:
            fields[name] = new
    if "stage_names" in fields and len(fields["stage_names"] or ()) == total + 1:
        del fields["stage_names"]
        fields.pop("out_features", None)
    for name in [n for n, v in fields.items() if _is_depth(fields, n, v) and v == total]:
        fields[name] = len(kept)


def _rewritten(name: str, value: Any, cutting: _Cut) -> Any:
    total, kept = cutting.total, cutting.kept
    if _is_per_layer(name, value, total):
        return "".join(value[k] for k in kept) if isinstance(value, str) else [value[k] for k in kept]
    if is_numbered(value):
        return {str(new): value[_key(value, old)] for new, old in enumerate(kept) if _key(value, old) in value}
    if is_counts(value) and _TAPS.fullmatch(name) and max(value) <= total:
        return _taps(name, value, cutting)
    if is_counts(value) and _KIND_NUMBERS.fullmatch(name) and max(value) < total:
        return [new for new, old in enumerate(kept) if old in value]
    if name in _FIRST and is_count(value):
        return sum(1 for k in kept if k < value)
    if name in _LAST and is_count(value):
        return sum(1 for k in kept if k >= total - value)
    if name in _UP_TO and is_count(value):
        return min(value, len(kept))
    return value


def _taps(name: str, value: list[int], cutting: _Cut) -> list[int]:
    """As many taps as before, on the last layers; a tap on the very last stays there.

    Deepstack taps feed one text layer each, so there are no more of them than text layers.
    """
    depth = len(cutting.kept)
    if name.startswith("deepstack"):
        return list(range(min(len(value), LEAST_LAYERS)))
    if any(tap < 0 for tap in value):
        return [max(tap, -depth) if tap < 0 else min(tap, depth) for tap in value]
    top = depth if max(value) == cutting.total or name == "out_indices" else depth - 1
    first = max(0, top - len(value) + 1)
    return [min(first + place, top) for place in range(len(value))]


def _shorten_periods(fields: dict[str, Any]) -> None:
    """Every n-th layer becomes every second one, and the offset follows."""
    for name in [n for n, v in fields.items() if meaning(n) is Meaning.PERIOD and is_count(v) and v > LEAST_LAYERS]:
        fields[name] = LEAST_LAYERS
        offset = name.replace("period", "offset")
        if offset != name and is_count(fields.get(offset)):
            fields[offset] = min(fields[offset], LEAST_LAYERS - 1)


def _is_per_layer(name: str, value: Any, total: int) -> bool:
    if not isinstance(value, list | str) or len(value) != total or is_subconfig(name, value):
        return False
    if isinstance(value, str):
        return "pattern" in name
    return not _NOT_PER_LAYER.search(name) or name in _PER_LAYER


_PER_LAYER: Final = frozenset(
    {
        "intermediate_size",
        "activation_sparsity_pattern",
        "compress_rates",
        "num_attention_heads_per_layer",
        "kernel_size",
    }
)


def _key(value: dict[str, Any], layer: int) -> str:
    """The text under which `value` keeps `layer`: some configs write `05`."""
    return next((key for key in value if int(key) == layer), str(layer))
