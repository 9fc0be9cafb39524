"""`neuronqa try`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from neuronqa.cli.options import AsJson, Db
from neuronqa.cli.output import out, print_json
from neuronqa.errors import BadInput, ExitCode

if TYPE_CHECKING:
    from neuronqa.domain.build import BuildOrder
    from neuronqa.domain.policy import Policy
    from neuronqa.fixqueue.prediction import Gain
    from neuronqa.fixqueue.verdict import Target

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(
    help="Try an overlay before it is handed in: the rules, drawn calls of its operators against the CPU, and with a "
    "cluster its visible cases and what they would unlock. Exits 1 if something is wrong."
)
def attempt(
    overlay: Annotated[Path, typer.Argument(metavar="OVERLAY", help="A file of @kernel functions.")],
    cluster: Annotated[str | None, typer.Option(metavar="CLUSTER", help="A cluster's id or a cause key.")] = None,
    sweep: Annotated[str | None, typer.Option(metavar="SWEEP", help="A sweep's name. [default: the newest]")] = None,
    profile: Annotated[str, typer.Option(help="The device's profile, where no cluster is named.")] = "trn2-sdk2.33",
    db: Db = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.fixqueue.sandbox import Sandbox
    from neuronqa.fixqueue.trying import try_overlay

    try:
        text = overlay.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("the overlay cannot be read", where=str(overlay)) from error
    base, policy, target, gain = _about(cluster, sweep, profile, db)
    with Sandbox(base.device) as sandbox, tempfile.TemporaryDirectory(prefix="neuronqa-try-") as folder:
        tried = try_overlay(text, target, base=base, policy=policy, folder=Path(folder), sandbox=sandbox)
    said = tried.to_json() | ({"unlock": {"low": gain.low, "high": gain.high}} if gain is not None else {})
    if as_json:
        print_json({"schema_version": 1, **said})
    else:
        _show(said)
    raise typer.Exit(int(ExitCode.DONE if tried.reason is None else ExitCode.GATE_MISSED))


def _about(
    cluster: str | None, sweep: str | None, profile: str, db: str | None
) -> tuple[BuildOrder, Policy, Target | None, Gain | None]:
    """The base, the policy, what is to be fixed, and what that would unlock."""
    from neuronqa.device.prepare import prepare
    from neuronqa.domain.build import BuildOrder
    from neuronqa.sweep.policies import load_policy

    if cluster is None:
        return prepare(BuildOrder(device="neuron", profile=profile)).order, load_policy("gating"), None, None
    from neuronqa.db import clusters, queries
    from neuronqa.db.engine import open_engine
    from neuronqa.domain.policy import Policy
    from neuronqa.fixqueue import cases, prediction
    from neuronqa.fixqueue.verdict import Target
    from neuronqa.sweep.request import SweepRequest

    with open_engine(db).connect() as connection:
        row = queries.sweep(connection, sweep)
        found = clusters.cluster(connection, cluster)
        shown, _ = cases.members(connection, row.id, found.id)
        target = Target(key=found.key, members=cases.references(connection, shown))
        gain = prediction.gain(connection, row.id, {found.id})
    order = prepare(SweepRequest.kept(row.options, None).order).order
    return order, Policy.from_json(row.policy), target, gain


def _show(said: dict[str, Any]) -> None:
    out.print("nothing wrong" if said["fine"] else escape(f"{said['stage']} {said['reason']}: {said['text']}"))
    for hint in said["hints"]:
        out.print(escape(f"  {hint}"))
    fuzz = said["fuzz"]
    wrong = ", ".join(f"{count} {reason}" for reason, count in fuzz["wrong"].items()) or "none wrong"
    out.print(escape(f"fuzz   {fuzz['calls']} calls: {wrong}  {fuzz['example']}"))
    for case in said["cases"]:
        verdict = "fixed" if case["fixed"] else case["text"]
        out.print(escape(f"case   {case['case']}: {verdict}  {', '.join(case['breaks'])}"))
    if "unlock" in said:
        out.print(f"unlock {said['unlock']['low']} to {said['unlock']['high']} entries, if it is accepted")
