"""Smaller vocabularies, position tables, expert pools, query sets and images: counts that no other field is tied to."""

from __future__ import annotations

from typing import Any, Final

from neuronqa.workload.levels import Reach
from neuronqa.workload.meaning import Meaning, meaning
from neuronqa.workload.tree import Node, is_count, is_counts

LEAST_EXPERTS: Final = 4
MOST_CHOSEN: Final = 4
MOST_GROUPS: Final = 2
MOST_QUERIES: Final = 20
MOST_LABELS: Final = 8
MOST_SOURCE_POSITIONS: Final = 32
PATCHES_A_SIDE: Final = 4
LEAST_SIDE: Final = 64
"""Pixels: five halvings leave two."""
_DEPTHS: Final = ("num_hidden_layers", "depth", "num_layers")


def cut_positions(node: Node, reach: Reach) -> None:
    """Position tables no longer than the level needs; tables of audio frames shorter still."""
    fields = node.fields
    for name, value in fields.items():
        if meaning(name) is not Meaning.POSITIONS or not is_count(value):
            continue
        if name == "max_source_positions" and value > MOST_SOURCE_POSITIONS and "num_mel_bins" in fields:
            fields[name] = MOST_SOURCE_POSITIONS
        elif value > reach.positions:
            fields[name] = reach.positions
    for name in ("rope_parameters", "rope_scaling"):
        for rope in _ropes(fields.get(name)):
            old = rope.get("original_max_position_embeddings")
            if is_count(old):
                rope["original_max_position_embeddings"] = min(old, reach.positions // 2)


def cut_experts(node: Node, reach: Reach) -> None:
    """At most four chosen, of twice as many (at least four) experts, in two groups: some are always left out."""
    del reach
    fields = node.fields
    pools = [n for n, v in fields.items() if meaning(n) is Meaning.EXPERTS and is_count(v) and v > LEAST_EXPERTS]
    chosen = [n for n, v in fields.items() if meaning(n) is Meaning.TOP_K and is_count(v)]
    for name in chosen if pools else []:
        fields[name] = min(fields[name], MOST_CHOSEN)
    most = max([LEAST_EXPERTS, *(2 * fields[name] for name in chosen)])
    for name in pools:
        fields[name] = min(fields[name], most)
    if pools:
        _cut_groups(fields)


def _cut_groups(fields: dict[str, Any]) -> None:
    for name in [n for n in fields if meaning(n) is Meaning.EXPERT_GROUPS and is_count(fields[n])]:
        limit = 1 if "topk" in name else MOST_GROUPS
        fields[name] = min(fields[name], limit)


def cut_queries(node: Node, reach: Reach) -> None:
    """Fewer learned queries: each is one more row."""
    del reach
    for name, value in node.fields.items():
        if meaning(name) is Meaning.QUERIES and is_count(value) and value > MOST_QUERIES:
            node.fields[name] = MOST_QUERIES


def cut_images(node: Node, reach: Reach) -> None:
    """Images of four patches a side; hierarchical models get enough pixels for their deepest stage."""
    del reach
    fields = node.fields
    patch = _largest(fields.get("patch_size"), default=16)
    for name in [n for n in fields if meaning(n) is Meaning.IMAGE_SIZE]:
        value = fields[name]
        side = max(PATCHES_A_SIDE * patch, LEAST_SIDE // patch * patch)
        if isinstance(fields.get("depths"), list):
            side = max(side, LEAST_SIDE)
        if is_count(value):
            fields[name] = min(value, side)
        elif is_counts(value) and len(value) == 2:
            fields[name] = [min(each, side) for each in value]
    _fit_windows(fields)


def _fit_windows(fields: dict[str, Any]) -> None:
    """Windowed attention: the deepest stage holds exactly one window."""
    stages, window, patch = fields.get("depths"), fields.get("window_size"), fields.get("patch_size")
    if isinstance(stages, list) and is_count(window) and is_count(patch) and is_count(fields.get("image_size")):
        fields["window_size"] = min(4, window)
        fields["image_size"] = patch * 2 ** (len(stages) - 1) * fields["window_size"]


def fit_towers(root: Node, reach: Reach) -> None:
    """What a composite config says of its vision tower: resolutions of crops, layers that are read."""
    del reach
    fields, vision = root.fields, root.fields.get("vision_config")
    if not isinstance(vision, dict):
        return
    side = vision.get("image_size")
    if isinstance(fields.get("image_grid_pinpoints"), list) and is_count(side):
        fields["image_grid_pinpoints"] = [[side, 2 * side], [2 * side, side], [2 * side, 2 * side]]
    depth = next((vision[n] for n in _DEPTHS if is_count(vision.get(n))), 0)
    for name in ("vision_feature_layer", "vision_feature_layers"):
        if depth and fields.get(name) is not None:
            fields[name] = _within(fields[name], depth)


_INTO_TEXT: Final = ("out_hidden_size", "projection_dim", "output_dim", "text_hidden_size", "visual_hidden_size")
"""Widths by which a tower's features enter the text model."""


def fit_projections(full: tuple[Node, ...], small: tuple[Node, ...]) -> None:
    """Where a tower's projection was as wide as the text model, it still is."""
    before = {node.path: node.fields for node in full}
    text = next((node for node in small if node.path in ("text_config", "text_encoder", "decoder")), None)
    if text is None:
        return
    name = next((n for n in ("hidden_size", "d_model", "n_embd") if is_count(text.fields.get(n))), "")
    width = before.get(text.path, {}).get(name)
    for node in small if is_count(width) else ():
        for field in _INTO_TEXT:
            if before.get(node.path, {}).get(field) == width and is_count(node.fields.get(field)):
                node.fields[field] = text.fields[name]


def _within(layer: Any, depth: int) -> Any:
    if isinstance(layer, list):
        return [_within(each, depth) for each in layer]
    return max(layer, -depth) if layer < 0 else min(layer, depth)


def _largest(value: Any, *, default: int) -> int:
    if is_count(value) and value > 0:
        return int(value)
    if is_counts(value):
        return max(value)
    return default


def _ropes(value: Any) -> list[dict[str, Any]]:
    """The rope settings of a config: one, or one a layer type."""
    if not isinstance(value, dict):
        return []
    inner = [v for v in value.values() if isinstance(v, dict)]
    return [value, *inner]
