"""`neuronqa sweep`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from neuronqa.cli.options import AsJson, Db
from neuronqa.cli.output import err, out, print_json
from neuronqa.domain.case import Dtype, Mode
from neuronqa.domain.policy import Policy
from neuronqa.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from neuronqa.domain.build import Prepared
    from neuronqa.sweep.fleet import Fleet
    from neuronqa.sweep.request import SweepRequest

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

GO_WITH_RESUME: Final = ("resume", "workers", "address", "metrics", "webhook", "gate", "baseline", "db", "as_json")


@app.command(help="Run a catalog's models on a device and judge them, or go on with a sweep that was interrupted.")
def sweep(
    ctx: typer.Context,
    catalog: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|DIR", help="Catalog: top-100k, mini, a suite (aten, ...), or a folder.", show_default=False
        ),
    ] = None,
    select: Annotated[
        str, typer.Option(metavar="EXPR", help="Sweep a part, e.g. 'type:llama' or 'top-500'; a catalog of its own.")
    ] = "",
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|FILE",
            help="What must pass: gating, quick, thorough, or a file (default: the catalog's own, else gating).",
            show_default=False,
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="Device: neuron, cpu:inductor, or another accelerator.")] = "neuron",
    profile: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="What the simulated device can do.")
    ] = "trn2-sdk2.33",
    overlay: Annotated[list[str] | None, typer.Option(metavar="FILE", help="Kernels to add to the device.")] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="A bundle of another device's results to compare with as well.", show_default=False
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Stop executing after this long (90s, 10m, 2h); the rest counts as not run.", show_default=False
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Execute at most this many workloads.", show_default=False)
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(help="Run only this mode; required cases of the other count as not run.", show_default=False),
    ] = None,
    dtype: Annotated[
        Dtype | None, typer.Option(help="Run only this dtype; the others count as not run.", show_default=False)
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker slots (default: one a core).", show_default=False)
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|auto", help="Run on this Ray cluster, not on a Ray of our own.", show_default=False
        ),
    ] = None,
    max_failures: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many failing workloads.", show_default=False)
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Execute everything; take nothing over.")] = False,
    resume: Annotated[
        str | None, typer.Option(metavar="SWEEP", help="Go on with this sweep.", show_default=False)
    ] = None,
    gate: Annotated[
        str | None,
        typer.Option(metavar="EXPR", help="Exit 0, 1 or 5 by e.g. 'green>=80%,runs>=95%'.", show_default=False),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="SWEEP|FILE", help="Exit 1 if entries regressed against this.", show_default=False),
    ] = None,
    metrics: Annotated[
        int | None,
        typer.Option(min=1, max=65535, metavar="PORT", help="Serve progress to Prometheus here.", show_default=False),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(metavar="URL", help="POST a line of JSON here when it is over.", show_default=False),
    ] = None,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa import catalog as catalogs
    from neuronqa.cli.progress import SweepProgress
    from neuronqa.db.engine import database_url, over_network
    from neuronqa.domain.build import from_root
    from neuronqa.report.selection import results_in
    from neuronqa.sweep.budget import parse_budget
    from neuronqa.sweep.cluster_fleet import cluster_fleet
    from neuronqa.sweep.local_fleet import local_fleet
    from neuronqa.sweep.metrics import Metrics
    from neuronqa.sweep.policies import GateExpression, load_policy
    from neuronqa.sweep.request import DEFAULT_POLICY, EVERY, SweepRequest, default_workers
    from neuronqa.sweep.run import resume_sweep, run_sweep
    from neuronqa.sweep.webhook import check_url, notify

    if (catalog is None) == (resume is None):
        raise UsageError("name either a catalog or a sweep to resume", hint="e.g. --catalog top-100k")
    chosen = policy or (catalogs.own_policy(catalog) if catalog else "") or DEFAULT_POLICY
    if webhook is not None:
        check_url(webhook)
    seconds = None if budget is None else parse_budget(budget)
    if resume is not None:
        _check_kept(ctx)
    if baseline is not None:
        _check_baseline(baseline, db)
    if gate is not None:
        GateExpression.parse(gate, load_policy(chosen) if resume is None else _policy_of(resume, db))
    on_this_machine = partial(local_fleet, private=not over_network(database_url(db)))

    def make_fleet(request: SweepRequest, prepared: Prepared) -> AbstractContextManager[Fleet]:
        return (cluster_fleet if request.address else on_this_machine)(request, prepared)

    with SweepProgress(err) as progress:
        display = progress if metrics is None else Metrics(progress, metrics)
        if resume is not None:
            swept = resume_sweep(resume, db, workers, display, make_fleet, address)
        else:
            request = SweepRequest(
                catalog=catalog or "",
                select=select,
                policy=chosen,
                device=device,
                profile=from_root(profile),
                overlays=tuple(map(from_root, overlay or ())),
                bundle=_bundle(reference),
                budget_s=seconds,
                limit=limit,
                mode=mode,
                dtype=dtype,
                max_failures=max_failures,
                fresh=fresh,
                workers=workers or (EVERY if address else default_workers()),
                address=address or "",
            )
            swept = run_sweep(request, db, display, make_fleet, results_in(db))
    code = _print(swept.name, db, gate, baseline, as_json=as_json)
    code = ExitCode.INTERRUPTED if swept.state == "interrupted" else code
    if webhook is not None:
        notify(webhook, {"schema_version": 1, "sweep": swept.name, "state": swept.state, "answer": code.name.lower()})
    raise typer.Exit(int(code))


def _bundle(folder: str | None) -> str:
    from pathlib import Path

    from neuronqa.worker.bundle import load

    return "" if folder is None else str(load(Path(folder)).folder.resolve())


def _check_kept(ctx: typer.Context) -> None:
    """A resumed sweep keeps what it was asked for; an option that would change it is refused, not ignored."""
    given = [name for name in ctx.params if getattr(ctx.get_parameter_source(name), "name", "") == "COMMANDLINE"]
    changes = [f"--{name.replace('_', '-')}" for name in given if name not in GO_WITH_RESUME]
    if changes:
        raise UsageError(
            f"a sweep that is resumed keeps what it was asked for: {', '.join(changes)} cannot be given",
            hint="start a new sweep, or leave it out",
        )


def _policy_of(name: str, db: str | None) -> Policy:
    from neuronqa.db import queries
    from neuronqa.db.engine import open_engine

    with open_engine(db).connect() as connection:
        return Policy.from_json(queries.sweep(connection, name).policy)


def _check_baseline(baseline: str, db: str | None) -> None:
    """Better before a long sweep than after it."""
    from neuronqa.db.engine import open_engine
    from neuronqa.report import export

    if baseline.endswith(export.SUFFIX):
        export.read(Path(baseline))
        return
    with open_engine(db).connect() as connection:
        export.side(connection, baseline)


def _print(name: str, db: str | None, gate: str | None, baseline: str | None, *, as_json: bool) -> ExitCode:
    from neuronqa.db.engine import open_engine
    from neuronqa.report.build import build, triaged
    from neuronqa.report.decide import decide
    from neuronqa.report.text import print_report
    from neuronqa.report.value import to_json

    engine = open_engine(db)
    triaged(engine, name)
    with engine.connect() as connection:
        report = build(connection, name)
        verdict = decide(connection, report, gate, baseline) if gate or baseline else None
    if as_json:
        print_json(to_json(report, verdict))
    else:
        print_report(report, out, verdict)
    if verdict is None:
        return ExitCode.DONE
    words = (f"gate {gate}" if gate else "", f"baseline {baseline}" if baseline else "")
    asked = " ".join(word for word in words if word)
    err.print(f"{asked}: {verdict.answer.value}; {'; '.join(verdict.reasons)}", markup=False, soft_wrap=True)
    return verdict.answer.exit_code
