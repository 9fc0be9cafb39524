"""Narrower hidden spaces that still fit each other.

Every (sub-)config gets one divisor for all its widths: heads are divided by one factor, head dimensions by another,
everything else by their product. So sums, multiples, GQA ratios and splits survive without being known. Sub-configs
that share a hidden size share the divisor, and a width that equals another sub-config's hidden size follows that one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from neuronqa.workload.levels import Reach
from neuronqa.workload.meaning import Meaning, meaning
from neuronqa.workload.tree import Node, is_count, is_counts, is_numbered

GRAIN: Final = 8
"""Free widths are multiples of this: grouped matrix products want 16-byte rows in bf16."""
NARROW: Final = 16
"""A width up to here is left alone."""
LEAST_FREE: Final = 48
"""A lone width below this is left alone: it may be a small thing with a wide name."""
LEAST_KV_HEADS: Final = 2
MQA_HEADS: Final = 4
MOST_SHARING: Final = 8
"""Query heads to one key-value head: more of them only cost time."""
LEAST_HEAD_DIM: Final = 8
EVEN: Final = 4
"""Rotary embeddings over two axes halve a head dimension twice."""

GROUPED_WIDTH: Final = 64
GROUPED: Final = frozenset(
    {
        "deformable_detr",
        "detr",
        "grounding-dino",
        "mm-grounding-dino",
        "mask2former",
        "maskformer",
        "oneformer",
        "conditional_detr",
        "dab-detr",
        "table-transformer",
        "bridgetower",
    }
)
"""Families whose group norms always have 32 (or 8) groups, or whose heads are always 64 wide: they need some width."""
_HIDDEN: Final = ("hidden_size", "d_model", "n_embd", "embed_dim", "dim", "d_embed", "emb_dim", "hidden_dim", "width")
_MAIN_HEADS: Final = (
    "num_attention_heads",
    "n_head",
    "n_heads",
    "num_heads",
    "encoder_attention_heads",
    "attention_heads",
    "decoder_attention_heads",
)
_HEAD_DIMS: Final = ("head_dim", "d_kv", "kv_channels", "qk_nope_head_dim")
_STAGE_WIDTHS: Final = ("hidden_sizes", "embed_dims", "embed_dim", "hidden_size")
_FREE: Final = re.compile(r"intermediate|ffn|mlp|inner|_ff|_rank$")
"""Widths tied to nothing else."""


@dataclass(frozen=True, slots=True)
class Divisor:
    """What heads, head dimensions and all other widths of one (sub-)config are divided by."""

    heads: Fraction
    head_dim: int
    kv_heads: Fraction = Fraction(1)

    @property
    def width(self) -> Fraction:
        return self.heads * self.head_dim


_ONE: Final = Divisor(Fraction(1), 1)
_UNKNOWN: Final = Divisor(Fraction(1), 8)
"""For a sub-config that has neither a hidden size nor heads, when no other sub-config has either."""


@dataclass(frozen=True, slots=True)
class _Anatomy:
    """The attention of one (sub-)config, as far as its fields tell."""

    hidden: int
    heads: int
    kv_heads: tuple[int, ...]
    all_heads: tuple[int, ...]
    head_dims: tuple[int, ...]
    hierarchical: bool
    rotary: float = 1.0
    """Which part of a head dimension is rotated."""


def narrow(tree: tuple[Node, ...], reach: Reach) -> None:
    """Divide heads, head dimensions and widths everywhere."""
    anatomies = {node.path: _anatomy(node.fields) for node in tree}
    least = max(reach.least_width, GROUPED_WIDTH if tree[0].model_type in GROUPED else 0)
    divisors = {path: _divisor(anatomy, reach, least) for path, anatomy in anatomies.items() if anatomy is not None}
    shared = _agree(anatomies, divisors)
    widest = max(divisors.values(), key=lambda d: d.width, default=_UNKNOWN)
    for node in tree:
        anatomy = anatomies[node.path]
        divisor = divisors.get(node.path, widest)
        _narrow_node(node.fields, anatomy, divisor, shared)


def _anatomy(fields: dict[str, Any]) -> _Anatomy | None:
    staged = isinstance(fields.get("depths"), list)
    order: tuple[str, ...] = _HIDDEN
    if is_count(fields.get("embed_dim")) and (staged or "spatial_merge_size" in fields or "mlp_ratio" in fields):
        order = ("embed_dim", *_HIDDEN)
    hidden = next((fields[n] for n in order if is_count(fields.get(n)) and fields[n] > 0), None)
    if hidden is None:
        return None
    counted = {n: v for n, v in fields.items() if is_count(v) and v > 0}
    kv = tuple(v for n, v in counted.items() if meaning(n) is Meaning.KV_HEADS)
    queries = {n: v for n, v in counted.items() if meaning(n) is Meaning.HEADS}
    main = next((queries[n] for n in _MAIN_HEADS if n in queries), 0)
    listed = [v for n, vs in fields.items() if "heads" in n and is_counts(vs) for v in vs if v > 0]
    dims = tuple(v for n, v in counted.items() if meaning(n) is Meaning.HEAD_DIM)
    every = (*queries.values(), *kv, *listed)
    return _Anatomy(hidden, main, kv or (main,), every, dims, staged or not main, _rotary(fields))


def _rotary(fields: dict[str, Any]) -> float:
    rope = fields.get("rope_parameters")
    told = (rope or {}).get("partial_rotary_factor") if isinstance(rope, dict) else None
    part = told or fields.get("partial_rotary_factor")
    return float(part) if isinstance(part, float) and 0 < part < 1 else 1.0


def _divisor(anatomy: _Anatomy, reach: Reach, least: int) -> Divisor:
    if not reach.widths:
        return _ONE
    if anatomy.hierarchical:
        return Divisor(Fraction(1), _halvings(anatomy.hidden, least))
    head_dim = _head_dim_by(anatomy, reach)
    queries, shared = _heads_by(anatomy, reach)
    while head_dim > 1 and anatomy.hidden < least * queries * head_dim:
        head_dim //= 2
    if queries == shared and anatomy.hidden < least * queries * head_dim:
        fits = [by for by in range(1, int(queries) + 1) if math.gcd(*anatomy.all_heads) % by == 0]
        enough = [by for by in fits if anatomy.hidden >= least * by * head_dim]
        queries = shared = Fraction(max(enough, default=1))
    return Divisor(queries, head_dim, shared)


def _halvings(value: int, least: int) -> int:
    by = 1
    while value % (2 * by) == 0 and value // (2 * by) >= least:
        by *= 2
    return by


def _heads_by(anatomy: _Anatomy, reach: Reach) -> tuple[Fraction, Fraction]:
    """What query heads and key-value heads are divided by.

    Heads that are all alike become two. Else it is the largest divisor that leaves every count whole and at least two
    key-value heads; where very many query heads share one of them they are cut further, alone: to eight, or to four
    where there is only one to share.
    """
    if not reach.heads:
        return Fraction(1), Fraction(1)
    if len(set(anatomy.all_heads)) == 1 and anatomy.heads > LEAST_KV_HEADS:
        return Fraction(anatomy.heads, LEAST_KV_HEADS), Fraction(anatomy.heads, LEAST_KV_HEADS)
    fewest = min(anatomy.kv_heads)
    common = math.gcd(*anatomy.all_heads)
    fits = [by for by in range(1, common + 1) if common % by == 0 and fewest // by >= LEAST_KV_HEADS]
    shared = max(fits, default=1)
    plain = all(count in (anatomy.heads, fewest) for count in anatomy.all_heads)
    most = MQA_HEADS if fewest == 1 else fewest // shared * MOST_SHARING
    if plain and anatomy.heads // shared > most:
        return Fraction(anatomy.heads, most), Fraction(shared)
    return Fraction(shared), Fraction(shared)


def _head_dim_by(anatomy: _Anatomy, reach: Reach) -> int:
    """The level's divisor, or the largest below it that leaves every head dimension whole and a multiple of four."""
    own = anatomy.hidden // anatomy.heads if anatomy.hidden % anatomy.heads == 0 else 0
    dims = [d for d in (*anatomy.head_dims, own) if d > 0] or [64]
    by = _common_divisor(dims, anatomy, reach)
    if by == 1 and anatomy.head_dims and own not in anatomy.head_dims:
        by = _common_divisor(list(anatomy.head_dims), anatomy, reach)
    return by


