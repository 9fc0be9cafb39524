"""The pages as a web application: rendered on the server, each with a `.json` twin, each table as CSV and Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from fastapi.staticfiles import StaticFiles
from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse, RedirectResponse

from neuronqa.bundled import folder
from neuronqa.dashboard import actions, export, live
from neuronqa.dashboard.access import HEADERS, Access
from neuronqa.dashboard.address import FORMATS, Address, address
from neuronqa.dashboard.pages import PAGES, Page
from neuronqa.dashboard.render import Renderer
from neuronqa.dashboard.view import Scope, View
from neuronqa.db import queries
from neuronqa.db.browse import sweeps
from neuronqa.db.cluster_store import StaleVersion
from neuronqa.domain.identity import strict
from neuronqa.errors import BadInput, NeuronQAError, UsageError

SCHEMA_VERSION: Final = 1
COMPRESSED_FROM: Final = 500
ACTOR: Final = "dashboard"
"""Who acts where nobody says."""


def create_app(engine: Engine, access: Access | None = None, writer: Engine | None = None) -> FastAPI:
    """The pages over an open database that they only read; what people do there goes through `writer`."""
    app = FastAPI(title="NeuronQA", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    site = Site(engine, access or Access(read_only=True), writer)
    app.add_middleware(GZipMiddleware, minimum_size=COMPRESSED_FROM)
    app.mount("/static", StaticFiles(directory=folder("dashboards") / "static"), name="static")
    app.middleware("http")(site.guard)
    app.add_exception_handler(NeuronQAError, site.explain)
    app.add_exception_handler(HTTPException, site.refuse)
    app.add_route("/live", site.live)
    app.add_route("/clusters/{cluster}/{action}", site.act, methods=["POST"])
    app.add_route("/", site.html(PAGES["/overview"]))
    for path, page in PAGES.items():
        for ending in FORMATS:
            app.add_route(f"{path}.{ending}", getattr(site, ending)(page))
    for path, page in PAGES.items():
        app.add_route(path, site.html(page))
    return app


class Site:
    """The database, the templates, and who may use them."""

    def __init__(self, engine: Engine, access: Access, writer: Engine | None) -> None:
        self._engine = engine
        self._writer = writer
        self._access = access
        self._renderer = Renderer(folder("dashboards"))

    async def guard(self, request: Request, go_on: Callable[[Request], Any]) -> Response:
        response: Response = self._access.refuse(request) or await go_on(request)
        response.headers.update(HEADERS)
        kept = request.url.path.startswith("/static/") and response.status_code == 200
        response.headers["Cache-Control"] = "max-age=31536000, immutable" if kept else "no-store"
        return response

    def html(self, page: Page) -> Callable[[Request], HTMLResponse]:
        def answer(request: Request) -> HTMLResponse:
            with self._engine.connect() as db:
                scope = _scope(db, request)
                view = page(scope, **request.path_params)
                return HTMLResponse(self._renderer.html(view.template, self._around(scope, view)))

        return answer

    def json(self, page: Page) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            with self._engine.connect() as db:
                view = page(_scope(db, request), **request.path_params)
            return _json({"schema_version": SCHEMA_VERSION, **view.data})

        return answer

    def csv(self, page: Page) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            view, asked = self._table(page, request)
            lines = export.as_csv(self._engine, view, asked.ask)
            return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=_as_file(asked, "csv"))

        return answer

    def parquet(self, page: Page) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            view, asked = self._table(page, request)
            body = export.as_parquet(self._engine, view, asked.ask)
            return Response(body, media_type="application/vnd.apache.parquet", headers=_as_file(asked, "parquet"))

        return answer

    def live(self, request: Request) -> StreamingResponse:
        with self._engine.connect() as db:
            name = queries.sweep(db, request.query_params.get("sweep")).name
        return StreamingResponse(live.events(self._engine, self._renderer, name), media_type="text/event-stream")

    async def act(self, request: Request) -> Response:
        """Do something to a cluster, then show it again."""
        given = actions.fields(await request.body())
        if self._writer is None or not self._access.holds_key(given.get("key", "")):
            return PlainTextResponse("only a form of these pages may write", status_code=403)
        order = actions.Order(cluster=request.path_params["cluster"], actor=given.get("actor") or ACTOR, fields=given)
        shown = await run_in_threadpool(actions.do, self._writer, request.path_params["action"], order)
        then = Address(f"/clusters/{shown}").put("sweep", given.get("sweep", ""))
        return RedirectResponse(str(then), status_code=303)

    def explain(self, request: Request, error: Exception) -> Response:
        """What is wrong with what was asked for, or with the machine."""
        status = 409 if isinstance(error, StaleVersion) else _STATUS.get(type(error), 500)
        hint = getattr(error, "hint", "") or ""
        return self._refusal(request, status, str(error), hint)

    def refuse(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return self._refusal(request, status, "there is no such page" if status == 404 else "this cannot be done", "")

    def _refusal(self, request: Request, status: int, message: str, hint: str) -> Response:
        if request.url.path.rpartition(".")[2] in FORMATS:
            return _json({"schema_version": SCHEMA_VERSION, "error": message, "hint": hint}, status)
        shown = {"title": _TITLES.get(status, "Error"), "message": message, "hint": hint}
        bare = {"address": Address("/"), "sweep": None, "sweeps": (), "writable": False, "form_key": ""}
        return HTMLResponse(self._renderer.html("error.html", {**bare, **shown}), status_code=status)

    def _table(self, page: Page, request: Request) -> tuple[Any, Address]:
        with self._engine.connect() as db:
            scope = _scope(db, request)
            view = page(scope, **request.path_params)
        if view.table is None:
            raise BadInput("this page has no table of its own to export", hint="its `.json` twin has all of it")
        return view.table.listing, scope.address

    def _around(self, scope: Scope, view: View) -> dict[str, Any]:
        return {
            **view.show,
            "title": view.title,
            "table": view.table,
            "address": scope.address,
            "sweep": scope.sweep,
            "sweeps": sweeps.names(scope.db),
            "writable": self._access.writable and self._writer is not None,
            "form_key": self._access.form_key,
        }


_TITLES: Final = {404: "Not found", 409: "Changed meanwhile"}
_STATUS: Final[dict[type[Exception], int]] = {BadInput: 404, UsageError: 400}


def _scope(db: Any, request: Request) -> Scope:
    return Scope(db, address(request.url.path, request.query_params.multi_items()))


def _json(value: Any, status: int = 200) -> Response:
    body = json.dumps(strict(value), ensure_ascii=True, allow_nan=False)
    return Response(body, status_code=status, media_type="application/json")


def _as_file(asked: Address, ending: str) -> dict[str, str]:
    stem = "".join(ch if ch.isascii() and ch.isalnum() else "-" for ch in asked.path.strip("/"))
    return {"Content-Disposition": f'attachment; filename="neuronqa-{stem}.{ending}"'}
