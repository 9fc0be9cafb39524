"""A catalog's entries as facts, and the statuses a sweep derives from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from neuronqa.domain.outcome import Kind, Outcome


class Source(StrEnum):
    """Where a catalog's facts come from; printed wherever a rate is."""

    HUB = "hub"
    SYNTHETIC = "synthetic"
    FILE = "file"
    BUNDLED = "bundled"


class ListingStatus(StrEnum):
    """May this entry be run at all, and if not, why? No entry is ever dropped for it."""

    ELIGIBLE = "eligible"
    NO_CONFIG = "no_config"
    GATED = "gated"
    PRIVATE_OR_REMOVED = "private_or_removed"
    DISABLED = "disabled"
    NON_TRANSFORMERS = "non_transformers"
    ADAPTER = "adapter"
    GGUF_ONLY = "gguf_only"
    QUANTIZED = "quantized"
    REMOTE_CODE = "remote_code"
    UNKNOWN_MODEL_TYPE = "unknown_model_type"
    CONFIG_MALFORMED = "config_malformed"
    CONFIG_INVALID = "config_invalid"
    TOO_LARGE = "too_large"
    FETCH_ERROR = "fetch_error"

    @property
    def kind(self) -> Kind:
        return Kind(f"listing:{self.value}")

    def outcome(self, reason: str = "") -> Outcome:
        """The outcome of the `eligible` rung; `reason` may come from outside and is cleaned."""
        return Outcome.of(self.kind, reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogInfo:
    """What names a catalog in every report: `sha256` covers every fact in it."""

    name: str
    source: Source
    sha256: str
    registered: int
    created: str
    """ISO 8601, UTC; empty where a date would break reproducibility (the offline edition)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of a catalog: facts only.

    `config` is the hash under which the catalog keeps the config's text, or None when there is none, and then
    `absence` says why, in the words of :class:`neuronqa.catalog.status.Absence`. `workload` is a workload the
    catalog itself defines, as strict JSON; only catalogs on this machine may do so, never the Hub.
    """

    id: str
    rank: int
    downloads: int
    revision: str = ""
    library: str = ""
    task: str = ""
    model_type: str = ""
    architectures: tuple[str, ...] = ()
    custom_code: bool = False
    quantization: str = ""
    parameters: int | None = None
    base_model: str = ""
    config: str | None = None
    absence: str = ""
    workload: Mapping[str, Any] | None = None
    expected: Mapping[str, str] = field(default_factory=dict)
    """What must be found, where a catalog knows: `listing`, `CHECK` or `VARIANT CHECK`, to the text of an outcome."""
