"""The matmul suite at full size: share of the peak by size of the product, device by device. All of it is modelled."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from statistics import mean
from typing import Final

from neuronqa.dashboard.charts import Chart, Look, Series
from neuronqa.dashboard.view import Scope, View
from neuronqa.report.products import Machine, Product, machines, products, projections

PER_DECADE: Final = 4
LOOKS: Final = (Look.DEVICE, Look.PASS, Look.CPU, Look.FAIL, Look.PLAIN)


def page(scope: Scope) -> View:
    found = machines()
    chart = drawn(found)
    machine_rows = [{"name": one.name, "tflops": one.flops / 1e12, "source": one.source} for one in found]
    data = {"modelled": True, "models": len(projections()), "products": len(products()), "machines": machine_rows}
    return View(
        template="products.html",
        title="Products",
        data={**data, "sweep": scope.sweep.name, "chart": chart.spec},
        show={"chart": chart, "machines": machine_rows, "models": len(projections()), "products": len(products())},
    )


def drawn(found: tuple[Machine, ...]) -> Chart:
    """One line a device, the mean over the products of each size."""
    sizes = by_size(products())
    series = tuple(
        Series(
            name=one.name, look=look, values=tuple(mean(one.mfu(each) for each in group) for group in sizes.values())
        )
        for one, look in zip(found, LOOKS, strict=True)
    )
    return Chart(
        title="Modelled share of the peak (MFU), by size of the product",
        kind="line",
        x="GFLOP",
        y="share of the peak (modelled)",
        labels=tuple(sizes),
        series=series,
        percent=True,
    )


def by_size(found: tuple[Product, ...]) -> Mapping[str, list[Product]]:
    """Products by their GFLOP, in steps of a quarter of a decade, smallest first."""
    groups: dict[int, list[Product]] = defaultdict(list)
    for one in found:
        groups[round(math.log10(one.flops / 1e9) * PER_DECADE)].append(one)
    return {f"{10 ** (step / PER_DECADE):.2g}": groups[step] for step in sorted(groups)}
