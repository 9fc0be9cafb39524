"""Kernel keys and graph keys: which configs may share a verdict, and which merely look alike.

Both are content hashes of a config rewritten by the meaning of its fields (see docs/keys.md for the table):

- the **kernel key** keeps whatever alters the graph or a kernel's dtype, layout or branch: class, layer kinds, head
  dimension, grouping of heads, top-k, kernels and patches, how widths fill tiles of 128, tying, every flag;
- the **graph key** keeps whatever alters the graph, with numbers reduced to whether they are there at all.

Names, labels, special tokens, vocabulary sizes, initialisation, depth beyond the layer pattern and widths within a
tile class alter neither.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from neuronqa.domain.identity import content_hash
from neuronqa.workload.architectures import Architecture, Task
from neuronqa.workload.degenerate import degenerate
from neuronqa.workload.meaning import Meaning, meaning
from neuronqa.workload.shrink.depth import layer_kinds
from neuronqa.workload.tree import children, is_count, is_counts, is_subconfig

KEY_VERSION: Final = 1
TILE: Final = 128
"""Rows of a systolic array: a width up to here is one tile."""
LONG_LIST: Final = 6

_NEVER: Final = frozenset(
    {Meaning.IDENTITY, Meaning.TOKEN, Meaning.VOCABULARY, Meaning.NOISE, Meaning.TRAINING, Meaning.OUTPUT}
)
_CLASSIFIERS: Final = frozenset({Task.SEQUENCE_CLASSIFICATION, Task.IMAGE_CLASSIFICATION, Task.TOKEN_CLASSIFICATION})
_ROPE: Final = frozenset({"rope_type", "type", "partial_rotary_factor", "mrope_interleaved"})
_ELSEWHERE: Final = frozenset({"problem_type", "max_window_layers", "moe_layer_end_index"})
"""Fields that count through others: the head's loss, the kinds of layers."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Both keys of one config and class."""

    kernel: str
    graph: str


def keys(config: dict[str, Any], architecture: Architecture) -> Keys:
    """The keys of a complete, unshrunken config (canonical field names) run as `architecture`."""
    return Keys(
        kernel=content_hash(_canonical(config, architecture, exact=True)),
        graph=content_hash(_canonical(config, architecture, exact=False)),
    )


def _canonical(config: dict[str, Any], architecture: Architecture, *, exact: bool) -> dict[str, Any]:
    return {
        "version": KEY_VERSION,
        "model_type": architecture.model_type,
        "class": architecture.class_name,
        "labels": _labels(config, architecture.task),
        "config": _node(config, exact=exact),
    }


def _labels(config: dict[str, Any], task: Task) -> Any:
    """One label is a regression: another loss. How many there are beyond one does not matter."""
    if task not in _CLASSIFIERS:
        return None
    labels = config.get("id2label")
    return [config.get("problem_type"), isinstance(labels, dict) and len(labels) == 1]


def _node(fields: dict[str, Any], *, exact: bool) -> dict[str, Any]:
    kinds, per_layer = layer_kinds(fields)
    out: dict[str, Any] = {"layers": kinds, "heads": _grouping(fields, exact=exact)}
    for name, value in fields.items():
        idea = meaning(name)
        if (
            name in per_layer
            or name in _ELSEWHERE
            or idea in _NEVER
            or is_subconfig(name, value)
            or name.startswith("_")
        ):
            continue
        word = _word(name, idea, value, exact=exact)
        if word is not _NOTHING:
            out[name] = word
    if unheard := degenerate(fields):
        out["degenerate"] = unheard
    out |= {f"{name}{{}}": _node(child, exact=exact) for name, child in children(fields)}
    if head_dim := _head_dim(fields):
        out["head_dim"], out["head_dim_own"] = (head_dim[0] if exact else None), head_dim[1]
    return out


_NOTHING: Final = object()


