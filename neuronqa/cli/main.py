"""`neuronqa`: one module a verb, loaded when its verb is called."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from neuronqa import __version__
from neuronqa.errors import ExitCode, NeuronQAError

VERBS: Final = {
    "check": "Check one model: its own config, or your own code.",
    "sweep": "Run a catalog's models on a device and judge them.",
    "sweeps": "List sweeps, or show one.",
    "catalog": "List, pull, show, plan and verify catalogs.",
    "report": "Print a sweep's report.",
    "compare": "Compare two sweeps, entry by entry.",
    "triage": "Root causes and what each blocks.",
    "repro": "Write a small script that shows one failure.",
    "queue": "Root causes that agents take, fix and hand in.",
    "try": "Try a kernel before it is handed in.",
    "mcp": "Serve the fix queue to agents.",
    "reference": "Record another device's results to compare with.",
    "controls": "Plant faults, and say which check noticed what.",
    "profile": "Draw a case's timeline on the simulated device.",
    "dashboard": "Serve the triage pages on this machine.",
    "db": "Look after the database.",
    "device": "What the simulated device is, can do, and does.",
    "doctor": "Check that this machine can run a sweep.",
}
_MODULES: Final = {"try": "try_"}
"""Of verbs that are words of Python."""


class LazyVerbs(TyperGroup):
    """Knows every verb's one-line help, and imports a verb only to run it, so that `--help` is quick."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in VERBS:
            return None
        if ctx.resilient_parsing or _only_help(sys.argv[1:]):
            return TyperCommand(cmd_name, help=VERBS[cmd_name])
        command = typer.main.get_command(import_module(f"neuronqa.cli.{_MODULES.get(cmd_name, cmd_name)}").app)
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
    """The console script: every error a person can meet is one line and its exit code."""
    sys.exit(_run())


def _run() -> int:
    try:
        code = app(standalone_mode=False)
    except NeuronQAError as error:
        _say(str(error))
        return int(error.exit_code)
    except typer.TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message(), file=sys.stderr)
        else:
            _say(error.format_message())
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted")
        return int(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - exit code 1 would say that a gate was missed
        traceback.print_exc()
        _say(f"a fault of neuronqa itself, please report it: {type(error).__name__}: {error}")
        return int(ExitCode.CANNOT_TELL)
    return code if isinstance(code, int) else int(ExitCode.DONE)


def _only_help(arguments: list[str]) -> bool:
    return not arguments or arguments[0] in ("--help", "-h")


def _say(message: str) -> None:
    line = " ".join(message.split())
    print("neuronqa: " + "".join(ch if ch.isprintable() else "?" for ch in line), file=sys.stderr)
