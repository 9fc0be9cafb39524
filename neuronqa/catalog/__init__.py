"""Snapshots of facts: from the Hub, from files, from the offline generator; selectors; verification."""

from neuronqa.catalog.catalog import Catalog, selected
from neuronqa.catalog.resolve import open_catalog as open  # noqa: A004 - `catalog.open` is the contract's name
from neuronqa.catalog.resolve import own_policy

__all__ = ["Catalog", "open", "own_policy", "selected"]
