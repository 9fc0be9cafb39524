"""Opening a database: SQLite in WAL by default, PostgreSQL by URL; the schema is brought up by migrations alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from neuronqa.bundled import folder
from neuronqa.errors import BadInput, EnvironmentFault

DEFAULT_FILE: Final = "neuronqa.db"
BUSY_MS: Final = 10_000


def database_url(named: str | None) -> URL:
    """`named`, else `$NEURONQA_DB`, else `neuronqa.db` in the current folder; a bare path means SQLite.

    Raises BadInput for what is neither.
    """
    text = named or os.environ.get("NEURONQA_DB") or DEFAULT_FILE
    if "://" not in text:
        return URL.create("sqlite", database=str(Path(text).resolve()))
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise BadInput("the database URL cannot be read", where=_masked(text), hint=_URL_HINT) from error
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise BadInput(f"databases of kind {url.get_backend_name()!r} are not supported", hint=_URL_HINT)
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    return url


_URL_HINT: Final = "give a file name, or postgresql://USER@HOST/NAME"


def shown(url: URL) -> str:
    """The URL as it may be printed: without the password; a SQLite file as its path."""
    if url.get_backend_name() == "sqlite":
        return url.database or ":memory:"
    return url.render_as_string(hide_password=True)


def open_engine(named: str | None = None, *, create: bool = False) -> Engine:
    """Open the database at its newest schema.

    With `create`, an absent SQLite file is made and migrations are run; without it, an absent file, an unreadable one
    or an old schema is a BadInput that says what to do.
    """
    url = database_url(named)
    _check_file(url, create=create)
    try:
        engine = create_engine(url)
    except (NoSuchModuleError, ImportError) as error:
        raise EnvironmentFault(
            "the PostgreSQL driver is not installed", hint="pip install 'neuronqa[postgres]'"
        ) from error
    if url.get_backend_name() == "sqlite":
        _tune_sqlite(engine)
    try:
        _bring_up(engine, create=create)
    except (DBAPIError, SQLAlchemyError, CommandError) as error:
        engine.dispose()
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise BadInput(f"the database cannot be used: {reason}", where=shown(url), hint="check --db") from error
    return engine


def head_revision() -> str:
    """The newest schema this version knows."""
    return ScriptDirectory.from_config(_config()).get_current_head() or ""


@contextmanager
def driver_lock(url: URL) -> Iterator[None]:
    """Hold the side-car lock of a SQLite file: one sweep driver at a time. Raises EnvironmentFault when it is taken."""
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        yield
        return
    path = Path(f"{url.database}.lock")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise EnvironmentFault("the lock file cannot be written", where=str(path), hint=str(error)) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            raise EnvironmentFault(
                f"another sweep (process {owner}) is writing to this database",
                where=shown(url),
                hint="wait for it, or give this sweep its own --db",
            ) from None
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode("ascii"), 0)
        yield
    finally:
        os.close(handle)


def _check_file(url: URL, *, create: bool) -> None:
    if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return
    path = Path(str(url.database))
    if path.is_dir():
        raise BadInput("the database is a folder", where=str(path), hint="name a file inside it")
    if not path.exists() and not create:
        raise BadInput("there is no such database", where=str(path), hint="run `neuronqa sweep` first, or give --db")
    if create and not path.exists() and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise EnvironmentFault(
            "the database cannot be made here", where=str(path), hint="choose a folder you can write"
        )
    if path.exists() and not os.access(path, os.R_OK):
        raise BadInput("the database cannot be read", where=str(path), hint="check its permissions")
    if create and path.exists() and not os.access(path, os.W_OK):
        raise EnvironmentFault("the database is read-only", where=str(path), hint="give another --db")


def _tune_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        cursor.execute("PRAGMA cache_size=-65536")
        cursor.close()


def _bring_up(engine: Engine, *, create: bool) -> None:
    with engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
    if current == head_revision():
        return
    if not create:
        raise BadInput(
            f"the database has schema {current or 'none'}, this version needs {head_revision()}",
            where=shown(engine.url),
            hint="run `neuronqa db upgrade`",
        )
    with engine.begin() as connection:
        config = _config()
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(folder("db") / "migrations"))
    return config


def _masked(text: str) -> str:
    scheme, _, rest = text.partition("://")
    return f"{scheme}://***@{rest.rpartition('@')[2]}" if "@" in rest else text
