"""Recording a reference bundle, in a process of its own that may import torch."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.workload import Workload
from neuronqa.worker.bundle import Bundle


def record(
    workloads: Sequence[Workload], variants: Sequence[Variant], order: BuildOrder, bundle: Bundle
) -> Iterator[tuple[Workload, Variant, str]]:
    """Record every workload in every variant; yields what was said of each, one after another."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, _prepare, (order, bundle)) as pool:
        for workload in workloads:
            for variant in variants:
                yield workload, variant, pool.submit(_record, workload, variant).result()


_RECORDER: list[Any] = []


def _prepare(order: BuildOrder, bundle: Bundle) -> None:
    from neuronqa.worker.recorder import Recorder

    _RECORDER.append(Recorder(order, bundle))


def _record(workload: Workload, variant: Variant) -> str:
    said: str = _RECORDER[0].record(workload, variant)
    return said
