"""`neuronqa`: one module a verb, loaded when its verb is called."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Final

import click
import typer
from typer.core import TyperGroup

from neuronqa import __version__
from neuronqa.errors import ExitCode, NeuronQAError

VERBS: Final = {
    "sweep": "Run a catalog's models on a device and judge them.",
    "sweeps": "List sweeps, or show one.",
    "report": "Print a sweep's report.",
    "triage": "Root causes and what each blocks.",
    "dashboard": "Serve the triage pages on this machine.",
    "catalog": "List, pull, show and verify catalogs.",
    "device": "Inspect, build and test the device.",
    "db": "Look after the database.",
    "doctor": "Check that this machine can run a sweep.",
}


class LazyVerbs(TyperGroup):
    """Knows every verb's one-line help, and imports a verb only to run it, so that `--help` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        if ctx.resilient_parsing or _only_help(sys.argv[1:]):
            return click.Command(cmd_name, help=VERBS[cmd_name])
        module = import_module(f"neuronqa.cli.{cmd_name}")
        command: click.Command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=LazyVerbs,
    name="neuronqa",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Honest model-coverage CI for PyTorch accelerators: does my model work on it, really?",
)


@app.callback(invoke_without_command=True)
def main(version: bool = typer.Option(False, "--version", help="Print the version and leave.")) -> None:
    if version:
        print(__version__)
        raise typer.Exit


def run() -> None:
    """The console script: errors of the tree become one line and their exit code; nobody sees our traceback."""
    try:
        code = app(standalone_mode=False)
    except NeuronQAError as error:
        _say(str(error))
        sys.exit(int(error.exit_code))
    except click.ClickException as error:
        _say(error.format_message())
        sys.exit(int(ExitCode.USAGE))
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        sys.exit(int(ExitCode.INTERRUPTED))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(int(ExitCode.DONE))
    sys.exit(code if isinstance(code, int) else int(ExitCode.DONE))


def _only_help(arguments: list[str]) -> bool:
    return not arguments or arguments[0] in ("--help", "-h")


def _say(message: str) -> None:
    line = " ".join(message.split())
    print("neuronqa: " + "".join(ch if ch.isprintable() else "?" for ch in line), file=sys.stderr)
