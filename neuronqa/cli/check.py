"""`neuronqa check`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from neuronqa.cli.options import AsJson
from neuronqa.cli.output import err, out, print_json
from neuronqa.domain.policy import Policy
from neuronqa.errors import BadInput, UsageError

if TYPE_CHECKING:
    from neuronqa.checkup.examine import Examiner
    from neuronqa.checkup.target import Target
    from neuronqa.checkup.value import Checkup

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(
    help="Check one model: HUB_ID, a config.json, a folder that has one, or your own code as FILE.py:FACTORY. "
    "A factory returns (module, inputs), and a loss and an optimizer if it likes."
)
def check(
    what: Annotated[str, typer.Argument(metavar="HUB_ID|CONFIG|FOLDER|FILE.py:FACTORY", show_default=False)],
    device: Annotated[str, typer.Option(help="Device: neuron, cpu:inductor, or another accelerator.")] = "neuron",
    profile: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="What the simulated device can do.")
    ] = "trn2-sdk2.33",
    overlay: Annotated[list[str] | None, typer.Option(metavar="FILE", help="Kernels to add to the device.")] = None,
    policy: Annotated[
        str, typer.Option(metavar="NAME|FILE", help="What must pass: gating, quick, or a file.")
    ] = "gating",
    shrink: Annotated[bool, typer.Option("--shrink", help="Check a shrunken twin even if the model is small.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Check again whenever the factory's code changes, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    from neuronqa.checkup.examine import Examiner
    from neuronqa.checkup.target import resolve
    from neuronqa.checkup.watch import changes
    from neuronqa.sweep.policies import load_policy

    asked = load_policy(policy)
    target = resolve(what, shrink=shrink)
    if watch and not target.own:
        raise UsageError("only code of your own can be watched", hint="name it as FILE.py:FACTORY")
    edits = changes(Path(target.source)) if watch else None  # from now on: one may come while the first check runs
    with Examiner(device, profile, overlay or ()) as examiner:
        checkup = _examined(examiner, target, asked, as_json=as_json)
        if edits is not None:
            err.print(escape(f"watching {target.source} and what it imports; Ctrl-C ends"))
            _watch(edits, examiner, what, asked, as_json=as_json)
    raise typer.Exit(int(checkup.exit_code))


def _examined(examiner: Examiner, target: Target, policy: Policy, *, as_json: bool) -> Checkup:
    from neuronqa.checkup.text import render

    with err.status("starting") as status:
        checkup = examiner.examine(target, policy, lambda words: status.update(escape(words)))
    if as_json:
        print_json(checkup.to_json())
    else:
        out.print(render(checkup))
    return checkup


def _watch(edits: Iterator[list[Path]], examiner: Examiner, what: str, policy: Policy, *, as_json: bool) -> None:
    from neuronqa.checkup.target import resolve

    for files in edits:
        err.print(escape(f"changed: {', '.join(file.name for file in files)}"))
        examiner.forget()
        try:
            _examined(examiner, resolve(what), policy, as_json=as_json)
        except BadInput as error:  # A file that is being replaced; it will change again.
            err.print(escape(str(error)))
