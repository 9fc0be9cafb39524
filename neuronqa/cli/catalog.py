"""`neuronqa catalog`: list, pull, show, plan and verify catalogs, and audit what can be built at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from neuronqa.cli.options import AsJson, Db
from neuronqa.cli.output import err, out, print_json
from neuronqa.domain.catalog import ListingStatus
from neuronqa.domain.outcome import clean_detail
from neuronqa.errors import ExitCode

if TYPE_CHECKING:
    from neuronqa.catalog import Catalog
    from neuronqa.sweep.census import Census

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="List, pull, show, plan and verify catalogs; audit which architectures build, run and train.",
)
SHOWN = 15

Name = Annotated[
    str,
    typer.Argument(
        metavar="CATALOG", help="A name, a folder or a file; a selector may follow in brackets: top-100k[type:llama]."
    ),
]


@app.command("list", help="List the catalogs that can be named, and where each is.")
def list_catalogs(as_json: AsJson = False) -> None:
    from neuronqa.catalog.resolve import known

    places = known()
    if as_json:
        print_json(
            {"schema_version": 1, "catalogs": [{"name": name, "place": places[name]} for name in sorted(places)]}
        )
        return
    table = Table("catalog", "place")
    for name in sorted(places):
        table.add_row(escape(clean_detail(name)), escape(clean_detail(places[name])))
    out.print(table)


@app.command("show", help="Show what a catalog is and how many of its entries may be run, by status, library and task.")
def show(
    name: Name,
    calibration: Annotated[
        bool,
        typer.Option("--calibration", help="For the offline edition: each published figure beside what was generated."),
    ] = False,
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    catalog = _open(name, db)
    if calibration:
        _show_calibration(catalog, as_json)
        return
    found = _census(catalog)
    if as_json:
        print_json({"schema_version": 1, "notice": catalog.notice, **found.to_json()})
        return
    _print_head(found)
    _print_statuses(found)
    _print_counts("library", found.libraries)
    _print_counts("task", found.tasks)


@app.command(
    "plan",
    help="Plan a catalog without running it: workloads by family, what they cost, and why the rest cannot be run.",
)
def plan(name: Name, db: Db = None, as_json: AsJson = False) -> None:
    catalog = _open(name, db)
    found = _census(catalog)
    reasons = found.reasons.most_common()
    if as_json:
        told = [{"status": status, "reason": reason, "entries": entries} for (status, reason), entries in reasons]
        families = {"families": _families(found)}
        print_json({"schema_version": 1, "notice": catalog.notice, **found.to_json(), **families, "reasons": told})
        return
    _print_head(found)
    keys = f"{len(found.kernel_keys):,} kernel keys, {len(found.graph_keys):,} graph keys"
    out.print(f"{found.configs:,} distinct configs, {keys}")
    _print_families(_families(found))
    table = Table("not eligible because", "reason", "entries")
    for (status, reason), entries in reasons[:SHOWN]:
        table.add_row(status.value, escape(clean_detail(reason)), f"{entries:,}")
    out.print(table)


@app.command(
    "audit",
    help="Build, run and train every architecture of the installed transformers, shrunk, on the CPU; say what fails.",
)
def audit(
    sample: Annotated[str, typer.Option("--sample", metavar="N@SEED", help="Only N pairs, drawn at random.")] = "",
    model_type: Annotated[
        list[str] | None, typer.Option("--type", help="Only this model type; may be repeated.")
    ] = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Pairs tried at a time.")] = 2,
    as_json: AsJson = False,
) -> None:
    from neuronqa.sweep import architectures

    figures = architectures.audit(sample, model_type or (), workers)
    if as_json:
        print_json(figures)
        return
    for what in ("model_types", "pairs"):
        counts = figures[what]
        told = ", ".join(
            f"{counts[k]:,} {k} ({counts[k] / max(1, counts['total']):.1%})" for k in counts if k != "total"
        )
        out.print(f"{counts['total']:,} {what.replace('_', ' ')}: {told}")
    out.print(f"CPU seconds a pair: median {figures['cpu_s']['median']}, p99 {figures['cpu_s']['p99']}")
    table = Table("not trained clean because", "pairs", "which")
    for reason, pairs in figures["reasons"].items():
        table.add_row(escape(clean_detail(reason)), f"{len(pairs):,}", escape(clean_detail(", ".join(pairs))))
    out.print(table)


@app.command("verify", help="Check every hash, count and line of a catalog, and name the first bad byte.")
def verify(name: Name, db: Db = None, as_json: AsJson = False) -> None:
    from neuronqa.catalog.verify import problems_of

    catalog = _open(name, db)
    problems = [str(problem) for problem in problems_of(catalog)]
    if as_json:
        info = {"name": catalog.info.name, "sha256": catalog.info.sha256, "registered": catalog.info.registered}
        print_json({"schema_version": 1, **info, "sound": not problems, "problems": problems})
    elif problems:
        for problem in problems:
            out.print(escape(clean_detail(problem)))
    else:
        out.print(f"{escape(clean_detail(catalog.info.name))} is sound: {catalog.info.registered:,} entries")
    raise typer.Exit(int(ExitCode.BAD_INPUT if problems else ExitCode.DONE))


@app.command("pull", help="Pull a catalog from the Hub (HF_TOKEN, HF_ENDPOINT); interrupted, the same command goes on.")
def pull(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the snapshot is called.")] = "top-100k",
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many of the most downloaded models.")] = 100_000,
    as_json: AsJson = False,
) -> None:
    from neuronqa.catalog.hub.client import HubClient
    from neuronqa.catalog.hub.pull import Request
    from neuronqa.catalog.hub.pull import pull as pull_from
    from neuronqa.catalog.resolve import pulled_folder
    from neuronqa.cli.pull_progress import PullProgress

    client = HubClient()
    request = Request(name=name, endpoint=client.endpoint, limit=limit)
    with PullProgress(err) as display:
        snapshot = pull_from(request, pulled_folder(name), client, display.show)
    info = snapshot.info
    facts = {"name": info.name, "source": info.source, "sha256": info.sha256, "registered": info.registered}
    if as_json:
        print_json({"schema_version": 1, **facts, "folder": str(snapshot.folder), "made_by": snapshot.manifest.made_by})
    else:
        out.print(f"{escape(name)}: {info.registered:,} entries in {escape(str(snapshot.folder))}")


def _families(found: Census) -> list[dict[str, Any]]:
    """Workloads by model type, those of most entries first, with what the default policy's cases should take."""
    from neuronqa.sweep.policies import load_policy
    from neuronqa.sweep.schedule import CostModel

    variants = load_policy("gating").variants
    ordered = sorted(found.families.items(), key=lambda item: (-item[1].entries, item[0]))
    return [
        {
            "family": name,
            "workloads": family.workloads,
            "entries": family.entries,
            "downloads": family.downloads,
            "expected_cpu_s": round(family.workloads * CostModel().expect(name, variants), 1),
        }
        for name, family in ordered
    ]


