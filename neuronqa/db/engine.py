"""Opening a database: SQLite in WAL by default, PostgreSQL by URL; the schema is brought up by migrations alone."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Engine, create_engine, event, func, inspect, make_url, select
from sqlalchemy.engine import URL, ExceptionContext
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DBAPIError,
    NoSuchModuleError,
    OperationalError,
    SQLAlchemyError,
)

from neuronqa.bundled import folder
from neuronqa.errors import BadInput, DatabaseAway, EnvironmentFault

DEFAULT_FILE: Final = "neuronqa.db"
BUSY_MS: Final = 10_000
LOCKS: Final = 0x6E716101
"""The class of our advisory locks, apart from other users' of the same server."""


def database_url(named: str | None) -> URL:
    """`named`, else `$NEURONQA_DB`, else `neuronqa.db` in the current folder; a bare path means SQLite.

    Raises BadInput for what is neither.
    """
    text = named or os.environ.get("NEURONQA_DB") or DEFAULT_FILE
    if "://" not in text:
        return URL.create("sqlite", database=_resolved(text))
    try:
        url = make_url(text)
    except (ArgumentError, ValueError) as error:
        raise BadInput("the database URL cannot be read", where=_masked(text), hint=_URL_HINT) from error
    match url.get_backend_name():
        case "sqlite":
            memory = url.database in (None, "", ":memory:")
            return url if memory else url.set(database=_resolved(str(url.database)))
        case "postgresql":
            return url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url
        case other:
            raise BadInput(f"databases of kind {other!r} are not supported", hint=_URL_HINT)


_URL_HINT: Final = "give a file name, or postgresql://USER@HOST/NAME"


def shown(url: URL) -> str:
    """The URL as it may be printed: without the password; a SQLite file as its path."""
    if url.get_backend_name() == "sqlite":
        return url.database or ":memory:"
    return url.render_as_string(hide_password=True)


def over_network(url: URL) -> bool:
    """Is the database reached over TCP? A file and a socket in the file system are not."""
    host = url.host or str(url.query.get("host", "")) or os.environ.get("PGHOST", "")
    return url.get_backend_name() == "postgresql" and host != "" and not host.startswith("/")


def open_engine(named: str | None = None, *, create: bool = False, read_only: bool = False) -> Engine:
    """Open the database at its newest schema; with `read_only`, every connection refuses to write.

    With `create`, an absent SQLite file is made and migrations are run; without it, an absent file, an unreadable one
    or an old schema is a BadInput that says what to do.
    """
    url = database_url(named)
    check_file(url, create=create)
    try:
        engine = create_engine(url, connect_args=_arguments(url, read_only=read_only))
    except (NoSuchModuleError, ImportError) as error:
        raise EnvironmentFault(
            "the PostgreSQL driver is not installed", hint="pip install 'neuronqa[postgres]'"
        ) from error
    if url.get_backend_name() == "sqlite":
        _tune_sqlite(engine, read_only=read_only)
    try:
        _bring_up(engine, create=create)
    except (DBAPIError, SQLAlchemyError, CommandError) as error:
        engine.dispose()
        reason = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise BadInput(f"the database cannot be used: {reason}", where=shown(url), hint="check --db") from error
    _name_failures(engine)
    return engine


def head_revision() -> str:
    """The newest schema this version knows."""
    return ScriptDirectory.from_config(_config()).get_current_head() or ""


def _known_revisions() -> set[str]:
    return {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}


@contextmanager
def driver_lock(url: URL) -> Iterator[None]:
    """Hold the side-car lock of a SQLite file: one sweep driver at a time. Raises EnvironmentFault when it is taken."""
    if not _is_file(url):
        yield
        return
    path = Path(f"{url.database}.lock")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        hint = "choose a folder you can write with --db"
        raise EnvironmentFault(
            f"the lock file cannot be written: {error.strerror}", where=str(path), hint=hint
        ) from error
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


@contextmanager
def sweep_lock(engine: Engine, sweep_id: int) -> Iterator[None]:
    """Hold one sweep on a server: one driver at a time. Raises EnvironmentFault when another has it.

    A SQLite file needs no more than :func:`driver_lock`. The lock lives as long as its connection.
    """
    if engine.dialect.name != "postgresql":
        yield
        return
    with engine.connect() as held:
        held.detach()
        if not held.execute(select(func.pg_try_advisory_lock(LOCKS, sweep_id))).scalar_one():
            raise EnvironmentFault(
                "another driver is executing this sweep", where=shown(engine.url), hint="wait for it, or start another"
            )
        held.commit()
        yield


