"""`neuronqa queue`: root causes that agents fix."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from neuronqa.cli.options import AsJson, Db, Home, caller
from neuronqa.cli.output import err, out, print_json
from neuronqa.errors import BadInput, EnvironmentFault, ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from neuronqa.db.fixes import ItemRow
    from neuronqa.fixqueue.service import FixQueue
    from neuronqa.fixqueue.verdict import Verdict

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="Root causes that agents take, fix and hand in; nothing is believed that was not seen.",
)

Item = Annotated[int, typer.Argument(metavar="ITEM", help="An item's number.")]
Lease = Annotated[
    str, typer.Option("--lease", envvar="NEURONQA_LEASE", metavar="TOKEN", help="The token `claim` printed.")
]
Who = Annotated[str | None, typer.Option("--as", metavar="NAME", help="Who acts (default: you).", show_default=False)]
Sweep = Annotated[
    str | None, typer.Argument(metavar="[SWEEP]", help="A sweep's name (default: the newest).", show_default=False)
]
Why = Annotated[str, typer.Option("--why", help="For the journal.")]


@app.command("fill", help="Offer the root causes of a sweep that unlock most, each with a script that shows it.")
def fill(
    sweep: Sweep = None,
    limit: Annotated[int, typer.Option(min=1, help="New items at most.")] = 20,
    who: Who = None,
    home: Home = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    queue = _queue(db, home)
    _settled(queue, sweep, who)
    filled = queue.fill(sweep, who or caller(), limit)
    if as_json:
        print_json({"schema_version": 1, **filled.to_json()})
        return
    out.print(f"{len(filled.items)} new items")
    _considered(filled.considered)


@app.command("list", help="List the items, and with --refused the clusters that are not offered, and why.")
def list_items(
    states: Annotated[list[str] | None, typer.Option("--state", help="Only items in this state; repeatable.")] = None,
    refused: Annotated[bool, typer.Option("--refused", help="Clusters of the newest sweep that are no items.")] = False,
    after: Annotated[int, typer.Option(min=0, help="Only items with a higher number.")] = 0,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many.")] = 50,
    home: Home = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.db import fixes
    from neuronqa.domain.fix import ItemState

    queue = _queue(db, home)
    if refused:
        considered = [one for one in queue.consider() if one.refusal is not None]
        if as_json:
            print_json({"schema_version": 1, "clusters": [one.to_json() for one in considered]})
        else:
            _considered(considered)
        return
    wrong = [one for one in states or () if one not in set(ItemState)]
    if wrong:
        raise UsageError(f"there is no state {wrong[0]!r:.40}", hint=", ".join(ItemState))
    with queue.reading() as connection:
        found = fixes.items(connection, [ItemState(one) for one in states or ()], after=after, limit=limit)
        counted = {state.value: n for state, n in fixes.by_state(connection).items() if n}
    if as_json:
        print_json({"schema_version": 1, "items": [one.to_json() for one in found], "states": counted})
        return
    out.print(_table(found))
    out.print(", ".join(f"{n} {state}" for state, n in counted.items()) or "the queue is empty: `neuronqa queue fill`")


@app.command("show", help="Show an item: its submissions, what was said of them, its journal.")
def show(item: Item, home: Home = None, db: Db = None, as_json: AsJson = False) -> None:
    from neuronqa.fixqueue.page import item_page

    queue = _queue(db, home)
    with queue.reading() as connection:
        page = item_page(connection, item)
    if as_json:
        print_json({"schema_version": 1, **page})
        return
    out.print(escape(f"item {item}  {page['state']}  {page['title']}"), soft_wrap=True)
    out.print(escape(f"cluster {page['cluster_id']}, blocks {page['entries']:,} entries, {page['lane']}"))
    for one in page["submissions"]:
        out.print(
            escape(f"submission {one['id']}  {one['kind']}  {one['sha256'][:12]}  {one['verdict']}"), soft_wrap=True
        )
    for event in page["journal"]:
        out.print(escape(f"{event['at']}  {event['actor']}  {event['after']}  {event['why']}"), soft_wrap=True)


@app.command("claim", help="Take the next item, or a named one, for half an hour. Exits 1 if there is none.")
def claim(
    item: Annotated[int | None, typer.Argument(metavar="[ITEM]", help="An item's number.", show_default=False)] = None,
    who: Who = None,
    home: Home = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    grant = _queue(db, home).claim(who or caller(), item)
    if grant is None:
        err.print("no item is free")
        raise typer.Exit(int(ExitCode.GATE_MISSED))
    if as_json:
        said = {"item": grant.item.to_json(), "lease": grant.token, "expires": grant.expires}
        print_json({"schema_version": 1, **said})
        return
    out.print(escape(f"item {grant.item.id}: {grant.item.title}"), soft_wrap=True)
    out.print(escape(f"export NEURONQA_LEASE={grant.token}"), soft_wrap=True)
    out.print("then: neuronqa queue bundle, neuronqa queue submit FILE (or release, or abstain)")


@app.command("heartbeat", help="Go on holding an item for another half hour.")
def heartbeat(lease: Lease, home: Home = None, db: Db = None) -> None:
    _queue(db, home).heartbeat(lease)


@app.command("bundle", help="Print what an agent needs of the item it holds; with -o, write it with its script.")
def bundle(
    lease: Lease,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="A new folder.", show_default=False)
    ] = None,
    home: Home = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.fixqueue import bundle as bundles

    queue = _queue(db, home)
    made = bundles.bundle(queue, lease)
    if output is not None:
        if output.exists():
            raise BadInput("the folder exists", where=str(output), hint="name a new one")
        shutil.copytree(queue.folder(made.item), output)
        (output / "bundle.md").write_text(bundles.text(made), encoding="utf-8")
    if as_json:
        print_json(made.to_json())
    elif output is None:
        out.print(bundles.text(made), markup=False, soft_wrap=True)


@app.command("run-repro", help="Run the held item's script once more. Exits 1 if its cause does not show.")
def run_repro(lease: Lease, home: Home = None, db: Db = None, as_json: AsJson = False) -> None:
    again = _queue(db, home).run_repro(lease)
    if as_json:
        print_json({"schema_version": 1, **again.to_json()})
    else:
        out.print(escape(f"{'the cause' if again.same else 'not the cause'}: {', '.join(again.seen) or 'all passed'}"))
    raise typer.Exit(int(ExitCode.DONE if again.same else ExitCode.GATE_MISSED))


@app.command("submit", help="Hand in an overlay (.py), a unified diff (.diff) or a build; this ends the lease.")
def submit(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="What is handed in.")],
    lease: Lease,
    home: Home = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    queue = _queue(db, home)
    item = queue.held(lease).id
    number = queue.submit_file(lease, path)
    if as_json:
        print_json({"schema_version": 1, "item": item, "submission": number})
    else:
        out.print(f"submission {number} of item {item} waits for verification: neuronqa queue verdict {item}")


@app.command("verify", help="Verify what waits, one after the other; with --watch go on waiting.")
def verify(
    watch: Annotated[bool, typer.Option("--watch", help="Look again every few seconds.")] = False,
    item: Annotated[int | None, typer.Option("--item", min=1, help="Only this one.", show_default=False)] = None,
    budget: Annotated[float, typer.Option(min=1, help="Seconds for one submission.")] = 900.0,
    who: Who = None,
    home: Home = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.fixqueue.verifier import verdict_of, verify_all, within

    def told(row: ItemRow, submission: Any) -> None:
        verdict = verdict_of(submission)
        if as_json:
            print_json({"schema_version": 1, "item": row.id, "state": row.state.value, **_said(verdict)})
        else:
            out.print(escape(f"item {row.id}  {row.state.value}  {_line(verdict)}"), soft_wrap=True)

    verify_all(_queue(db, home), who or caller(), within(budget), told, item_id=item, watch=watch)


@app.command("verdict", help="Say what was found of an item's last submission. Exits 0 accepted, 1 not, 5 not yet.")
def verdict(item: Item, home: Home = None, db: Db = None, as_json: AsJson = False) -> None:
    from neuronqa.db import fixes
    from neuronqa.fixqueue.verdict import Conclusion
    from neuronqa.fixqueue.verifier import verdict_of

    queue = _queue(db, home)
    with queue.reading() as connection:
        row = fixes.item(connection, item)
        handed_in = fixes.submissions(connection, item)
    found = verdict_of(handed_in[0]) if handed_in else None
    if as_json:
        print_json({"schema_version": 1, "item": item, "state": row.state.value, **_said(found)})
    else:
        out.print(escape(f"item {item}  {row.state.value}  {_line(found)}"), soft_wrap=True)
    answered = found is not None and found.conclusion is not Conclusion.INCONCLUSIVE
    accepted = found is not None and found.conclusion is Conclusion.ACCEPTED
    code = ExitCode.DONE if accepted else ExitCode.GATE_MISSED if answered else ExitCode.CANNOT_TELL
    raise typer.Exit(int(code))


@app.command("release", help="Give the held item back.")
def release(lease: Lease, why: Why = "", home: Home = None, db: Db = None) -> None:
    _queue(db, home).release(lease, why)


@app.command("abstain", help="Say that it cannot be fixed here, and why. After the second a person looks.")
def abstain(lease: Lease, why: Why, home: Home = None, db: Db = None) -> None:
    _queue(db, home).abstain(lease, why)


@app.command("accept", help="As a person: accept what was handed in for an item that waits for one.")
def accept(item: Item, why: Why, who: Who = None, home: Home = None, db: Db = None) -> None:
    _queue(db, home).decide(item, True, why, who or caller())


@app.command("reopen", help="As a person: offer an item anew that waits for one.")
def reopen(item: Item, why: Why, who: Who = None, home: Home = None, db: Db = None) -> None:
    _queue(db, home).decide(item, False, why, who or caller())


@app.command("cancel", help="Take an item off the queue.")
def cancel(item: Item, why: Why, who: Who = None, home: Home = None, db: Db = None) -> None:
    _queue(db, home).cancel(item, why, who or caller())


@app.command("land", help="Make what was accepted part of the next build; prints the options for the next sweep.")
def land(who: Who = None, home: Home = None, db: Db = None, as_json: AsJson = False) -> None:
    landed = _queue(db, home).land(who or caller())
    if as_json:
        print_json({"schema_version": 1, "items": list(landed.items), "overlays": list(landed.overlays)})
        return
    out.print(f"{len(landed.items)} items landed")
    out.print(escape(" ".join(f"--overlay {path}" for path in landed.overlays)), soft_wrap=True)


@app.command("settle", help="Confirm or revert what has landed, by a sweep on a build that has it.")
def settle(sweep: Sweep = None, who: Who = None, home: Home = None, db: Db = None, as_json: AsJson = False) -> None:
    done = _settled(_queue(db, home), sweep, who)
    if as_json:
        print_json(
            {
                "schema_version": 1,
                "items": [{"item": one.item, "state": one.state.value, "why": one.why} for one in done],
            }
        )
        return
    for one in done:
        out.print(escape(f"item {one.item}  {one.state.value}  {one.why}"), soft_wrap=True)
    out.print(f"{len(done)} items settled")


@app.command("predict", help="Say how many entries turn green if these items (default: all that landed) hold.")
def predict(
    items: Annotated[list[int] | None, typer.Argument(metavar="[ITEM]...", show_default=False)] = None,
    home: Home = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.fixqueue.prediction import gain_of

    queue = _queue(db, home)
    with queue.reading() as connection:
        gain = gain_of(connection, items or ())
    if as_json:
        print_json({"schema_version": 1, "low": gain.low, "high": gain.high})
    else:
        out.print(f"{gain.low:,} to {gain.high:,} entries")


@app.command("summary", help="Print what became of the queue, as Markdown.")
def summary(
    hours: Annotated[float, typer.Option(min=0.01, help="How far back.")] = 24.0, home: Home = None, db: Db = None
) -> None:
    from neuronqa.fixqueue.summary import summary as written

    queue = _queue(db, home)
    with queue.reading() as connection:
        out.print(written(connection, queue.clock(), hours), markup=False, soft_wrap=True, end="")


@app.command("agent", help="Work items off: the built-in solver, or any program that writes a kernel.")
def agent(
    items: Annotated[int, typer.Option(min=1, help="Items at most.")] = 10,
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="COMMAND",
            help="Started in a folder with bundle.md for each item; writes overlay.py there.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, help="For one item.")] = 900.0,
    who: Who = None,
    home: Home = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.fixqueue.agent import CommandSolver, built_in, work

    solver = CommandSolver.of(command, seconds) if command else built_in
    done = work(_queue(db, home), solver, who or ("agent" if command else "built-in"), items)
    if as_json:
        print_json({"schema_version": 1, "items": [one.to_json() for one in done]})
        return
    for one in done:
        out.print(escape(f"item {one.item}  {one.did.value}  {one.note}"), soft_wrap=True)


@app.command(
    "drill",
    help="Verify submissions with known answers: cheats, impossible items and true fixes. Exits 1 if one is misjudged.",
)
def drill(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Only these.", show_default=False)
    ] = None,
    profile: Annotated[str, typer.Option(help="The device's profile.")] = "trn2-sdk2.33",
    as_json: AsJson = False,
) -> None:
    from neuronqa.fixqueue import drill as drills
    from neuronqa.fixqueue.sandbox import NotEnforced

    chosen = drills.drills(names or ())
    if not chosen:
        raise UsageError("there is no such drill", hint="neuronqa queue drill, without names, runs all")

    def told(one: drills.Drilled) -> None:
        said = "right" if one.right else "WRONG"
        err.print(
            escape(f"{said}  {one.kind:10} {one.name:40} {one.conclusion} {one.stage} {one.reason}"), soft_wrap=True
        )

    try:
        totals = drills.totals(drills.run(chosen, profile=profile, told=told))
    except NotEnforced as lacking:
        raise EnvironmentFault(f"nothing can be shut in here: {lacking}", hint="run `neuronqa doctor`") from None
    if as_json:
        print_json(totals)
    else:
        out.print(f"{totals['rejected_at_right_stage']} of {totals['drills']} cheats stopped where they should be")
        out.print(f"{totals['accepted']} of {totals['true_fixes']} true fixes accepted")
        out.print(f"{totals['impossible_accepted']} of {totals['impossible']} impossible items accepted")
    raise typer.Exit(int(ExitCode.GATE_MISSED if totals["wrong"] else ExitCode.DONE))


def _queue(db: str | None, home: Path | None) -> FixQueue:
    from neuronqa.db.engine import open_engine
    from neuronqa.fixqueue.service import FixQueue, home_of

    return FixQueue(engine=open_engine(db), home=home_of(home))


def _settled(queue: FixQueue, sweep: str | None, who: str | None) -> Sequence[Any]:
    return queue.settle(sweep, who or caller())


def _considered(found: Sequence[Any]) -> None:
    table = Table(box=None, pad_edge=False)
    for column in ("place", "cluster", "entries"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("cause", overflow="fold", ratio=1)
    table.add_column("not offered because", overflow="fold", ratio=1)
    for one in found:
        why = f"{one.refusal.value}: {one.refusal.text}" if one.refusal else ""
        table.add_row(str(one.place), str(one.cluster), f"{one.entries:,}", escape(one.title), why)
    out.print(table)


def _table(found: Sequence[ItemRow]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("item", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("entries", justify="right", no_wrap=True)
    table.add_column("rejected", justify="right", no_wrap=True)
    table.add_column("cause", overflow="fold", ratio=1)
    for one in found:
        table.add_row(str(one.id), one.state.value, f"{one.entries:,}", str(one.rejections), escape(one.title))
    return table


def _said(found: Verdict | None) -> dict[str, Any]:
    return {"verdict": found.shown() if found else None}


def _line(found: Verdict | None) -> str:
    if found is None:
        return "nothing was said yet"
    said = found.shown()
    return "  ".join(said[name] for name in ("conclusion", "stage", "reason", "text", "hint") if said.get(name))
