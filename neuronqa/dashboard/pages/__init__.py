"""The pages: each reads what it shows and says it as a View. Nothing here renders or writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from neuronqa.dashboard.pages import cases, clusters, compare, models, ops, overview, products, queue, sweeps, workloads
from neuronqa.dashboard.view import View

Page = Callable[..., View]

PAGES: Final[Mapping[str, Page]] = {
    "/overview": overview.page,
    "/compare": compare.page,
    "/sweeps": sweeps.page,
    "/controls": sweeps.controls,
    "/clusters": clusters.page,
    "/clusters/{named}": clusters.detail,
    "/members": clusters.members,
    "/models": models.page,
    "/models/{rank:int}": models.detail,
    "/ops": ops.page,
    "/worksheet": ops.worksheet,
    "/needing": ops.needing,
    "/ops/{name:path}": ops.detail,
    "/products": products.page,
    "/queue": queue.page,
    "/queue/{item:int}": queue.detail,
    "/workloads": workloads.page,
    "/workloads/{name}": workloads.detail,
    "/cases": cases.page,
    "/cases/{attempt:int}": cases.detail,
}
"""By path, those first that a later, wider one would take. `/overview` is also `/`."""