def check_file(url: URL, *, create: bool) -> None:
    """Raise BadInput or EnvironmentFault for a SQLite file that cannot be opened or, with `create`, made or written."""
    if not _is_file(url):
        return
    path = Path(str(url.database))
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        _check_absent(path, create=create)
        return
    except OSError as error:
        raise BadInput(f"the database cannot be reached: {error.strerror}", where=str(path)) from error
    if stat.S_ISDIR(mode):
        raise BadInput("the database is a folder", where=str(path), hint="name a file inside it")
    if not stat.S_ISREG(mode):
        raise BadInput("the database is no file", where=str(path), hint="check --db")
    if not os.access(path, os.R_OK):
        raise BadInput("the database cannot be read", where=str(path), hint="check its permissions")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        # In WAL mode even a reader writes: the index of the log lies beside the file. (sqlite.org/wal.html, 5)
        raise EnvironmentFault(
            "the database is in a folder that cannot be written", where=str(path), hint="copy it to one that can"
        )
    if create and not os.access(path, os.W_OK):
        raise EnvironmentFault("the database is read-only", where=str(path), hint="give another --db")


def _check_absent(path: Path, *, create: bool) -> None:
    if not create:
        raise BadInput("there is no such database", where=str(path), hint="run `neuronqa sweep` first, or give --db")
    if not (path.parent.is_dir() and os.access(path.parent, os.W_OK | os.X_OK)):
        raise EnvironmentFault(
            "the database cannot be made here", where=str(path), hint="choose a folder you can write"
        )


def _is_file(url: URL) -> bool:
    return url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")


def _resolved(text: str) -> str:
    """One name for one file, so that a link to a database takes the same lock."""
    try:
        return str(Path(text).resolve())
    except (OSError, RuntimeError, ValueError) as error:
        raise BadInput("the database cannot be reached", where=text, hint="check --db") from error


def _name_failures(engine: Engine) -> None:
    """Turn what a database may do at any moment (full, locked, damaged, gone) into one line for a person."""

    @event.listens_for(engine, "handle_error")
    def on_error(context: ExceptionContext) -> None:
        failure = context.sqlalchemy_exception
        reason = (str(context.original_exception).splitlines() or ["no reason given"])[0]
        if is_away(engine.dialect.name, context.original_exception):
            raise DatabaseAway(f"the database is away: {reason}", where=shown(engine.url)) from failure
        if type(failure) is OperationalError:
            raise EnvironmentFault(f"the database failed: {reason}", where=shown(engine.url)) from failure
        if type(failure) is DatabaseError:
            raise BadInput(f"the database is damaged: {reason}", where=shown(engine.url)) from failure


def is_away(dialect: str, error: BaseException) -> bool:
    """Did the server end the connection, or could none be made? (PostgreSQL's error codes: classes 08 and 57P)"""
    if dialect != "postgresql":
        return False
    import psycopg

    state = getattr(error, "sqlstate", None) or "08"
    return isinstance(error, psycopg.OperationalError) and state.startswith(("08", "57P"))


def _arguments(url: URL, *, read_only: bool) -> dict[str, Any]:
    server = url.get_backend_name() == "postgresql"
    return {"options": "-c default_transaction_read_only=on"} if server and read_only else {}


def _tune_sqlite(engine: Engine, *, read_only: bool) -> None:
    @event.listens_for(engine, "connect")
    def on_connect(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        cursor.execute("PRAGMA cache_size=-65536")
        if read_only:
            cursor.execute("PRAGMA query_only=ON")
        cursor.close()


def _bring_up(engine: Engine, *, create: bool) -> None:
    with engine.connect() as connection:
        current = MigrationContext.configure(connection).get_current_revision()
        theirs = [] if current is not None else inspect(connection).get_table_names()
    if current == head_revision():
        return
    if theirs:
        raise BadInput(
            f"the database holds somebody else's tables ({theirs[0]}, ...)",
            where=shown(engine.url),
            hint="give neuronqa a database of its own",
        )
    if current is not None and current not in _known_revisions():
        raise BadInput(
            f"the database has schema {current}, which this version does not know",
            where=shown(engine.url),
            hint="use a newer neuronqa",
        )
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
