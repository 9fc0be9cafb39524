"""From one item of /api/models to facts, and what they say about fetching its config.

Items are hostile: any member may be missing, of another type, or ten thousand characters long. What is not as it should
be is left out; an entry never is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from neuronqa.catalog import rows, status
from neuronqa.catalog.status import Absence

EXPAND: Final = (
    "config", "safetensors", "downloads", "gated", "disabled", "library_name", "pipeline_tag", "sha", "tags",
    "baseModels", "gguf",
)  # fmt: skip
"""What is asked of each item. `config` is a digest of config.json, enough for triage and not for building."""
SHA: Final = re.compile(r"[0-9a-f]{40}", re.ASCII)
REPO_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)
"""What may be put into an address; the Hub itself allows no other ids."""

Facts = dict[str, Any]
"""Members of an entry, without rank; `absence` only where it is decided."""


def facts(item: Any, authenticated: bool) -> Facts | None:
    """Read an item; None for one that has no id and so is no entry."""
    if not isinstance(item, Mapping) or not _text(item.get("id")):
        return None
    config = _mapping(item.get("config"))
    found: Facts = {
        "id": _text(item["id"]),
        "downloads": _count(item.get("downloads")),
        "revision": _matching(SHA, item.get("sha")),
        "library": _library(item, config),
        "task": _text(item.get("pipeline_tag")),
        "model_type": _text(config.get("model_type")),
        "architectures": _texts(config.get("architectures")),
        "custom_code": bool(_mapping(config.get("auto_map"))),
        "quantization": _quantization(_mapping(config.get("quantization_config"))),
        "parameters": _count(_mapping(item.get("safetensors")).get("total")) or None,
        "base_model": _base(_mapping(item.get("baseModels"))),
    }
    found["absence"] = _absence(item, found, authenticated)
    return {key: value for key, value in found.items() if value or key in ("id", "downloads")}


def _absence(item: Mapping[str, Any], found: Facts, authenticated: bool) -> str:
    """Why no config is to be fetched; empty where it is."""
    if item.get("disabled") is True:
        return Absence.DISABLED
    if not fetchable(found["id"]):
        return f"{Absence.FETCH_ERROR}: not an id the Hub gives"
    library = found["library"].lower()
    if library in status.ADAPTERS or library in status.OTHERS or library == status.GGUF:
        return Absence.NOT_ASKED
    if item.get("gated") and not authenticated:
        return Absence.GATED
    known = library in status.TRANSFORMERS - {""}
    if not known and not found["model_type"] and not found["architectures"]:
        return Absence.NOT_ASKED
    return ""


def fetchable(name: str) -> bool:
    """May this id be part of an address?"""
    return REPO_ID.fullmatch(name) is not None and ".." not in name


def _library(item: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The library as the Hub names it; `peft` and `gguf` where only the files tell."""
    if _mapping(config.get("peft")) or _mapping(config.get("adapter_transformers")):
        return "peft"
    tags = _texts(item.get("tags"))
    weights = bool(_mapping(item.get("safetensors"))) or bool({"pytorch", "tf", "jax", "safetensors"} & set(tags))
    if _mapping(item.get("gguf")) and not weights:
        return status.GGUF
    return _text(item.get("library_name"))


def _quantization(block: Mapping[str, Any]) -> str:
    if not block:
        return ""
    return _text(block.get("quant_method")) or f"{_count(block.get('bits'))} bits"


def _base(block: Mapping[str, Any]) -> str:
    models = block.get("models")
    first = models[0] if isinstance(models, list) and models else None
    return _text(_mapping(first).get("id"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    return value[: rows.TEXT_LIMIT] if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    return [_text(item) for item in value[:64] if _text(item)] if isinstance(value, list) else []


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63 else 0


def _matching(pattern: re.Pattern[str], value: Any) -> str:
    text = _text(value)
    return text if pattern.fullmatch(text) else ""
