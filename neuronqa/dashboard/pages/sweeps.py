"""Sweeps, and the controls of one."""

from __future__ import annotations

from typing import Final

from neuronqa.dashboard.address import Address
from neuronqa.dashboard.view import Column, Form, Record, Scope, View, listed, to
from neuronqa.db.browse import sweeps


def overview(row: Record, _sweep: str) -> str:
    """The overview of that sweep."""
    return str(Address("/", (("sweep", str(row["name"])),)))


SWEEPS: Final = (
    Column(name="name", title="sweep", form=Form.MONO, href=overview),
    Column(name="catalog", title="catalog"),
    Column(name="source", title="source"),
    Column(name="policy", title="policy"),
    Column(name="device", title="device"),
    Column(name="profile", title="profile"),
    Column(name="build", title="build", form=Form.MONO),
    Column(name="state", title="state"),
    Column(name="started", title="started (UTC)", form=Form.TIME),
    Column(name="wall_s", title="seconds", form=Form.COUNT),
)
CONTROLS: Final = (
    Column(name="name", title="control", form=Form.MONO),
    Column(name="guards", title="guards"),
    Column(name="expected", title="expected", form=Form.MONO),
    Column(name="judged", title="judged", form=Form.MONO),
    Column(name="caught", title="caught"),
    Column(name="attempt", title="attempt", form=Form.MONO, href=to("/cases", "attempt")),
)


def page(scope: Scope) -> View:
    table = scope.table(sweeps.listing(), SWEEPS, "Sweeps, newest first")
    return View(template="listing.html", title="Sweeps", data=listed(table), table=table)


def controls(scope: Scope) -> View:
    table = scope.table(sweeps.controls(scope.sweep.id), CONTROLS, "Planted faults and good twins of this sweep")
    return View(template="listing.html", title="Controls", data=listed(table), table=table)
