"""`neuronqa mcp`: the fix queue for agents, over the Model Context Protocol."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from neuronqa.cli.options import AsJson, Db, Home, caller
from neuronqa.cli.output import err, out, print_json
from neuronqa.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from neuronqa.fixqueue.tokens import Tokens

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    invoke_without_command=True,
    help="Serve the fix queue to agents: over stdio to whoever starts it, with --http to whoever has a token.",
)
tokens = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help="Who may do what over HTTP.")
app.add_typer(tokens, name="token")


@app.callback()
def mcp(
    ctx: typer.Context,
    http: Annotated[bool, typer.Option("--http", help="Listen for HTTP; every call needs a token.")] = False,
    host: Annotated[str, typer.Option(help="Address to listen on, with --http.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8766,
    home: Home = None,
    db: Db = None,
) -> None:
    if ctx.invoked_subcommand is not None:
        return
    from neuronqa.db.engine import database_url, open_engine
    from neuronqa.fixqueue.service import FixQueue, home_of

    try:
        from neuronqa.fixqueue import mcp_server
    except ImportError as error:
        raise EnvironmentFault("the MCP SDK is not installed", hint="pip install 'neuronqa[mcp]'") from error
    queue = FixQueue(engine=open_engine(db), home=home_of(home))
    url = database_url(db).render_as_string(hide_password=False)
    if not http:
        err.print("NeuronQA's fix queue on stdio, for a trusted operator: who runs this can read its folder")
        mcp_server.local(queue, url, caller()).run("stdio")
        return
    if not _tokens(home).names():
        raise UsageError("nobody has a token", hint="neuronqa mcp token create NAME --scope agent")
    with _listener(host, port) as listener:
        bound = listener.getsockname()[1]
        err.print(
            f"NeuronQA's fix queue on http://{host}:{bound}/mcp  (user {os.getuid()}; Ctrl-C to stop)", markup=False
        )
        mcp_server.serve(mcp_server.networked(queue, url, host, bound), [listener])


@tokens.command("create", help="Make a token and print it, once.")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who gets it.")],
    scope: Annotated[str, typer.Option(help="agent, reviewer or admin.")] = "agent",
    home: Home = None,
) -> None:
    from neuronqa.fixqueue.tokens import Scope

    if scope not in set(Scope):
        raise UsageError(f"there is no scope {scope!r:.20}", hint=", ".join(Scope))
    out.print(_tokens(home).create(name, Scope(scope)), markup=False, soft_wrap=True)


@tokens.command("list", help="List whose tokens there are.")
def list_tokens(home: Home = None, as_json: AsJson = False) -> None:
    found = _tokens(home).names()
    if as_json:
        print_json({"schema_version": 1, "tokens": [{"name": one.name, "scope": one.scope.value} for one in found]})
        return
    for one in found:
        out.print(escape(f"{one.name}  {one.scope.value}"))


@tokens.command("revoke", help="Take a token back.")
def revoke(name: Annotated[str, typer.Argument(metavar="NAME")], home: Home = None) -> None:
    _tokens(home).revoke(name)


def _tokens(home: Path | None) -> Tokens:
    from neuronqa.fixqueue.service import home_of
    from neuronqa.fixqueue.tokens import Tokens

    folder = home_of(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Tokens(folder=folder)


def _listener(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        hint = "choose another --port"
        raise EnvironmentFault(f"cannot listen: {error.strerror}", where=f"{host}:{port}", hint=hint) from error
