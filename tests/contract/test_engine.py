"""Opening a database: what can be wrong with it is one line, and one driver writes to it at a time."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from neuronqa.db import queries
from neuronqa.db import tables as t
from neuronqa.db.engine import (
    check_file,
    database_url,
    driver_lock,
    head_revision,
    open_engine,
    over_network,
    shown,
    sweep_lock,
)
from neuronqa.db.store import Store
from neuronqa.errors import BadInput, EnvironmentFault, NeuronQAError
from tests.builders import eligible, entries, open_sweep, save_plan, workload
from tests.contract.conftest import BACKENDS
from tests.powerless import powerless

A = workload("a")


def whole(path: Path) -> Path:
    """A database with a sweep in it."""
    engine = open_engine(str(path), create=True)
    store = Store(engine)
    open_sweep(store, save_plan(store, [A], entries([(eligible(A), 1, 1)])))
    engine.dispose()
    return path


def refusal(path: object, *, create: bool = False, kind: type[NeuronQAError] = BadInput) -> str:
    with pytest.raises(kind) as caught:
        open_engine(str(path), create=create).dispose()
    assert "\n" not in str(caught.value)
    assert caught.value.where or caught.value.hint
    return str(caught.value)


# --- names


def test_a_bare_path_is_a_sqlite_file_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown(database_url("own.db")) == str(tmp_path / "own.db")
    assert shown(database_url("sqlite:///own.db")) == str(tmp_path / "own.db")
    assert shown(database_url(f"sqlite:///{tmp_path}/own.db")) == str(tmp_path / "own.db")
    assert shown(database_url("a b?c=d#e%20.db")) == str(tmp_path / "a b?c=d#e%20.db")


def test_the_environment_names_the_database_and_an_option_overrules_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEURONQA_DB", "from-environment.db")
    assert shown(database_url(None)).endswith("/from-environment.db")
    assert shown(database_url("option.db")).endswith("/option.db")
    monkeypatch.delenv("NEURONQA_DB")
    assert shown(database_url(None)) == str(tmp_path / "neuronqa.db")


@pytest.mark.parametrize(
    "text",
    [
        "mysql://host/db",
        "mongodb://host/db",
        "://",
        "nonsense://",
        "postgresql://host:port/db",
        "postgresql://u:secret@host:99x/db",
        "postgres://u:secret@host/db",
        "http://[::1",
    ],
)
def test_a_url_of_no_database_we_know_is_bad_input_and_shows_no_password(text: str) -> None:
    with pytest.raises(BadInput) as caught:
        database_url(text)
    assert "secret" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("own.db", False),
        ("sqlite://", False),
        ("postgresql://host/db", True),
        ("postgresql://127.0.0.1:5433/db", True),
        ("postgresql:///db", False),
        ("postgresql:///db?host=/run/postgresql", False),
        ("postgresql:///db?host=elsewhere", True),
    ],
)
def test_a_database_over_tcp_is_told_from_one_in_the_file_system(
    text: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGHOST", raising=False)
    assert over_network(database_url(text)) is expected


def test_a_password_is_never_shown() -> None:
    url = database_url("postgresql://someone:s3cret@host:5433/name?options=-csearch_path%3Dx")
    assert url.password == "s3cret"
    assert "s3cret" not in shown(url)
    assert "someone" in shown(url)


@pytest.mark.skipif("postgresql" not in BACKENDS, reason="NEURONQA_TEST_POSTGRES=off")
def test_a_refused_login_says_where_without_the_password(postgres: Any) -> None:
    url = f"postgresql://tester:wr0ng-pass@127.0.0.1:{postgres.port}/postgres"
    words = refusal(url)
    assert "cannot be used" in words
    assert "wr0ng-pass" not in words
    assert str(postgres.port) in words


def test_a_server_that_is_not_there_is_one_line() -> None:
    assert "cannot be used" in refusal("postgresql://u@127.0.0.1:1/db")


# --- files


def test_an_absent_file_is_made_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    assert "no such database" in refusal(path)
    assert not path.exists()
    open_engine(str(path), create=True).dispose()
    open_engine(str(path)).dispose()
    assert sqlite3.connect(path).execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_folder_is_no_database(tmp_path: Path) -> None:
    assert "is a folder" in refusal(tmp_path)
    assert "is a folder" in refusal(tmp_path, create=True)


def test_a_file_below_a_file_or_a_missing_folder_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "cannot be reached" in refusal(tmp_path / "file" / "x.db")
    assert "no such database" in refusal(tmp_path / "missing" / "x.db")
    assert "cannot be made here" in refusal(tmp_path / "missing" / "x.db", create=True, kind=EnvironmentFault)


@pytest.mark.parametrize("create", [False, True])
def test_names_no_file_can_have_are_bad_input(tmp_path: Path, create: bool) -> None:
    for name in ("x" * 300, "a\0b"):
        assert "cannot be reached" in refusal(tmp_path / name, create=create)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    refusal(tmp_path / "loop" / "x.db", create=create)


@pytest.mark.parametrize("create", [False, True])
def test_a_device_or_a_pipe_is_no_database(tmp_path: Path, create: bool) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null", "/dev/zero"):
        assert "is no file" in refusal(path, create=create)


@pytest.mark.parametrize("create", [False, True])
def test_a_text_file_is_no_database_and_is_left_alone(tmp_path: Path, create: bool) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, and there are many of them\n" * 100)
    before = path.read_bytes()
    assert "file is not a database" in refusal(path, create=create)
    assert path.read_bytes() == before


def test_a_damaged_database_is_one_line_whenever_it_is_noticed(tmp_path: Path) -> None:
    path = whole(tmp_path / "damaged.db")
    body = bytearray(path.read_bytes())
    body[4096:] = b"\xa5" * (len(body) - 4096)
    path.write_bytes(body)
    with pytest.raises(BadInput, match=r"damaged|malformed"), open_engine(str(path)).connect() as db:
        queries.sweep(db)


def test_an_unreadable_file_is_said_so(tmp_path: Path) -> None:
    path = whole(tmp_path / "secret.db")
    path.chmod(0)
    with powerless():
        assert "cannot be read" in refusal(path)
        assert "cannot be read" in refusal(path, create=True)


def test_a_read_only_file_is_read_but_not_swept(tmp_path: Path) -> None:
    path = whole(tmp_path / "kept.db")
    path.chmod(0o444)
    with powerless():
        with open_engine(str(path)).connect() as db:
            assert queries.sweep(db).name == "one"
        assert "read-only" in refusal(path, create=True, kind=EnvironmentFault)


def test_a_read_only_folder_takes_no_database_and_says_what_to_do_with_one_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    folder.mkdir()
    path = whole(folder / "old.db")
    folder.chmod(0o555)
    try:
        with powerless():
            assert "cannot be made here" in refusal(folder / "new.db", create=True, kind=EnvironmentFault)
            assert "copy it" in refusal(path, kind=EnvironmentFault)
    finally:
        folder.chmod(0o755)


def test_what_happens_to_a_database_in_use_is_one_line(tmp_path: Path) -> None:
    path = whole(tmp_path / "used.db")
    engine = open_engine(str(path))
    with engine.connect() as db, pytest.raises(EnvironmentFault, match="no such table") as caught:
        db.execute(text("SELECT * FROM nowhere"))
    assert str(path) in str(caught.value)
    engine.dispose()


# --- schema


def test_an_empty_file_has_no_schema_and_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    assert "neuronqa db upgrade" in refusal(path)
    open_engine(str(path), create=True).dispose()
    open_engine(str(path)).dispose()


def test_an_old_schema_says_what_to_do_and_is_brought_up(tmp_path: Path) -> None:
    path = whole(tmp_path / "old.db")
    with sqlite3.connect(path) as db:
        db.execute("DROP TABLE alembic_version")
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            db.execute(f'DROP TABLE IF EXISTS "{name}"')
    words = refusal(path)
    assert f"needs {head_revision()}" in words
    assert "neuronqa db upgrade" in words
    open_engine(str(path), create=True).dispose()
    open_engine(str(path)).dispose()


@pytest.mark.parametrize("create", [False, True])
def test_a_newer_schema_is_not_touched(tmp_path: Path, create: bool) -> None:
    path = whole(tmp_path / "newer.db")
    with sqlite3.connect(path) as db:
        db.execute("UPDATE alembic_version SET version_num = '9999'")
    words = refusal(path, create=create)
    assert "9999" in words
    assert "newer neuronqa" in words


def test_somebody_elses_database_is_not_migrated_into(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE customers (name TEXT)")
    for create in (False, True):
        refusal(path, create=create)
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("customers",)]


def test_rows_that_would_hang_in_the_air_are_refused(engine: Any) -> None:
    from sqlalchemy.exc import IntegrityError

    with engine.connect() as db, pytest.raises(IntegrityError):
        db.execute(
            t.entry.insert().values(
                plan_id=77, rank=1, group_id=88, name="", revision="", downloads=0, library="", task=""
            )
        )


# --- one driver


def locked_elsewhere(path: Path) -> subprocess.Popen[str]:
    script = (
        "import sys, time\n"
        "from neuronqa.db.engine import database_url, driver_lock\n"
        "with driver_lock(database_url(sys.argv[1])):\n"
        "    print('locked', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "locked\n"
    return child


def test_a_second_driver_is_refused_and_told_who_is_first(tmp_path: Path) -> None:
    path = whole(tmp_path / "one.db")
    (tmp_path / "link.db").symlink_to(path)
    child = locked_elsewhere(path)
    try:
        for name in (path, tmp_path / "link.db"):
            with (
                pytest.raises(EnvironmentFault, match=f"process {child.pid}") as caught,
                driver_lock(database_url(str(name))),
            ):
                pytest.fail("two drivers at once")
            assert "--db" in caught.value.hint
        with open_engine(str(path)).connect() as db:
            assert db.execute(select(t.sweep.c.name)).scalars().all() == ["one"]
    finally:
        child.kill()
        child.wait()
    with driver_lock(database_url(str(path))):
        pass


@pytest.mark.skipif("postgresql" not in BACKENDS, reason="NEURONQA_TEST_POSTGRES=off")
def test_on_a_server_each_sweep_has_one_driver_and_a_dead_driver_holds_nothing(postgres: Any) -> None:
    postgres.empty()
    first, second = open_engine(postgres.url, create=True), open_engine(postgres.url)
    with sweep_lock(first, 7):
        with pytest.raises(EnvironmentFault, match="another driver"), sweep_lock(second, 7):
            pytest.fail("two drivers of one sweep")
        with sweep_lock(second, 8), first.begin() as db:
            assert db.execute(select(t.sweep.c.id)).all() == []
    with sweep_lock(second, 7):
        pass
    first.dispose()
    second.dispose()


def test_two_databases_have_two_drivers(tmp_path: Path) -> None:
    child = locked_elsewhere(whole(tmp_path / "one.db"))
    try:
        with driver_lock(database_url(str(tmp_path / "two.db"))):
            pass
    finally:
        child.kill()
        child.wait()


def test_a_lock_that_cannot_be_written_is_an_environment_fault(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    with (
        powerless(),
        pytest.raises(EnvironmentFault, match="lock file"),
        driver_lock(database_url(str(folder / "x.db"))),
    ):
        pytest.fail("locked without a lock")


def test_nothing_is_left_beside_a_name_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        check_file(database_url(str(tmp_path / "absent.db")), create=False)
    assert list(tmp_path.iterdir()) == []