def _word(name: str, idea: Meaning, value: Any, *, exact: bool) -> Any:
    """What one field contributes: itself, a class, or nothing."""
    if name in ("rope_parameters", "rope_scaling"):
        return _rope(value)
    if value is None or isinstance(value, bool | str):
        return value
    match idea:
        case Meaning.POSITIONS | Meaning.IMAGE_SIZE:
            return _NOTHING
        case Meaning.DEPTH | Meaning.QUERIES | Meaning.PERIOD:
            return _some(value) if is_count(value) else len(value) if isinstance(value, list) else _NOTHING
        case Meaning.HEADS | Meaning.KV_HEADS:
            return _NOTHING
        case Meaning.HEAD_DIM:
            return value if exact else _some(value)
        case Meaning.EXPERTS:
            return _pool(value) if exact else _some(value)
        case Meaning.TOP_K | Meaning.GEOMETRY | Meaning.CHANNELS:
            return value if exact else _shape(value)
        case Meaning.EXPERT_GROUPS:
            return _some(value)
        case Meaning.WIDTH:
            return _width(value) if exact else _some(value)
        case Meaning.SCALAR:
            return _scalar(value)
        case _:
            return value if exact or not (isinstance(value, list) and len(value) > LONG_LIST) else len(value)


def _some(value: Any) -> Any:
    """`none`, `one` or `many`."""
    if isinstance(value, list):
        return sorted({str(_some(each)) for each in value})
    if isinstance(value, int | float):
        return "none" if value <= 0 else "one" if value == 1 else "many"
    return value


def _shape(value: Any) -> Any:
    return len(value) if isinstance(value, list) else _some(value)


def _pool(value: Any) -> Any:
    return "tiles" if is_count(value) and value > TILE else _some(value)


def _width(value: Any) -> Any:
    """How a width fills tiles: within one or over several, and how its end is aligned."""
    if isinstance(value, list):
        return sorted({str(_width(each)) for each in value})
    if not is_count(value) or value <= 0:
        return _some(value)
    aligned = next((by for by in (TILE, 32, 8, 2) if value % by == 0), 1)
    return f"{'one' if value <= TILE else 'tiles'}/{aligned}"


def _scalar(value: Any) -> Any:
    """A number that may switch a branch only at zero, one or beyond all numbers."""
    if isinstance(value, list):
        return [_scalar(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return value
    return value if value in (0, 1) else "number"


def _grouping(fields: dict[str, Any], *, exact: bool) -> dict[str, str]:
    """How query heads share key-value heads; other kinds (an indexer's, a state space's) are told the same way."""
    ideas = {n: meaning(n) for n, v in fields.items() if is_count(v) and v > 0}
    queries = {n: fields[n] for n, idea in ideas.items() if idea is Meaning.HEADS}
    shared = {n: fields[n] for n, idea in ideas.items() if idea is Meaning.KV_HEADS}
    main = queries.get("num_attention_heads") or max(queries.values(), default=0)
    told = {name: _ratio(main, count, exact=exact) for name, count in shared.items()}
    return told | {name: _ratio(main, count, exact=exact) for name, count in queries.items() if count != main}


def _ratio(queries: int, count: int, *, exact: bool) -> str:
    """`mha`, `mqa`, or `gqa` with how many query heads there are to each."""
    if count == queries:
        return "mha"
    if count == 1:
        return "mqa"
    return f"gqa:{Fraction(queries, count)}" if exact else "gqa"


def _head_dim(fields: dict[str, Any]) -> tuple[int, bool] | None:
    """The head dimension, and whether the config sets it apart from hidden size over heads."""
    hidden = _first_count(fields, "hidden_size", "d_model", "n_embd")
    heads = _first_count(fields, "num_attention_heads", "n_head", "num_heads")
    own = fields.get("head_dim")
    if hidden <= 0 or heads <= 0:
        return None
    if is_count(own):
        return own, own * heads != hidden
    return hidden // heads, False


def _first_count(fields: dict[str, Any], *names: str) -> int:
    return next((value for name in names if is_count(value := fields.get(name))), 0)


def _rope(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    told = {k: _rope(v) for k, v in value.items() if k in _ROPE or isinstance(v, dict)}
    return told | {"sections": True} if is_counts(value.get("mrope_section")) else told
