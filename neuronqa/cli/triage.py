"""`neuronqa triage`: root causes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from neuronqa.cli.options import AsJson, Db, caller
from neuronqa.cli.output import out, print_json
from neuronqa.errors import UsageError

if TYPE_CHECKING:
    from neuronqa.db.clusters import ClusterCount

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="Root causes and what each blocks.",
)

Cluster = Annotated[str, typer.Argument(metavar="CLUSTER", help="A cluster's id, or a cause key it holds.")]
Reason = Annotated[str, typer.Option(help="Why, for the journal.")]
Sweep = Annotated[
    str | None, typer.Argument(metavar="[SWEEP]", help="A sweep's name (default: the newest).", show_default=False)
]


@app.command("list", help="List the root causes of a sweep in the order of fixes that unlocks most entries.")
def list_causes(
    name: Sweep = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 40,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.db import clusters, queries
    from neuronqa.db.engine import open_engine
    from neuronqa.report.value import cause_json
    from neuronqa.triage.analysis import preview

    with open_engine(db).connect() as connection:
        row = queries.sweep(connection, name)
        kept = clusters.triaged(connection, row.id)
        found = clusters.counts(connection, row.id) if kept else preview(connection, row)
    if as_json:
        body = [cause_json(one) for one in found[:limit]]
        extra = {"grade": kept.grade, "unlock": kept.unlock} if kept else {}
        print_json({"schema_version": 1, "sweep": row.name, "causes": body, "count": len(found), **extra})
        return
    out.print(f"{len(found)} root causes in sweep {row.name} (catalog source: {row.catalog.source.value})")
    out.print(_table(found[:limit]))
    if len(found) > limit:
        out.print(f"{len(found) - limit:,} more: --limit {len(found)}")


def _table(found: Sequence[ClusterCount]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("id", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("outcome", overflow="fold", ratio=1)
    table.add_column("at fault", no_wrap=True)
    for column in ("entries", "alone", "so far"):
        table.add_column(column, justify="right", no_wrap=True)
    for one in found:
        id_ = str(one.cluster.id) if one.cluster.id > 0 else "-"
        outcome = escape(str(one.cluster.outcome))
        numbers = (f"{n:,}" for n in (one.entries, one.sole_entries, one.unlocked_entries))
        table.add_row(id_, one.state.value, outcome, one.cluster.at_fault.value, *numbers)
    return table


@app.command("show", help="Show a cluster: what made its keys, its cases, its journal.")
def show(cluster: Cluster, db: Db = None, as_json: AsJson = False) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.report.cluster import cluster_json, cluster_page

    with open_engine(db).connect() as connection:
        page = cluster_page(connection, cluster)
    if as_json:
        print_json(cluster_json(page))
        return
    from neuronqa.report.cluster_text import render

    out.print(render(page))


@app.command("merge", help="Let one cluster hold the keys of others, now and in later sweeps.")
def merge(
    into: Cluster,
    others: Annotated[list[str], typer.Argument(metavar="OTHER...", help="Clusters that are the same cause.")],
    reason: Reason = "",
    db: Db = None,
) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.triage import actions

    kept = actions.merge(open_engine(db), into, others, actor=caller(), reason=reason)
    out.print(f"cluster {kept} holds them now")


@app.command("split", help="Give the failures that have a part's value to a new cluster, now and in later sweeps.")
def split(
    cluster: Cluster,
    part: Annotated[str, typer.Option("--by", help="family, workload, mode, dtype, phase, check, outcome, or key.")],
    values: Annotated[list[str], typer.Argument(metavar="VALUE...", help="What is split off.")],
    reason: Reason = "",
    db: Db = None,
) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.triage import actions

    fresh = actions.split(open_engine(db), cluster, part, values, actor=caller(), reason=reason)
    out.print(f"cluster {fresh} is new")


@app.command("move", help="Give one key from a cluster to another.")
def move(
    key: Annotated[str, typer.Argument(metavar="KEY")],
    source: Annotated[str, typer.Argument(metavar="FROM")],
    target: Annotated[str, typer.Argument(metavar="TO")],
    reason: Reason = "",
    db: Db = None,
) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.triage import actions

    kept = actions.move_key(open_engine(db), key, source, target, actor=caller(), reason=reason)
    out.print(f"cluster {kept} holds {escape(key)} now")


@app.command("mute", help="Put up with a cluster for some days. It still counts as failing, in every rate.")
def mute(
    cluster: Cluster,
    reason: Annotated[str, typer.Option(help="Why.")],
    owner: Annotated[str, typer.Option(help="Who answers for it.")],
    days: Annotated[float, typer.Option(min=0.01, max=366, help="For how long.")] = 14.0,
    db: Db = None,
) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.triage import actions

    until = time.time() + days * 86400
    actions.mute(open_engine(db), cluster, owner=owner, reason=reason, until=until, actor=caller())


@app.command("unmute", help="Take a waiver back.")
def unmute(cluster: Cluster, reason: Reason = "", db: Db = None) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.triage import actions

    actions.unmute(open_engine(db), cluster, actor=caller(), reason=reason)


@app.command("assign", help="Say who looks after a cluster.")
def assign(cluster: Cluster, who: Annotated[str, typer.Argument(metavar="WHO")], db: Db = None) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.triage import actions

    actions.assign(open_engine(db), cluster, who, actor=caller())


@app.command("mark", help="Declare a cluster invalid, expected, fix-pending, landed, or (again) ongoing.")
def mark(
    cluster: Cluster, state: Annotated[str, typer.Argument(metavar="STATE")], reason: Reason = "", db: Db = None
) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.domain.cluster import State
    from neuronqa.triage import actions

    if state not in set(State):
        raise UsageError(f"there is no state {state!r:.40}", hint=", ".join(actions.MARKS))
    actions.mark(open_engine(db), cluster, State(state), actor=caller(), reason=reason)


@app.command("update", help="Triage a sweep anew: after an interrupted end, or when the rules of keys have changed.")
def update(name: Sweep = None, db: Db = None) -> None:
    from neuronqa.db.engine import open_engine
    from neuronqa.report.build import triaged

    out.print(f"{triaged(open_engine(db), name):,} root causes")
