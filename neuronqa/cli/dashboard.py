"""`neuronqa dashboard`."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated

import typer

from neuronqa.cli.options import Db
from neuronqa.cli.output import err
from neuronqa.errors import UsageError

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


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
    err.print(f"NeuronQA on http://{host}:{port}  (database {shown(engine.url)}; Ctrl-C to stop)", markup=False)
    uvicorn.run(create_app(engine), host=host, port=port, log_level="warning", server_header=False)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