def _common_divisor(dims: list[int], anatomy: _Anatomy, reach: Reach) -> int:
    for by in range(reach.head_dim, 1, -1):
        fits = (d % by == 0 and (d // by) % EVEN == 0 and d // by >= LEAST_HEAD_DIM for d in dims)
        if all(fits) and all(int(d // by * anatomy.rotary) % 2 == 0 for d in dims):
            return by
    return 1


def _agree(anatomies: dict[str, _Anatomy | None], divisors: dict[str, Divisor]) -> dict[int, int]:
    """Give sub-configs of one hidden size one divisor; return what each hidden size becomes."""
    by_hidden: dict[int, list[str]] = {}
    for path, anatomy in anatomies.items():
        if anatomy is not None and not anatomy.hierarchical:
            by_hidden.setdefault(anatomy.hidden, []).append(path)
    shared: dict[int, int] = {}
    for hidden, paths in by_hidden.items():
        if len({divisors[path].width for path in paths}) > 1:
            divisors.update(_common({path: (_known(anatomies[path]), divisors[path]) for path in paths}))
        shared[hidden] = divided(hidden, divisors[paths[0]].width)
    return shared


def _known(anatomy: _Anatomy | None) -> _Anatomy:
    assert anatomy is not None
    return anatomy


def _common(found: dict[str, tuple[_Anatomy, Divisor]]) -> dict[str, Divisor]:
    """Divisors of one width: the largest that all can take, each its own way; else only head dimensions are divided."""
    for width in sorted({divisor.width for _, divisor in found.values()}, reverse=True):
        fitted = {path: _of_width(anatomy, divisor, width) for path, (anatomy, divisor) in found.items()}
        fits = {path: divisor for path, divisor in fitted.items() if divisor is not None}
        if len(fits) == len(found):
            return fits
    common = math.gcd(*(divisor.head_dim for _, divisor in found.values()))
    return dict.fromkeys(found, Divisor(Fraction(1), common))


def _of_width(anatomy: _Anatomy, divisor: Divisor, width: Fraction) -> Divisor | None:
    """A divisor of exactly `width` that divides no count by more than `divisor` does."""
    for head_dim in (by for by in range(divisor.head_dim, 0, -1) if divisor.head_dim % by == 0):
        heads = width / head_dim
        if heads == divisor.heads:
            return Divisor(heads, head_dim, divisor.kv_heads)
        whole = heads.denominator == 1 and math.gcd(*anatomy.all_heads) % heads.numerator == 0
        if whole and heads <= divisor.kv_heads:
            return Divisor(heads, head_dim, heads)
    return None


def divided(value: int, by: Fraction) -> int:
    """`value / by` where that is whole, else rounded up to a multiple of eight."""
    exact = value / by
    if exact.denominator == 1:
        return exact.numerator
    return max(GRAIN, -(-math.ceil(exact) // GRAIN) * GRAIN)


def _narrow_node(fields: dict[str, Any], anatomy: _Anatomy | None, divisor: Divisor, shared: dict[int, int]) -> None:
    staged = (anatomy is None or anatomy.hierarchical) and _is_staged(fields)
    by = _staged_divisor(fields, divisor) if staged else divisor
    hidden = anatomy.hidden if anatomy and not anatomy.hierarchical else 0
    known = {} if staged and _has_stages(fields) else shared
    _narrow_fields(fields, by, hidden, known, NARROW + 1 if staged else LEAST_FREE)
    for value in fields.values():
        for layer in value.values() if is_numbered(value) else ():
            _narrow_fields(layer, by, hidden, known, LEAST_FREE)
    _narrow_ropes(fields, by.head_dim)


def _narrow_fields(fields: dict[str, Any], by: Divisor, hidden: int, known: dict[int, int], least: int) -> None:
    for name, value in fields.items():
        idea = meaning(name)
        if idea is Meaning.HEADS:
            fields[name] = _fewer(value, by.heads)
        elif idea is Meaning.KV_HEADS:
            fields[name] = _fewer(value, by.kv_heads)
        elif idea is Meaning.HEAD_DIM and is_count(value) and value > LEAST_HEAD_DIM and value % by.head_dim == 0:
            fields[name] = value // by.head_dim
        elif idea is Meaning.WIDTH:
            fields[name] = _narrower(name, value, by.width, hidden, known, least)


def _is_staged(fields: dict[str, Any]) -> bool:
    lists = [v for n, v in fields.items() if meaning(n) is Meaning.WIDTH and is_counts(v) and max(v) > NARROW]
    return bool(lists) or isinstance(fields.get("depths"), list)


def _has_stages(fields: dict[str, Any]) -> bool:
    """Does each stage have a width of its own, rather than only lists of widths that read another part's?"""
    return isinstance(fields.get("depths"), list) or any(is_counts(fields.get(name)) for name in _STAGE_WIDTHS)


def _staged_divisor(fields: dict[str, Any], divisor: Divisor) -> Divisor:
    """Hierarchical models: one divisor for the widths of all stages, with eight channels a head left."""
    widths = [v for n, vs in fields.items() if meaning(n) is Meaning.WIDTH and is_counts(vs) for v in vs if v > NARROW]
    heads = next((vs for n, vs in fields.items() if meaning(n) is Meaning.HEADS and is_counts(vs)), None)
    stages = next((fields[n] for n in _STAGE_WIDTHS if is_counts(fields.get(n))), None)
    if heads and stages is None and is_count(fields.get("embed_dim")):
        stages = [fields["embed_dim"] * 2**i for i in range(len(heads))]
    if heads and stages and len(heads) == len(stages):
        dims = [width // h for width, h in zip(stages, heads, strict=True) if h]
        common = math.gcd(*dims)
        fits = [b for b in range(1, common + 1) if common % b == 0 and min(dims) // b >= LEAST_HEAD_DIM]
        return Divisor(Fraction(1), max(fits, default=1))
    if not widths:
        return divisor
    narrowest: int = min(widths)
    most = max(int(divisor.width), 4)
    by = 1
    while narrowest // (2 * by) >= GRAIN and 2 * by <= most:
        by *= 2
    return Divisor(Fraction(1), by)


def _fewer(value: Any, by: Fraction) -> Any:
    if is_count(value):
        exact = value / by
        return exact.numerator if exact.denominator == 1 and exact > 0 else value
    if is_counts(value):
        return [_fewer(each, by) for each in value]
    return value


def _narrower(name: str, value: Any, by: Fraction, hidden: int, shared: dict[int, int], least: int) -> Any:
    if is_counts(value):
        known = shared if least == LEAST_FREE else {}
        return [_one(name, each, by, hidden, known) for each in value] if max(value) > NARROW else value
    return _one(name, value, by, hidden, shared) if is_count(value) and value >= least else value


def _one(name: str, value: int, by: Fraction, hidden: int, shared: dict[int, int]) -> int:
    if value <= NARROW:
        return value
    free = bool(_FREE.search(name))
    if value in shared and (value == hidden or not free):
        return shared[value]
    if hidden and value > hidden and value % hidden == 0 and value // hidden <= NARROW:
        small = shared.get(hidden, divided(hidden, by)) * (value // hidden)
    else:
        small = divided(value, by)
    return -(-small // GRAIN) * GRAIN if free else max(GRAIN, small)


def _narrow_ropes(fields: dict[str, Any], by: int) -> None:
    """Rope tables hold one entry a pair of head dimensions, and sections that add up to half of it."""
    for name in ("rope_parameters", "rope_scaling"):
        outer = fields.get(name)
        if not isinstance(outer, dict) or by == 1:
            continue
        for rope in (outer, *(v for v in outer.values() if isinstance(v, dict))):
            if is_counts(rope.get("mrope_section")):
                rope["mrope_section"] = sections(rope["mrope_section"], sum(rope["mrope_section"]) // by)
            for table in ("short_factor", "long_factor"):
                if isinstance(rope.get(table), list):
                    rope[table] = rope[table][: max(1, len(rope[table]) // by)]


def sections(old: list[int], total: int) -> list[int]:
    """Split `total` in the proportions of `old`, each part at least one; the first takes the remainder."""
    parts = [max(1, each * total // sum(old)) for each in old]
    parts[0] += total - sum(parts)
    return parts
