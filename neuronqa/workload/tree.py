"""A config dict seen as a tree of sub-configs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

_NOT_CONFIGS: Final = frozenset(
    {"quantization_config", "compression_config", "task_specific_params", "generation_config"}
)


@dataclass(frozen=True, slots=True)
class Node:
    """One (sub-)config: where it is, and its fields, shared with the tree it came from."""

    path: str
    """`""` for the root, else e.g. `text_config` or `backbones.0`."""
    fields: dict[str, Any]

    @property
    def model_type(self) -> str:
        return str(self.fields.get("model_type") or "")


def nodes(config: dict[str, Any]) -> tuple[Node, ...]:
    """Return the config and all its sub-configs, parents first."""
    return tuple(_walk("", config))


def children(fields: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and fields of each direct sub-config."""
    for name, value in fields.items():
        if name in _NOT_CONFIGS:
            continue
        if isinstance(value, dict) and "model_type" in value:
            yield name, value
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if isinstance(item, dict) and "model_type" in item:
                    yield f"{name}.{index}", item


def is_subconfig(name: str, value: Any) -> bool:
    """Is `value` a sub-config, or a list of them, rather than a plain value?"""
    if name in _NOT_CONFIGS:
        return False
    if isinstance(value, list):
        return any(isinstance(item, dict) and "model_type" in item for item in value)
    return isinstance(value, dict) and "model_type" in value


def is_numbered(value: Any) -> bool:
    """Is it a mapping from layer numbers to settings?"""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(str(k).isdigit() and isinstance(v, dict) for k, v in value.items())
    )


def is_count(value: Any) -> TypeGuard[int]:
    """Is `value` an int that counts something (bool is not)?"""
    return isinstance(value, int) and not isinstance(value, bool)


def is_counts(value: Any) -> TypeGuard[list[int]]:
    """Is `value` a list of ints?"""
    return isinstance(value, list) and bool(value) and all(is_count(item) for item in value)


def _walk(path: str, fields: dict[str, Any]) -> Iterator[Node]:
    yield Node(path, fields)
    for name, value in children(fields):
        yield from _walk(f"{path}.{name}" if path else name, value)