def _print_families(families: list[dict[str, Any]]) -> None:
    table = Table("family", "workloads", "entries they stand for", "expected CPU s")
    for row in families[:SHOWN]:
        counts = (f"{row[key]:,}" for key in ("workloads", "entries"))
        table.add_row(escape(clean_detail(row["family"])), *counts, f"{row['expected_cpu_s']:,.0f}")
    rest = families[SHOWN:]
    if rest:
        sums = [sum(row[key] for row in rest) for key in ("workloads", "entries", "expected_cpu_s")]
        table.add_row(f"({len(rest)} others)", f"{sums[0]:,}", f"{sums[1]:,}", f"{sums[2]:,.0f}")
    out.print(table)


def _open(name: str, db: str | None) -> Catalog:
    from neuronqa import catalog
    from neuronqa.report.selection import results_in
    from neuronqa.sweep.census import statuses_of

    found = catalog.open(name, statuses=statuses_of, results=results_in(db))
    if found.notice:
        err.print(f"note: {found.notice}", style="yellow", markup=False)
    return found


def _census(catalog: Catalog) -> Census:
    from neuronqa.sweep.census import census

    with err.status("planning") as status:
        return census(catalog, lambda number: status.update(f"planning: {number:,} configs"))


def _print_head(found: Census) -> None:
    info = found.info
    grid = Table.grid(padding=(0, 2))
    for key, value in (
        ("catalog", info.name),
        ("source", info.source.value),
        ("registered", f"{info.registered:,}"),
        ("created", info.created or "reproducible, not dated"),
        ("sha256", info.sha256),
    ):
        grid.add_row(key, escape(clean_detail(value)))
    out.print(grid)


def _print_statuses(found: Census) -> None:
    table = Table("listing status", "entries", "of entries", "of downloads")
    downloads = max(1, found.downloads.total())
    for status in sorted(ListingStatus, key=lambda status: -found.statuses[status]):
        entries = found.statuses[status]
        shares = (entries / max(1, found.info.registered), found.downloads[status] / downloads)
        table.add_row(status.value, f"{entries:,}", *(f"{share:.2%}" for share in shares))
    out.print(table)


def _print_counts(word: str, counts: Mapping[str, int]) -> None:
    table = Table(word, "entries")
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    for name, count in ordered[:SHOWN]:
        table.add_row(escape(clean_detail(name)) or "(none)", f"{count:,}")
    rest = ordered[SHOWN:]
    if rest:
        table.add_row(f"({len(rest)} others)", f"{sum(count for _, count in rest):,}")
    out.print(table)


def _show_calibration(catalog: Catalog, as_json: bool) -> None:
    from neuronqa.catalog.offline import calibration, report

    figures = calibration.load()
    lines = report.compare(figures, catalog)
    if as_json:
        print_json({"schema_version": 1, "name": catalog.info.name, "figures": _told(figures.figures, lines)})
        return
    table = Table("figure", "target", "generated", "holds", "kind", "source", "date")
    for row in _told(figures.figures, lines):
        numbers = (f"{row['target']:.4g}", f"{row['found']:.4g}", "yes" if row["holds"] else "NO")
        table.add_row(row["figure"], *numbers, row["kind"], escape(row["source"]), row["date"])
    out.print(table)


def _told(figures: Mapping[str, Any], lines: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {
            "figure": line.figure,
            "target": line.target,
            "found": line.found,
            "tolerance": line.tolerance,
            "holds": line.holds,
            "kind": line.kind,
            "source": figures[line.figure.partition(":")[0]].source,
            "date": figures[line.figure.partition(":")[0]].date,
        }
        for line in lines
    ]
