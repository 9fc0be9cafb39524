"""Databases to hold the store to its contract: a SQLite file and a PostgreSQL server of our own on loopback."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Engine

from neuronqa.db.engine import open_engine

OFF = os.environ.get("NEURONQA_TEST_POSTGRES") == "off"
BACKENDS = ("sqlite",) if OFF else ("sqlite", "postgresql")
HINT = "install it (Debian: apt install postgresql), or set NEURONQA_TEST_POSTGRES=off to test on SQLite alone"


class Server:
    """One PostgreSQL cluster below a folder of its own, run by an unprivileged user, with a password."""

    def __init__(self, base: Path) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"), key=lambda path: int(path.parts[4]))
        on_path = shutil.which("pg_ctl")
        if not found and on_path is None:
            pytest.fail(f"PostgreSQL's server programs are not installed: {HINT}", pytrace=False)
        self._programs = found[-1].parent if found else Path(str(on_path)).parent
        self._base = base
        self._user = _unprivileged()
        self._password = secrets.token_hex(8)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        if self._user is not None:
            os.chown(base, pwd.getpwnam(self._user).pw_uid, -1)

    def start(self) -> None:
        secret = self._base / "password"
        secret.write_text(self._password)
        secret.chmod(0o644)
        data = str(self._base / "data")
        access = ("-U", "tester", "--auth=scram-sha-256", f"--pwfile={secret}")
        self._run("initdb", "-D", data, *access, "-E", "UTF8", "--no-sync")
        self.serve()

    def serve(self) -> None:
        """Run it, for the first time or again."""
        data = str(self._base / "data")
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "off",
            "autovacuum": "off",
            "synchronous_commit": "off",
            "max_connections": 20,
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
        self._run("pg_ctl", "-D", data, "-o", options, "-l", str(self._base / "log"), "-w", "-t", "60", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self._base / "data"), "-m", "immediate", "-w", "stop")

    @property
    def url(self) -> str:
        return f"postgresql://tester:{self._password}@127.0.0.1:{self.port}/postgres"

    def empty(self) -> None:
        """Forget every row: a schema or a database of its own for each test would be thousands of files."""
        with psycopg.connect(self.url, autocommit=True) as db:
            found = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
            names = [sql.Identifier(name) for (name,) in found if name != "alembic_version"]
            if names:
                db.execute(sql.SQL("TRUNCATE {} RESTART IDENTITY CASCADE").format(sql.SQL(", ").join(names)))

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._programs / program), *arguments],
            user=self._user,
            cwd=self._base,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if done.returncode != 0:
            log = self._base / "log"
            said = done.stderr + (log.read_text(errors="replace") if log.exists() else "")
            pytest.fail(f"PostgreSQL does not start ({program}): {said[-2000:]}", pytrace=False)


def _unprivileged() -> str | None:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    base = Path(tempfile.mkdtemp(prefix="nqa-pg-", dir="/tmp"))
    base.chmod(0o755)
    server = Server(base)
    server.start()
    yield server
    server.stop()
    shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "empty.db"
    open_engine(str(path), create=True).dispose()
    return path


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path, migrated: Path) -> str:
    """An empty database: a copy of a migrated file, or the server's own without its rows."""
    if request.param == "sqlite":
        return str(shutil.copy(migrated, tmp_path / "contract.db"))
    server: Server = request.getfixturevalue("postgres")
    server.empty()
    return server.url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    opened = open_engine(url, create=True)
    yield opened
    opened.dispose()
