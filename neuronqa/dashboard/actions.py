"""What a person does to a cluster from its page. Each is one function of triage, which journals it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from sqlalchemy import Engine

from neuronqa.domain.cluster import State
from neuronqa.errors import BadInput, UsageError
from neuronqa.triage import actions

DAY_S: Final = 86_400.0
LONGEST_DAYS: Final = 366
LARGEST_FORM: Final = 65_536
"""Bytes."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """An action that was asked for: the form's fields, and the journal version its page showed."""

    cluster: str
    actor: str
    fields: Mapping[str, str]

    @property
    def expected(self) -> int:
        """Raises UsageError where the form does not say what it had seen."""
        return number(self.fields, "version", 0, 10**9)


def fields(body: bytes) -> dict[str, str]:
    """A form's fields. Raises UsageError for what is no small form."""
    if len(body) > LARGEST_FORM:
        raise UsageError("the form is too large")
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=50))


def number(given: Mapping[str, str], name: str, least: int, most: int) -> int:
    """Raises UsageError for anything but a number in the range."""
    text = given.get(name, "").strip()
    if not text.isascii() or not text.isdecimal() or not least <= int(text[:12]) <= most:
        raise UsageError(f"{name} must be a number from {least} to {most}")
    return int(text)


def do(engine: Engine, action: str, order: Order) -> str:
    """Carry an order out; returns the cluster to look at then. Raises what triage raises, BadInput for no action."""
    if action not in ACTIONS:
        raise BadInput(f"there is no action {action!r:.40}")
    return ACTIONS[action](engine, order) or order.cluster


def _mute(engine: Engine, order: Order) -> None:
    until = time.time() + DAY_S * number(order.fields, "days", 1, LONGEST_DAYS)
    reason = _needed(order, "reason")
    owner = order.fields.get("owner", "").strip() or order.actor
    actions.mute(
        engine, order.cluster, owner=owner, reason=reason, until=until, actor=order.actor, expected=order.expected
    )


def _unmute(engine: Engine, order: Order) -> None:
    actions.unmute(engine, order.cluster, actor=order.actor, reason=_reason(order), expected=order.expected)


def _assign(engine: Engine, order: Order) -> None:
    actions.assign(
        engine, order.cluster, order.fields.get("who", "").strip(), actor=order.actor, expected=order.expected
    )


def _mark(engine: Engine, order: Order) -> None:
    try:
        state = State(order.fields.get("state", ""))
    except ValueError as error:
        raise UsageError("there is no such state") from error
    actions.mark(engine, order.cluster, state, actor=order.actor, reason=_reason(order), expected=order.expected)


def _merge(engine: Engine, order: Order) -> str:
    into = _needed(order, "into")
    return str(actions.merge(engine, into, [order.cluster], actor=order.actor, reason=_reason(order)))


def _split(engine: Engine, order: Order) -> str:
    part, value = _needed(order, "part"), _needed(order, "value")
    return str(actions.split(engine, order.cluster, part, [value], actor=order.actor, reason=_reason(order)))


def _reason(order: Order) -> str:
    return order.fields.get("reason", "").strip()


def _needed(order: Order, name: str) -> str:
    text = order.fields.get(name, "").strip()
    if not text:
        raise UsageError(f"{name} is missing")
    return text


ACTIONS: Final[Mapping[str, Callable[[Engine, Order], str | None]]] = {
    "mute": _mute,
    "unmute": _unmute,
    "assign": _assign,
    "mark": _mark,
    "merge": _merge,
    "split": _split,
}
