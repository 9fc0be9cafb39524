"""Transformers models: families of one base and its derivatives, filled into the cells of the type mix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from neuronqa.catalog.offline.bodies import Body
from neuronqa.catalog.offline.calibration import Calibration
from neuronqa.catalog.offline.drafts import Draft
from neuronqa.catalog.offline.draws import Draws, Weighted
from neuronqa.domain.identity import canonical_json

SIZE_PENALTY: Final = 0.45
SMALL: Final = 20_000_000
"""Small models are downloaded more (92.5 % of downloads go below 1 B), but the smallest are no better off."""
OBSCURE: Final = -2.5
"""Fame of a model in a shape nobody has published here."""
LABELS: Final = (2, 2, 2, 3, 5, 9)
"""Numbers of labels of classifiers, the common ones more often."""
ADDED_TOKENS: Final = (1, 64)
DECODING: Final = frozenset({"text-generation", "image-text-to-text"})
HUB_TASK: Final = {"marian": "translation", "m2m_100": "translation", "mbart": "translation", "bart": "summarization",
                   "pegasus": "summarization", "t5": "text2text-generation", "mt5": "text2text-generation"}  # fmt: skip
"""What the Hub calls the task of text-to-text types."""


@dataclass(frozen=True)
class Cell:
    """A class to fill with entries under one task."""

    model_type: str
    class_name: str
    task: str
    library: str = "transformers"


class Families:
    """Draws families. One instance is one stream of draws."""

    def __init__(self, calibration: Calibration, pool: Mapping[str, Sequence[Body]], seed: int) -> None:
        self._draws = Draws(seed, "families")
        self._pool = pool
        self._sizes = _family_sizes(calibration)
        self._custom = calibration.number("custom_shapes")
        self._known = calibration.tables("sizes/known")
        self._merge = calibration.number("names/merge")
        self._lonely = calibration.number("families/lonely")
        self._dtypes = Weighted(calibration.table("dtypes/decoder"))
        self._texts: dict[str, str] = {}

    def one(self, cell: Cell, index: int = 0) -> Draft:
        """A single model of the type's first body, or of the one at `index` (counted round)."""
        bodies = self._pool.get(cell.model_type, ())
        body = bodies[index % len(bodies)] if bodies else Body({}, 0, "float32", 1.0, False)
        return self._draft(cell, body, self._labels(cell), body.dtype, "base", 0.0)

    def fill(self, cell: Cell, count: int, drafts: list[Draft]) -> None:
        """Append `count` models in families; a family is cut where the cell is full."""
        bodies = self._pool.get(cell.model_type, ())
        if not bodies:
            drafts.extend(self.one(cell) for _ in range(count))
            return
        choice = self._choice(bodies)
        left = count
        while left > 0:
            body = bodies[choice.draw(self._draws)]
            alone = self._draws.chance(self._lonely)
            size = 1 if alone else min(left, 1 + self._sizes.draw(self._draws))
            self._family(cell, body, size, drafts)
            left -= size

    def _family(self, cell: Cell, body: Body, size: int, drafts: list[Draft]) -> None:
        labels = self._labels(cell)
        fame = self._draws.bell() + 0.4 * math.log(size)
        first = len(drafts)
        for member in range(size):
            role, config, dtype = "base", body.config, body.dtype
            if member:
                role = "merge" if self._draws.chance(2 * self._merge) else "finetune"
                labels = self._labels(cell)
                config = self._derived(cell, body)
                dtype = self._dtypes.draw(self._draws) if self._redraws(cell) else body.dtype
            changed = Body(config, body.parameters, dtype, body.weight, body.published)
            draft = self._draft(cell, changed, labels, dtype, role, fame if member == 0 else 0.25 * fame - 1.0)
            if member:
                draft.base = first
            drafts.append(draft)

    def _draft(self, cell: Cell, body: Body, labels: Mapping[str, Any], dtype: str, role: str, fame: float) -> Draft:
        size = body.parameters
        known = self._known["decoders" if cell.task in DECODING else "others"]
        return Draft(
            label=f"{cell.model_type}-{size_word(size)}-{role}",
            popularity=fame
            + (0.0 if body.published else OBSCURE)
            + self._draws.bell()
            - SIZE_PENALTY * math.log(max(size, SMALL) / SMALL),
            library=cell.library,
            task=HUB_TASK.get(cell.model_type, cell.task) if cell.task == "text-generation" else cell.task,
            model_type=cell.model_type,
            class_name=cell.class_name,
            text=self._text(cell, body.config, labels, dtype),
            parameters=size if size and self._draws.chance(known) else None,
        )

    def _text(self, cell: Cell, config: Mapping[str, Any], labels: Mapping[str, Any], dtype: str) -> str:
        """Canonical, as :func:`neuronqa.catalog.config.stored_text` keeps it; equal texts are one object."""
        named = {"architectures": [cell.class_name], "model_type": cell.model_type, "torch_dtype": dtype}
        text = canonical_json({**config, **labels, **named})
        return self._texts.setdefault(text, text)

    def _choice(self, bodies: Sequence[Body]) -> Weighted[int]:
        roots = [index for index, body in enumerate(bodies) if body.published] or [0]
        others = len(bodies) - len(roots)
        share = max(self._custom, 0.5 * (others > 0 and not bodies[0].published))
        whole = sum(bodies[index].weight for index in roots)
        weights = {index: (1 - share if others else 1) * bodies[index].weight / whole for index in roots}
        weights |= {index: share / others for index in range(len(bodies)) if index not in weights}
        return Weighted(weights)

    def _labels(self, cell: Cell) -> dict[str, Any]:
        """Number of labels and kind of problem, for heads that classify."""
        if "Classification" not in cell.class_name and "ForSemanticSegmentation" not in cell.class_name:
            return {}
        count = self._draws.one(LABELS)
        kind: dict[str, Any] = {}
        if cell.task == "text-classification":
            place = self._draws.below(20)
            if place == 0:
                kind, count = {"problem_type": "regression"}, 1
            elif place == 1:
                kind = {"problem_type": "multi_label_classification"}
            elif place < 8:
                kind = {"problem_type": "single_label_classification"}
        return {"id2label": {str(index): f"LABEL_{index}" for index in range(count)}, **kind}

    def _derived(self, cell: Cell, body: Body) -> dict[str, Any]:
        """What a fine-tune changes: mostly nothing, sometimes the vocabulary or the context."""
        place = self._draws.below(100)
        vocabulary = body.config.get("vocab_size")
        if place < 5 and isinstance(vocabulary, int):
            return {**body.config, "vocab_size": vocabulary + self._draws.one(ADDED_TOKENS)}
        if place < 7 and cell.task in DECODING and isinstance(body.config.get("rope_theta"), float):
            return {**body.config, "rope_theta": body.config["rope_theta"] * 4}
        if cell.model_type == "marian" and isinstance(vocabulary, int):
            language = 32_000 + 2_048 * self._draws.below(16)
            return {
                **body.config,
                "vocab_size": language + 1,
                "pad_token_id": language,
                "decoder_start_token_id": language,
            }
        return body.config

    def _redraws(self, cell: Cell) -> bool:
        return cell.task in DECODING and self._draws.chance(0.2)


