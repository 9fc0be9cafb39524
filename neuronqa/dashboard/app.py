"""Pages rendered on the server from the report's own values; every page has a `.json` twin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sqlalchemy import Connection, Engine

from neuronqa.bundled import folder
from neuronqa.db import clusters, queries
from neuronqa.db.clusters import ClusterCount
from neuronqa.errors import NeuronQAError
from neuronqa.report.build import build
from neuronqa.report.text import percent, span
from neuronqa.report.value import VERDICTS_ARE_FOR, cause_json, to_json

SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def create_app(engine: Engine) -> FastAPI:
    """The pages over an open database. Nothing here writes."""
    app = FastAPI(title="NeuronQA", docs_url=None, redoc_url=None, openapi_url=None)
    base = folder("dashboards")
    pages = _Pages(base / "templates")
    app.mount("/static", StaticFiles(directory=base / "static"), name="static")

    def connection() -> Iterator[Connection]:
        with engine.connect() as db:
            yield db

    Reading = Annotated[Connection, Depends(connection)]  # noqa: N806 - a type

    @app.middleware("http")
    async def secure(request: Request, call_next: Any) -> Response:
        response: Response = await call_next(request)
        response.headers.update(SECURITY_HEADERS)
        return response

    @app.exception_handler(NeuronQAError)
    def explain(_request: Request, error: NeuronQAError) -> HTMLResponse:
        return pages.show("error.html", status=404, message=str(error))

    @app.get("/", response_class=HTMLResponse)
    def overview(db: Reading, sweep: str | None = None) -> HTMLResponse:
        row = queries.sweep(db, sweep)
        return pages.show(
            "overview.html",
            report=build(db, row.name),
            clusters=clusters.counts(db, row.id),
            sweeps=queries.sweeps(db),
        )

    @app.get("/overview.json")
    def overview_json(db: Reading, sweep: str | None = None) -> JSONResponse:
        return JSONResponse(to_json(build(db, sweep)))

    @app.get("/cluster/{key}.json")
    def cluster_json(db: Reading, key: str, sweep: str | None = None) -> JSONResponse:
        row = queries.sweep(db, sweep)
        cluster = _cluster(db, row, key)
        found = clusters.worst(db, row.id, cluster.cluster.id)
        body = [
            {"attempt": m.attempt, "workload": m.workload, "family": m.family, "class_name": m.class_name}
            | {"variant": str(m.variant), "kind": m.attempt_kind.value, "measure": m.measure, "words": m.words}
            for m in found
        ]
        return JSONResponse({"schema_version": 1, "sweep": row.name, "cluster": cause_json(cluster), "cases": body})

    @app.get("/cluster/{key}", response_class=HTMLResponse)
    def cluster_page(db: Reading, key: str, sweep: str | None = None) -> HTMLResponse:
        row = queries.sweep(db, sweep)
        cluster = _cluster(db, row, key)
        found = clusters.worst(db, row.id, cluster.cluster.id)
        return pages.show("cluster.html", sweep=row, cluster=cluster, members=found)

    return app


class _Pages:
    """Templates with everything escaped by default and no undefined name forgiven."""

    def __init__(self, templates: Path) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(templates), autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        self._environment.filters["percent"] = percent
        self._environment.filters["span"] = span
        self._environment.globals["verdicts_are_for"] = VERDICTS_ARE_FOR

    def show(self, name: str, status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._environment.get_template(name).render(**values), status_code=status)


def _cluster(db: Connection, row: queries.SweepRow, key: str) -> ClusterCount:
    for one in clusters.counts(db, row.id):
        if one.cluster.key == key:
            return one
    raise HTTPException(404, "no such cluster in this sweep")
