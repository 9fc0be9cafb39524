"""`neuronqa doctor`: can this machine run a sweep?"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape
from rich.table import Table

from neuronqa.cli.options import AsJson, Db
from neuronqa.cli.output import out, print_json
from neuronqa.errors import ExitCode, NeuronQAError

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

FREE_DISK: Final = 2 * 2**30
FREE_MEMORY: Final = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing looked at: `fine` is None where it is worth knowing but stops nothing."""

    what: str
    fine: bool | None
    found: str
    advice: str = ""


@app.command(help="Check that this machine can run a sweep, and say what to do where it cannot.")
def doctor(
    db: Db = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT|auto", help="Look at this Ray cluster's nodes as well.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    found = list(diagnose(db))
    if address is not None:
        found += _cluster(address)
    bad = [d for d in found if d.fine is False]
    if as_json:
        print_json({"schema_version": 1, "fine": not bad, "checks": [asdict(d) for d in found]})
    else:
        table = Table(show_header=False, box=None)
        for d in found:
            mark = {True: "[green]ok[/]", False: "[red]no[/]", None: "[yellow]--[/]"}[d.fine]
            table.add_row(mark, escape(d.what), escape(d.found), escape(d.advice))
        out.print(table)
    raise typer.Exit(int(ExitCode.ENVIRONMENT if bad else ExitCode.DONE))


def diagnose(db: str | None) -> Iterator[Diagnosis]:
    """Look at everything a sweep needs, without importing torch."""
    yield _python()
    for package in ("torch", "transformers", "ray", "sqlalchemy"):
        yield _package(package)
    yield _compiler()
    yield _headers()
    yield _attempt("cache folder", _cache)
    yield _memory()
    yield _attempt("database", lambda: _database(db))
    yield _attempt("bundled files", _bundled)


def _cluster(address: str) -> list[Diagnosis]:
    """Every node of a cluster: may it take part, and with how much?"""
    from neuronqa.sweep.cluster_fleet import inspect

    try:
        nodes = inspect(address)
    except NeuronQAError as error:
        return [Diagnosis("Ray cluster", False, error.what, error.hint)]
    if not nodes:
        return [Diagnosis("Ray cluster", False, "no node has a CPU to work with", "add nodes")]
    return [
        Diagnosis(
            f"node {node.name}", not why, why or f"{node.slots} slots", "give every node one image" if why else ""
        )
        for node, why in nodes
    ]


def _python() -> Diagnosis:
    version = ".".join(map(str, sys.version_info[:3]))
    fine = sys.version_info >= (3, 11)
    return Diagnosis("Python", fine, version, "" if fine else "3.11 or newer is needed")


def _package(name: str) -> Diagnosis:
    try:
        return Diagnosis(name, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Diagnosis(name, False, "not installed", "pip install neuronqa")


def _compiler() -> Diagnosis:
    compiler = os.environ.get("CXX") or "g++"
    path = shutil.which(compiler)
    return Diagnosis("C++ compiler", path is not None, path or f"no {compiler}", "" if path else "install g++")


def _headers() -> Diagnosis:
    header = Path(sysconfig.get_path("include")) / "Python.h"
    found = header.exists()
    return Diagnosis("Python headers", found, str(header), "" if found else "install python3-dev")


def _cache() -> Diagnosis:
    from neuronqa.cachedir import cache_dir

    path = cache_dir()
    free = shutil.disk_usage(path).free
    enough = free >= FREE_DISK
    return Diagnosis(
        "cache folder", enough, f"{path} ({free / 2**30:.1f} GiB free)", "" if enough else "free some space"
    )


def _memory() -> Diagnosis:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    enough = True if total >= FREE_MEMORY else None
    return Diagnosis("memory", enough, f"{total / 2**30:.1f} GiB", "" if enough else "use --workers 1")


def _database(db: str | None) -> Diagnosis:
    from neuronqa.db.engine import database_url, open_engine, shown

    url = database_url(db)
    if url.get_backend_name() == "sqlite" and not Path(str(url.database)).exists():
        writable = os.access(Path(str(url.database)).parent, os.W_OK)
        return Diagnosis("database", writable, f"{shown(url)} (will be made)", "" if writable else "give --db")
    open_engine(db).dispose()
    return Diagnosis("database", True, shown(url))


def _bundled() -> Diagnosis:
    from neuronqa.bundled import FOLDERS, folder

    return Diagnosis("bundled files", True, ", ".join(str(folder(name).name) for name in FOLDERS))


def _attempt(what: str, look: Callable[[], Diagnosis]) -> Diagnosis:
    try:
        return look()
    except NeuronQAError as error:
        return Diagnosis(what, False, error.what + (f" ({error.where})" if error.where else ""), error.hint)
