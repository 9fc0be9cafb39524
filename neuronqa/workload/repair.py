"""What a model's own error says it needs: from one adaptation to the next, bounded, and every step recorded."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from torch import Tensor

from neuronqa.workload.inputs import forms
from neuronqa.workload.inputs.adaptation import Adaptation
from neuronqa.workload.inputs.labels import targets
from neuronqa.workload.inputs.placeholders import token
from neuronqa.workload.inputs.scene import Scene
from neuronqa.workload.inputs.table import MODALITIES

MOST_STEPS: Final = 48
MOST_WIDTH: Final = 8192
"""No input is widened beyond this on a model's word."""

_COUNTS: Final = re.compile(r"tokens?:? *(\d+)[^0-9]*features?:? *(\d+)")
_VECTORS: Final = re.compile(r"(\d+) feature vectors for \d+ placeholder tokens \(id (\d+)\)")
_MISSED: Final = (
    re.compile(r"missing \d+ required (?:positional|keyword-only) arguments?: '(\w+)'"),
    re.compile(
        r"(?:You have to specify|must provide|[Nn]eed to specify|should be provided|have to provide|specify)"
        r" (?:either )?`?(\w+)`?"
    ),
    re.compile(r"`(\w+)` (?:must|should|has to|is required|needs)"),
)
_UNTRAINED: Final = re.compile(r"support training|[Tt]raining .*not (yet )?supported")
_BOTH: Final = re.compile(r"[Bb]oth `?(\w+)`? and `?(\w+)`?")
_WIDTHS: Final = (
    (re.compile(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x"), -1),
    (
        re.compile(
            r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\) at non-singleton dimension 2"
        ),
        -1,
    ),
    (re.compile(r"normalized_shape=\[(?P<want>\d+)\], expected .* input of size\[[\d, ]*?(?P<have>\d+)\]"), -1),
    (re.compile(r"to have (?P<want>\d+) channels, but got (?P<have>\d+) channels"), 1),
)
_UNSAID: Final = frozenset(
    {"labels", "attention_mask", "inputs_embeds", "input_ids", "position_ids", "past_key_values"}
)
"""Arguments whose names stand in many messages that are not about them."""


@dataclass(frozen=True)
class Trouble:
    """A failed forward."""

    scene: Scene
    adaptation: Adaptation
    inputs: dict[str, Any]
    error: Exception

    @property
    def text(self) -> str:
        return str(self.error)

    @property
    def modality(self) -> str:
        if re.search(r"audio|speech", self.text, re.IGNORECASE):
            return "audio"
        return "video" if re.search(r"video", self.text, re.IGNORECASE) else "image"


Remedy = Callable[[Trouble], Adaptation | None]


def remedies(trouble: Trouble) -> list[Adaptation]:
    """Every adaptation that may cure the trouble, most promising first."""
    return [found for remedy in _REMEDIES if (found := remedy(trouble)) is not None]


def _count_placeholders(trouble: Trouble) -> Adaptation | None:
    """`image tokens: 0, features: 16` tells how many placeholders there must be."""
    told = _COUNTS.search(trouble.text)
    if told is None or "input_ids" not in trouble.inputs or token(trouble.scene, trouble.modality) is None:
        return None
    have, want = int(told.group(1)), int(told.group(2))
    hidden = trouble.scene.hidden
    if have == want:
        want = want // hidden if want % hidden == 0 else 0
    elif want % hidden == 0 and want // hidden >= 1 and have % hidden == 0 and have:
        want //= hidden
    return trouble.adaptation.placed(trouble.modality, want)


def _count_vectors(trouble: Trouble) -> Adaptation | None:
    """`8 feature vectors for 0 placeholder tokens (id 9)` names the placeholder too."""
    told = _VECTORS.search(trouble.text)
    for modality in ("image", "video", "audio") if told else ():
        if told and token(trouble.scene, modality) == int(told.group(2)):
            return trouble.adaptation.placed(modality, int(told.group(1)))
    return None


def _give_missed(trouble: Trouble) -> Adaptation | None:
    for pattern in _MISSED:
        told = pattern.search(trouble.text)
        if told and _can_give(trouble, told.group(1)):
            return trouble.adaptation.given(told.group(1))
    return None


def _give_named(trouble: Trouble) -> Adaptation | None:
    named = [
        name
        for name in trouble.scene.parameters
        if name not in _UNSAID and _can_give(trouble, name) and re.search(rf"\b{re.escape(name)}\b", trouble.text)
    ]
    return trouble.adaptation.given(*named) if named else None


def _widen(trouble: Trouble) -> Adaptation | None:
    """A product of mismatched shapes, where one of them is an input's own width."""
    for pattern, axis in _WIDTHS:
        told = pattern.search(trouble.text)
        if told is None:
            continue
        groups = told.groupdict()
        have, want = int(groups.get("have") or told.group(1)), int(groups.get("want") or told.group(2))
        for name, value in trouble.inputs.items():
            fits = isinstance(value, Tensor) and value.is_floating_point() and value.dim() > abs(axis)
            if (
                fits
                and value.shape[axis] == have
                and want <= MOST_WIDTH
                and f"{name}/{axis}" not in trouble.adaptation.sizes
            ):
                return trouble.adaptation.sized(name, axis, want)
    return None


def _give_sizes(trouble: Trouble) -> Adaptation | None:
    names = trouble.scene.parameters
    if "image_sizes" in names and "pixel_values" in trouble.inputs and "image_sizes" not in trouble.inputs:
        return trouble.adaptation.given("image_sizes")
    return None


def _not_both(trouble: Trouble) -> Adaptation | None:
    told = _BOTH.search(trouble.text)
    if told and "cannot" in trouble.text.lower() and {*told.groups()} <= set(trouble.inputs):
        return trouble.adaptation.dropped(told.group(2))
    return None


def _no_training(trouble: Trouble) -> Adaptation | None:
    """The head says that it has no loss."""
    refused = isinstance(trouble.error, NotImplementedError) or bool(_UNTRAINED.search(trouble.text))
    return replace(trouble.adaptation, labels=False, refused=True) if refused and trouble.adaptation.labels else None


def _give_decoder(trouble: Trouble) -> Adaptation | None:
    name = "decoder_input_ids"
    return trouble.adaptation.given(name) if name in trouble.scene.parameters and _can_give(trouble, name) else None


def _give_mask(trouble: Trouble) -> Adaptation | None:
    """Something that may be None was used: most often it is the mask of the text."""
    missing = "NoneType" in trouble.text and _can_give(trouble, "attention_mask")
    return trouble.adaptation.given("attention_mask") if missing else None


def _next_form(trouble: Trouble) -> Adaptation | None:
    """Another form of the first argument that has one left."""
    for name in trouble.inputs:
        labels = [form.label for form in forms(trouble.scene, name)]
        current = trouble.adaptation.forms.get(name, labels[0] if labels else "")
        if len(labels) > 1 and current in labels[:-1]:
            return trouble.adaptation.formed(name, labels[labels.index(current) + 1])
    return None


def _text_only(trouble: Trouble) -> Adaptation | None:
    """The last resorts, each a partial run: without the other modality, without labels, in evaluation mode."""
    optional = [n for n in MODALITIES if n in trouble.inputs and trouble.scene.parameters[n].default is None]
    if "input_ids" in trouble.inputs and optional:
        return Adaptation(labels=trouble.adaptation.labels).dropped(*optional)
    return None


def _no_labels(trouble: Trouble) -> Adaptation | None:
    given = trouble.adaptation.labels and bool(targets(trouble.scene, trouble.inputs))
    return Adaptation(labels=False) if given else None


def _evaluate(trouble: Trouble) -> Adaptation | None:
    labels = trouble.adaptation.labels and not targets(trouble.scene, trouble.inputs)
    return Adaptation(labels=labels, train=False) if trouble.adaptation.train else None


def _can_give(trouble: Trouble, name: str) -> bool:
    missing = name in trouble.scene.parameters and name not in trouble.inputs
    return missing and name not in trouble.adaptation.extra and bool(forms(trouble.scene, name))


_REMEDIES: Final[tuple[Remedy, ...]] = (
    _count_placeholders,
    _count_vectors,
    _give_missed,
    _give_named,
    _widen,
    _not_both,
    _no_training,
    _give_decoder,
    _give_sizes,
    _give_mask,
    _next_form,
    _text_only,
    _no_labels,
    _evaluate,
)