def size_word(parameters: int) -> str:
    """`8b`, `125m`, `16k`: how repositories name sizes."""
    for unit, word in ((1e12, "t"), (1e9, "b"), (1e6, "m"), (1e3, "k")):
        if parameters >= 0.95 * unit:
            value = parameters / unit
            return f"{value:.1f}".removesuffix(".0") + word if value < 10 else f"{value:.0f}{word}"
    return "0"


def _family_sizes(calibration: Calibration) -> Weighted[int]:
    """Children of one base: none, one, or a tail that gives the published mean."""
    largest = int(calibration.number("families/largest"))
    single = calibration.number("families/single")
    slope = _tail_slope(largest, (calibration.number("families/mean") - single) / (1 - single))
    tail = {size: size**-slope for size in range(2, largest + 1)}
    whole = sum(tail.values())
    return Weighted({1: single, **{size: (1 - single) * weight / whole for size, weight in tail.items()}})


def _tail_slope(largest: int, mean: float) -> float:
    """The exponent at which sizes 2..largest have the wanted mean (bisection)."""
    low, high = 1.0, 4.0
    for _ in range(40):
        middle = (low + high) / 2
        weights = [size**-middle for size in range(2, largest + 1)]
        found = sum(size * weight for size, weight in enumerate(weights, start=2)) / sum(weights)
        low, high = (middle, high) if found > mean else (low, middle)
    return low
