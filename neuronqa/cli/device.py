"""`neuronqa device`: what the simulated device is, can do, and does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.markup import escape
from rich.table import Table

from neuronqa.cli.options import AsJson
from neuronqa.cli.output import err, out, print_json
from neuronqa.errors import BadInput, EnvironmentFault, ExitCode

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    help="What the simulated device is and can do; and whether a device does what it should.",
)

SCHEMA: Final = 1
DEFAULT_PROFILE: Final = "trn2-sdk2.33"

Profile = Annotated[str, typer.Option(metavar="NAME|FILE", help="What the simulated device can do.")]


@app.command(help="Show a profile's facts, and the built device.")
def info(profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False) -> None:
    from neuronqa.device.neuron import build, codes, vector
    from neuronqa.device.neuron import profile as profiles
    from neuronqa.domain.build import BuildOrder

    chosen = profiles.load(profile)
    made = build.found()
    facts: dict[str, Any] = {
        "profile": chosen.name,
        "summary": chosen.summary,
        "sha256": chosen.sha256,
        "hardware": asdict(chosen.hardware),
        "behaviour": asdict(chosen.behaviour),
        "native": len(chosen.native),
        "hidden": len(chosen.hidden),
        "refusals": [asdict(rule) for rule in chosen.refusals],
        "quirks": [asdict(quirk) for quirk in chosen.quirks],
        "codes": dict(codes.texts()),
        "profiles": list(profiles.names()),
        "binary": str(made.path) if made else None,
        "build": asdict(vector.build_vector(BuildOrder(device="neuron", profile=profile))),
    }
    if as_json:
        print_json({"schema_version": SCHEMA, **facts})
        return
    table = Table(show_header=False, box=None)
    for name, value in facts.items():
        if name not in ("refusals", "quirks", "codes"):
            table.add_row(escape(name), escape(json.dumps(value) if isinstance(value, dict | list) else str(value)))
    for name in ("refusals", "quirks", "codes"):
        table.add_row(name, f"{len(facts[name])} (see --json)")
    out.print(table)


@app.command(help="List where operators run under a profile, per dtype, or how two profiles differ.")
def ops(
    pattern: Annotated[str, typer.Argument(metavar="[PATTERN]", help="Operators to list.")] = "*",
    profile: Profile = DEFAULT_PROFILE,
    against: Annotated[
        str | None, typer.Option("--diff", metavar="NAME|FILE", help="List what another profile answers differently.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    from neuronqa.device.neuron import profile as profiles
    from neuronqa.device.neuron import support

    chosen = support.of(profiles.load(profile), profile)
    rows = [asdict(row) for row in chosen if _matches(row.op, pattern)]
    if against is not None:
        others = {row.op: asdict(row) for row in support.of(profiles.load(against), against)}
        rows = [_difference(row, others.get(row["op"], {})) for row in rows]
        rows = [row for row in rows if row["eager"] or row["graph"]]
    if as_json:
        print_json({"schema_version": SCHEMA, "profile": profile, "diff": against, "ops": rows})
        return
    table = Table("operator", "eager", "graph")
    for row in rows:
        cells = (row["op"], *(_summary(row[where]) if row[where] else "" for where in ("eager", "graph")))
        table.add_row(*(escape(cell) for cell in cells))
    out.print(table)


def _matches(op: str, pattern: str) -> bool:
    return fnmatchcase(op, pattern) or fnmatchcase(op.removeprefix("aten::"), pattern)


def _difference(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """`before -> after` for every dtype the two profiles answer differently."""
    changed: dict[str, Any] = {"op": mine["op"]}
    for where in ("eager", "graph"):
        other = theirs.get(where, {})
        changed[where] = {
            dtype: f"{answer} -> {other.get(dtype, 'composed of others')}"
            for dtype, answer in mine[where].items()
            if answer != other.get(dtype, "composed of others")
        }
    return changed


def _summary(answers: Mapping[str, str]) -> str:
    """The answer most dtypes get, and then the others with the dtypes they are for."""
    by_answer: dict[str, list[str]] = {}
    for dtype, answer in answers.items():
        by_answer.setdefault(answer, []).append(dtype)
    usual, *others = sorted(by_answer, key=lambda answer: -len(by_answer[answer]))
    return "; ".join([usual, *(f"{', '.join(by_answer[answer])}: {answer}" for answer in others)])


@app.command(help="Build the device's compiled part for this machine, or find it.")
def build(as_json: AsJson = False) -> None:
    from neuronqa.device.neuron import build as builder

    built = builder.ensure()
    if as_json:
        facts = {"path": str(built.path), "key": built.key, "seconds": built.seconds}
        print_json({"schema_version": SCHEMA, **facts})
    else:
        out.print(escape(f"{built.path} ({'built in ' + str(built.seconds) + ' s' if built.seconds else 'found'})"))


@app.command(help="Say what is wrong with a profile (.toml) or an overlay (.py).")
def lint(
    file: Annotated[str, typer.Argument(metavar="FILE")], profile: Profile = DEFAULT_PROFILE, as_json: AsJson = False
) -> None:
    from neuronqa.device.neuron import lint as linter

    problems = linter.lint(file, profile)
    if as_json:
        print_json({"schema_version": SCHEMA, "file": file, "problems": [asdict(problem) for problem in problems]})
    for problem in problems if not as_json else ():
        out.print(escape(f"{file}:{problem.line}: {problem.what}"), soft_wrap=True)
    raise typer.Exit(int(ExitCode.BAD_INPUT if problems else ExitCode.DONE))


@app.command(help="Say whether the model of a config.json fits the device in its full size (modelled).")
def fits(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A config.json.")],
    profile: Profile = DEFAULT_PROFILE,
    as_json: AsJson = False,
) -> None:
    from neuronqa.device.neuron import profile as profiles
    from neuronqa.worker.sizing import size

    profiles.load(profile)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"the config cannot be read: {error}", where=str(file)) from error
    answer = size(text, profile)
    if as_json:
        print_json({"schema_version": SCHEMA, **answer})
    else:
        out.print(escape(f"{answer['class']}, {answer['parameters'] / 1e9:.3f} B parameters in {answer['dtype']}"))
        out.print(escape(f"{answer['kind']} {answer['words']}"))
        if answer["demand"]["partial"]:
            out.print(f"not modelled, so it takes more: {', '.join(answer['demand']['partial'])}")
    raise typer.Exit(int(ExitCode.DONE if answer["kind"] == "fit:pass" else ExitCode.GATE_MISSED))


@app.command(help="Test the device: behaviours of a PyTorch accelerator, and PyTorch's own operator tests.")
def selftest(
    device: Annotated[str, typer.Option(help="Device: neuron, cpu:inductor, or another accelerator.")] = "neuron",
    ops: Annotated[str, typer.Option(metavar="PATTERNS", help="Operators to test, joined by commas.")] = "*",
    behaviours: Annotated[str, typer.Option(metavar="PATTERNS", help="Behaviours to test, joined by commas.")] = "*",
    dtypes: Annotated[str, typer.Option(help="Dtypes to test, joined by commas.")] = "float32,bfloat16",
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a table for a README.")] = False,
    as_json: AsJson = False,
) -> None:
    rows = []
    summary: dict[str, Any] = {}
    for line in _selftest_lines(device, {"ops": ops, "behaviours": behaviours, "dtypes": dtypes}):
        if "behaviours" in line:
            summary = line
            continue
        rows.append(line)
        if not as_json:
            err.print(escape(f"{line.get('behaviour') or line['op'] + ' ' + line['dtype']}"), end="\r", soft_wrap=True)
    failed = summary["behaviours"]["failed"] + summary["ops"]["unexplained"] + summary["ops"]["crashed"]
    if as_json:
        print_json({"schema_version": SCHEMA, "device": device, **summary, "rows": rows})
    elif markdown:
        out.print(checklist(device, rows), soft_wrap=True, markup=False)
    else:
        out.print(_selftest_table(rows))
        out.print(escape(json.dumps(summary)))
    raise typer.Exit(int(ExitCode.GATE_MISSED if failed else ExitCode.DONE))


def _selftest_lines(device: str, options: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "neuronqa.device.neuron.selftest"]
    for name, values in options.items():
        command += [f"--{name}", *(value for value in values.split(",") if value)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NEURONQA_SELFTEST_DEVICE": device}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            yield json.loads(line)
    if child.returncode != 0:
        raise EnvironmentFault("the self-test cannot run", hint="see the line above")


def checklist(device: str, rows: list[dict[str, Any]]) -> str:
    """A Markdown table: each behaviour, then operators by dtype, with what does not hold."""
    lines = [f"| {device} | holds | what does not |", "|---|---|---|"]
    for row in rows:
        if "behaviour" in row:
            name = row["behaviour"].replace("_", " ")
            lines.append(f"| {name} | {'yes' if row['passed'] else 'no'} | {_cell(row['reason'])} |")
    for dtype in dict.fromkeys(row["dtype"] for row in rows if "op" in row):
        tested = [row for row in rows if row.get("dtype") == dtype and row["verdict"] != "skipped"]
        wrong = [row["op"] for row in tested if row["verdict"] in ("unexplained", "crashed")]
        lines.append(
            f"| operators in {dtype} | {len(tested) - len(wrong)} of {len(tested)} | {_cell(', '.join(wrong))} |"
        )
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())[:300]


def _selftest_table(rows: list[dict[str, Any]]) -> Table:
    """Everything that did not simply pass, with its reason."""
    table = Table("what", "dtype", "verdict", "reason")
    for row in rows:
        verdict = row.get("verdict") or ("passed" if row["passed"] else "failed")
        if verdict not in ("passed", "skipped"):
            name, dtype = row.get("behaviour") or row["op"], row.get("dtype", "")
            table.add_row(*(escape(cell) for cell in (name, dtype, verdict, row["reason"])))
    return table
