"""What the facts alone say about an entry: may it be run, and if not, why?

Statuses that hang on the installed versions (unknown types, invalid values, size) are decided from the config by the
planner; this module decides all others, in the order in which they hide each other on the Hub.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, assert_never

from neuronqa.domain.catalog import Entry, ListingStatus


class Absence(StrEnum):
    """Why an entry has no config. In an entry it may be followed by `: ` and a detail (`fetch-error: HTTP 503`)."""

    GATED = "gated"
    """401 or 403 with `GatedRepo`: the licence must be accepted first."""
    REPO_NOT_FOUND = "repo-not-found"
    """401 without a code, or 404 with `RepoNotFound`: private, deleted and renamed look alike."""
    DISABLED = "disabled"
    """403 `Access to this resource is disabled`."""
    ENTRY_NOT_FOUND = "entry-not-found"
    """404 with `EntryNotFound`: the repository has no config.json."""
    NOT_ASKED = "not-asked"
    """The listing already said that it holds no transformers model, so nothing was fetched."""
    TOO_LONG = "too-long"
    """The body was larger than any config may be."""
    FETCH_ERROR = "fetch-error"
    """The network or the server failed each time; a later pull asks again."""
    NOT_FETCHED = "not-fetched"
    """Only the listing was wanted."""


ADAPTERS: Final = frozenset({"peft", "adapter-transformers", "lora"})
GGUF: Final = "gguf"
TRANSFORMERS: Final = frozenset(
    {"", "transformers", "sentence-transformers", "setfit", "pylate", "span-marker", "unsloth"}
)
"""Libraries whose repositories hold plain transformers models; an unnamed library is decided by its config."""
OTHERS: Final = frozenset(
    {
        "allennlp", "asteroid", "bertopic", "birefnet", "coreml", "ctranslate2", "depth-anything-v2", "diffusers",
        "espnet", "exllamav2", "fairseq", "fastai", "fasttext", "flair", "joblib", "keras", "keras-hub", "lerobot",
        "litert", "ml-agents", "mlx", "mlx-image", "nemo", "onnx", "open_clip", "openvino", "paddlenlp", "paddleocr",
        "pyannote-audio", "pythae", "rl-algo-impls", "sample-factory", "sklearn", "spacy", "speechbrain",
        "stable-baselines3", "stanza", "tensorflowtts", "terratorch", "tf-keras", "timesfm", "timm", "transformers.js",
        "ultralytics", "unity-sentis",
    }
)  # fmt: skip
"""Libraries whose repositories hold no transformers model, after huggingface.js `model-libraries.ts` (2025)."""


def from_facts(entry: Entry) -> tuple[ListingStatus, str] | None:
    """Status and reason if the facts decide, None if the config must.

    A fact about the repository goes before one about its contents; what kind of model it is goes before why its config
    is absent, because an adapter without a config lacks nothing.
    """
    if entry.workload is not None:
        return ListingStatus.ELIGIBLE, "defined by the catalog"
    word, _, detail = entry.absence.partition(":")
    absence = _absence(word)
    if absence in _REPOSITORY:
        return _REPOSITORY[absence], detail.strip()
    by_kind = _kind(entry)
    if by_kind is not None:
        return by_kind
    if entry.quantization:
        return ListingStatus.QUANTIZED, entry.quantization
    if entry.config is not None:
        return None
    return _without_config(absence, detail.strip() or entry.absence)


_REPOSITORY: Final = {
    Absence.DISABLED: ListingStatus.DISABLED,
    Absence.REPO_NOT_FOUND: ListingStatus.PRIVATE_OR_REMOVED,
}


def _kind(entry: Entry) -> tuple[ListingStatus, str] | None:
    library = entry.library.lower()
    if library in ADAPTERS:
        return ListingStatus.ADAPTER, f"library {entry.library}"
    if library == GGUF:
        return ListingStatus.GGUF_ONLY, ""
    if library in OTHERS:
        return ListingStatus.NON_TRANSFORMERS, entry.library
    if library not in TRANSFORMERS and entry.config is None and entry.absence.startswith(Absence.NOT_ASKED):
        return ListingStatus.NON_TRANSFORMERS, entry.library
    return None


def _without_config(absence: Absence | None, detail: str) -> tuple[ListingStatus, str]:
    match absence:
        case Absence.GATED:
            return ListingStatus.GATED, detail if detail != Absence.GATED else ""
        case Absence.ENTRY_NOT_FOUND:
            return ListingStatus.NO_CONFIG, "the repository has no config.json"
        case Absence.NOT_ASKED:
            return ListingStatus.NO_CONFIG, "the listing names no architecture"
        case Absence.TOO_LONG:
            return ListingStatus.CONFIG_MALFORMED, "larger than any config may be"
        case Absence.FETCH_ERROR:
            return ListingStatus.FETCH_ERROR, detail
        case Absence.NOT_FETCHED:
            return ListingStatus.FETCH_ERROR, "only the listing was pulled"
        case Absence.DISABLED | Absence.REPO_NOT_FOUND:
            raise AssertionError("decided before")
        case None:
            return ListingStatus.NO_CONFIG, detail or "no reason was recorded"
        case _:
            assert_never(absence)


def _absence(word: str) -> Absence | None:
    try:
        return Absence(word.strip())
    except ValueError:
        return None
