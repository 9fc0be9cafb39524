"""Bad input of every kind: one line that says what, where and what to do, and the documented exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuronqa.db.engine import open_engine
from neuronqa.db.store import Store
from tests.builders import eligible, entries, open_sweep, save_plan, workload
from tests.powerless import powerless
from tests.unit.cli.conftest import Command

CATALOG = """
schema_version = 1
name = "little"
source = "file"
[[entry]]
id = "little/one"
"""

WRONG: dict[str, tuple[int, str]] = {
    # the command line itself
    "nonsense": (2, "No such command"),
    "--nonsense": (2, "No such option"),
    "sweep --nonsense": (2, "No such option"),
    "sweep --catalog": (2, "requires an argument"),
    "sweep": (2, "name either a catalog or a sweep"),
    "sweep --catalog CATALOG --resume one": (2, "name either a catalog or a sweep"),
    "sweep --catalog CATALOG extra": (2, "unexpected extra argument"),
    "sweep --catalog CATALOG --budget five": (2, "'five' does not parse"),
    "sweep --catalog CATALOG --budget 0s": (2, "does not parse"),
    "sweep --catalog CATALOG --gate green": (2, "does not parse"),
    "sweep --catalog CATALOG --gate green>=80": (2, "more than everything"),
    "sweep --catalog CATALOG --gate fits>=1%": (2, "asks for no rung"),
    "sweep --catalog CATALOG --mode lazy": (2, "lazy"),
    "sweep --catalog CATALOG --dtype fp64": (2, "fp64"),
    "sweep --catalog CATALOG --limit 0": (2, "--limit"),
    "sweep --catalog CATALOG --limit many": (2, "integer"),
    "sweep --catalog CATALOG --workers 0": (2, "--workers"),
    "sweep --catalog CATALOG --max-failures -1": (2, "--max-failures"),
    "sweep --catalog CATALOG --select nonsense:": (2, "nonsense"),
    "sweep --resume one --db WHOLE --budget 5m": (2, "--budget cannot be given"),
    "sweep --resume one --db WHOLE --policy quick --limit 3": (2, "--policy, --limit cannot be given"),
    "sweep --resume one --db WHOLE --gate fits>=1%": (2, "asks for no rung"),
    "sweeps nonsense": (2, "No such command"),
    "report one two": (2, "unexpected extra argument"),
    "report --format pdf": (2, "pdf"),
    "triage list --limit 0": (2, "--limit"),
    "dashboard --host 0.0.0.0 --db WHOLE": (2, "does not listen on '0.0.0.0'"),
    "dashboard --host example.com --db WHOLE": (2, "does not listen on"),
    "dashboard --port 99999 --db WHOLE": (2, "--port"),
    "doctor --nonsense": (2, "No such option"),
    "controls --workloads 0": (2, "--workloads"),
    "db nonsense": (2, "No such command"),
    # what was named cannot be used
    "sweep --catalog nonsense": (3, "nonsense"),
    "sweep --catalog EMPTY": (3, "EMPTY"),
    "sweep --catalog CATALOG --policy nonsense": (3, "no policy 'nonsense'"),
    "sweep --catalog CATALOG --policy MALFORMED": (3, "policy cannot be read"),
    "sweep --catalog CATALOG --db TEXT": (3, "file is not a database"),
    "sweep --catalog CATALOG --db EMPTY": (3, "is a folder"),
    "sweep --catalog CATALOG --db mysql://host/x": (3, "'mysql' are not supported"),
    "sweep --catalog CATALOG --db postgresql://u:pw@127.0.0.1:1/x": (3, "database cannot be used"),
    "sweep --resume nonsense --db WHOLE": (3, "no sweep called 'nonsense'"),
    "sweep --resume one --db ABSENT": (3, "no such database"),
    "report --db ABSENT": (3, "no such database"),
    "report --db TEXT": (3, "file is not a database"),
    "report nonsense --db WHOLE": (3, "no sweep called"),
    "report one --db WHOLE": (3, "not been settled"),
    "sweeps list --db ABSENT": (3, "no such database"),
    "sweeps show nonsense --db WHOLE": (3, "no sweep called"),
    "triage list --db ABSENT": (3, "no such database"),
    "triage list nonsense --db WHOLE": (3, "no sweep called"),
    "dashboard --db ABSENT": (3, "no such database"),
    "controls --catalog nonsense": (3, "no catalog is called 'nonsense'"),
    "db upgrade --db EMPTY": (3, "is a folder"),
    "db upgrade --db TEXT": (3, "file is not a database"),
    # the machine
    "sweep --catalog CATALOG --db CLOSED/x.db": (4, "cannot be made here"),
    "db upgrade --db CLOSED/x.db": (4, "cannot be made here"),
}


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """What the capital words in the table stand for."""
    made = {name: tmp_path / name for name in ("CATALOG", "EMPTY", "CLOSED", "TEXT", "MALFORMED", "WHOLE", "ABSENT")}
    for name in ("CATALOG", "EMPTY", "CLOSED"):
        made[name].mkdir()
    (made["CATALOG"] / "catalog.toml").write_text(CATALOG)
    made["TEXT"].write_text("this is a text, and a long one at that\n" * 100)
    made["MALFORMED"].write_text("name = 'own'\n[required]\nruns = []\n")
    engine = open_engine(str(made["WHOLE"]), create=True)
    store = Store(engine)
    of = workload("a")
    open_sweep(store, save_plan(store, [of], entries([(eligible(of), 1, 1)])))
    engine.dispose()
    made["CLOSED"].chmod(0o555)
    return made


@pytest.mark.parametrize("line", WRONG)
def test_bad_input_is_one_line_and_its_exit_code(line: str, neuronqa: Command, places: dict[str, Path]) -> None:
    code, words = WRONG[line]
    arguments = line
    for name, path in places.items():
        arguments = arguments.replace(name, str(path))
    before = sorted(path.name for path in places["WHOLE"].parent.iterdir())
    with powerless():
        said = neuronqa(*arguments.split(" "))
    assert said.code == code, said.err
    assert said.out == ""
    *stages, last = said.err.splitlines()
    assert last.startswith("neuronqa: ")
    assert words in last
    assert not [stage for stage in stages if "Traceback" in stage or stage.startswith("neuronqa: ")]
    left_behind = {path.name for path in places["WHOLE"].parent.iterdir()} - set(before)
    assert left_behind <= {"WHOLE-wal", "WHOLE-shm", "WHOLE.lock", "TEXT.lock"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 4, "no C++ compiler"),
        (("--profile", "nonsense"), 3, "unknown device profile 'nonsense'"),
    ],
)
def test_a_device_that_cannot_be_made_ready_is_one_line(
    neuronqa: Command,
    places: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    code: int,
    words: str,
) -> None:
    """The child that prepares it is real; the cache is empty, and there is no compiler."""
    monkeypatch.setenv("NEURONQA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CXX", "/nowhere/c++")
    said = neuronqa("sweep", "--catalog", places["CATALOG"], "--db", tmp_path / "new.db", *arguments)
    assert said.code == code
    assert said.out == ""
    assert "Traceback" not in said.err
    assert said.err.splitlines()[-1].startswith("neuronqa: ")
    assert words in said.err.splitlines()[-1]


def test_a_fault_of_ours_is_not_taken_for_a_missed_gate(
    neuronqa: Command, monkeypatch: pytest.MonkeyPatch, places: dict[str, Path]
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr("neuronqa.db.queries.sweeps", broken)
    said = neuronqa("sweeps", "list", "--db", places["WHOLE"])
    assert said.code == 5
    assert "Traceback" in said.err
    assert "ZeroDivisionError: of all things" in said.err.splitlines()[-1]


def test_an_interrupt_is_130(neuronqa: Command, monkeypatch: pytest.MonkeyPatch, places: dict[str, Path]) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("neuronqa.db.queries.sweeps", interrupted)
    assert neuronqa("sweeps", "list", "--db", places["WHOLE"]).code == 130


def test_a_hostile_name_is_printed_without_its_controls(neuronqa: Command, places: dict[str, Path]) -> None:
    said = neuronqa("report", "\x1b[31mred\x07\u202e\nline", "--db", places["WHOLE"])
    assert said.code == 3
    assert said.err.count("\n") == 1
    assert not {"\x1b", "\x07", "\u202e"} & set(said.err)
