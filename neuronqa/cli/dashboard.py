"""`neuronqa dashboard`."""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import Annotated

import typer

from neuronqa.cli.options import Db
from neuronqa.cli.output import err
from neuronqa.errors import EnvironmentFault, UsageError

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(help="Serve the triage pages. They listen on this machine only, and nothing in them writes.")
def dashboard(
    host: Annotated[str, typer.Option(help="Address to listen on: loopback only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8765,
    db: Db = None,
) -> None:
    import uvicorn

    from neuronqa.dashboard.app import create_app
    from neuronqa.db.engine import open_engine, shown

    if not _is_loopback(host):
        raise UsageError(f"the dashboard does not listen on {host!r}", hint="use a loopback address and a tunnel")
    engine = open_engine(db)
    with _listener(host, port) as listener:
        bound = listener.getsockname()[1]
        shown_host = f"[{host}]" if ":" in host else host
        err.print(
            f"NeuronQA on http://{shown_host}:{bound}  (database {shown(engine.url)}; Ctrl-C to stop)",
            markup=False,
            soft_wrap=True,
        )
        config = uvicorn.Config(create_app(engine), log_level="warning", server_header=False)
        uvicorn.Server(config).run(sockets=[listener])


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise EnvironmentFault(
            f"the dashboard cannot listen: {error.strerror}", where=f"{host}:{port}", hint="choose another --port"
        ) from error


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
