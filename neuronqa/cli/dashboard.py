"""`neuronqa dashboard`."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated, Final

import typer

from neuronqa.cli.options import Db
from neuronqa.cli.output import err
from neuronqa.errors import BadInput, EnvironmentFault, UsageError

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

TOKEN: Final = "NEURONQA_DASHBOARD_TOKEN"


@app.command(help="Serve the triage pages: to this machine alone, or to whoever has the token.")
def dashboard(
    host: Annotated[str, typer.Option(help="Address to listen on; beyond loopback only with a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8765,
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"File with the token that every request needs (default: ${TOKEN}).", show_default=False),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer no actions, and refuse to write.")] = False,
    db: Db = None,
) -> None:
    import uvicorn

    from neuronqa.dashboard.access import Access, is_loopback
    from neuronqa.dashboard.app import create_app
    from neuronqa.db.engine import open_engine, shown

    token = _token(token_file)
    if not token and not is_loopback(host):
        raise UsageError(
            f"the dashboard does not listen on {host!r} without a token",
            hint=f"set {TOKEN} or give --token-file, or use a loopback address and a tunnel",
        )
    engine = open_engine(db, read_only=True)
    writer = None if read_only else open_engine(db)
    with _listener(host, port) as listener:
        bound = listener.getsockname()[1]
        shown_host = f"[{host}]" if ":" in host else host
        err.print(
            f"NeuronQA on http://{shown_host}:{bound}  (database {shown(engine.url)}; Ctrl-C to stop)",
            markup=False,
            soft_wrap=True,
        )
        site = create_app(engine, Access(token=token, read_only=read_only), writer)
        config = uvicorn.Config(site, log_level="warning", server_header=False)
        uvicorn.Server(config).run(sockets=[listener])


def _token(file: Path | None) -> str:
    """Raises BadInput for a file that cannot be read, UsageError for a token one could guess."""
    from neuronqa.dashboard.access import SHORTEST_TOKEN

    try:
        token = (file.read_text(encoding="utf-8") if file else os.environ.get(TOKEN, "")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("the token cannot be read", where=str(file), hint="give a text file") from error
    if (file or token) and (len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable()):
        raise UsageError(f"the token must have at least {SHORTEST_TOKEN} printable ASCII characters")
    return token


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise EnvironmentFault(
            f"the dashboard cannot listen: {error.strerror}", where=f"{host}:{port}", hint="choose another --port"
        ) from error
