"""Operators: what the device supports, what falls back, who needs it, and in which forms."""

from __future__ import annotations

from typing import Final

from neuronqa.dashboard.address import Address
from neuronqa.dashboard.pages import columns
from neuronqa.dashboard.view import Column, Form, Scope, View, listed, to
from neuronqa.db.browse import models, ops
from neuronqa.errors import BadInput

OP: Final = Column(name="op", title="operator", form=Form.MONO, href=to("/ops", "op"))
OPS: Final = (
    OP,
    Column(name="support", title="support"),
    Column(name="entries", title="entries that lack it", form=Form.COUNT),
    Column(name="workloads", title="workloads", form=Form.COUNT),
    Column(name="calls", title="calls", form=Form.COUNT),
    Column(name="fallback_calls", title="of them on the CPU", form=Form.COUNT),
    Column(name="fallback_bytes", title="moved", form=Form.BYTES),
)
SAMPLES: Final = (
    Column(name="dtype", title="dtype", form=Form.MONO),
    Column(name="shapes", title="shapes of the inputs", form=Form.SHAPES),
    Column(name="strides", title="strides", form=Form.SHAPES),
    Column(name="phase", title="phase"),
    Column(name="direction", title="direction"),
    columns.ENTRIES,
    columns.DOWNLOADS,
    Column(name="workloads", title="workloads", form=Form.COUNT),
    Column(name="calls", title="calls", form=Form.COUNT),
    Column(name="attempt", title="seen in", form=Form.MONO, href=to("/cases", "attempt")),
)
NEEDING: Final = (
    Column(name="hash", title="workload", form=Form.MONO, href=to("/workloads", "hash")),
    columns.FAMILY,
    columns.CLASS,
    columns.ENTRIES,
    columns.DOWNLOADS,
    Column(name="calls", title="calls off the device", form=Form.COUNT),
)
MECHANISMS: Final = (
    "on the device",
    "no kernel",
    "arguments refused",
    "recovered after an error",
    "hidden in a kernel",
    "whole graph on the CPU",
)
"""As numbered by :class:`neuronqa.domain.observation.OpUse`."""


def page(scope: Scope) -> View:
    caption = "Operators, those first that most entries need and the device did not run"
    table = scope.table(ops.listing(scope.sweep.id), OPS, caption)
    return View(template="listing.html", title="Operators", data=listed(table), table=table)


def detail(scope: Scope, name: str) -> View:
    """One operator."""
    sweep = scope.sweep
    uses = [dict(one._mapping) for one in ops.uses(scope.db, sweep.id, name)]
    if not uses:
        raise BadInput(f"no operator {name!r} was used in sweep {sweep.name}")
    of_it = (("op", name), ("sweep", sweep.name))
    caption = "Worksheet: the forms a kernel has to take, those first that most entries need"
    sheet = scope.part(ops.worksheet(sweep.id), SAMPLES, caption, Address("/worksheet", of_it))
    needing_it = scope.part(
        ops.needing(sweep.id), NEEDING, "Executed workloads that need it", Address("/needing", of_it)
    )
    kin = scope.part(models.listing(sweep), columns.MODELS, "Models that need it", Address("/models", of_it))
    return View(
        template="op.html",
        title=name,
        data={
            "op": name,
            "uses": uses,
            "worksheet": listed(sheet),
            "workloads": listed(needing_it),
            "models": listed(kin),
        },
        show={
            "op": name,
            "uses": uses,
            "mechanisms": MECHANISMS,
            "worksheet": sheet,
            "needing": needing_it,
            "models": kin,
        },
    )


def worksheet(scope: Scope) -> View:
    """The forms in which operators are needed: filtered by `op`, the samples a kernel is tested with."""
    table = scope.table(ops.worksheet(scope.sweep.id), (OP, *SAMPLES), "Forms in which operators are needed")
    return View(template="listing.html", title="Worksheet", data=listed(table), table=table)


def needing(scope: Scope) -> View:
    """Workloads by the operators they lack."""
    table = scope.table(ops.needing(scope.sweep.id), (OP, *NEEDING), "Executed workloads by the operators they lack")
    return View(template="listing.html", title="Workloads that lack an operator", data=listed(table), table=table)
