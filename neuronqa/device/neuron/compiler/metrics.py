"""What compilation did in this process: graphs, breaks with their reasons, recompilations, executions.

Dynamo tells its graph breaks to two loggers and nowhere else completely (a frame that is given up before its first
operator has no graph that could carry the reason), so they are read from there.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch._dynamo.utils
from torch._dynamo.exc import _load_gb_type_to_gb_id_map

from neuronqa.domain.observation import GraphBreak, GraphUse

METRICS_LIMIT: Final = 4096


@dataclass
class CompiledGraph:
    """One graph the backend compiled."""

    name: str
    forward: bool
    operators: int
    fx_passes_us: int = 0
    compile_us: int = 0
    modelled_compile_s: float = 0.0
    instructions: int = 0
    has_collectives: bool = False
    timestamp: float = field(default_factory=time.time)


@dataclass
class Ledger:
    """Counters of this process."""

    graphs: list[CompiledGraph] = field(default_factory=list)
    backend_calls: int = 0
    executions: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    breaks: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def add(self, graph: CompiledGraph, *, cached: bool) -> None:
        """Count a graph that was compiled, or found in the cache."""
        self.graphs.append(graph)
        self.cache_hits += cached
        self.cache_misses += not cached


LEDGER: Final = Ledger()

_AT: Final = re.compile(r"^Graph break.* in user code at (?P<file>.*):(?P<line>\d+)\n")
_SKIPPED: Final = re.compile(r"skip tracing the frame (?P<name>\S+) \((?P<file>.*) line (?P<line>\d+)\)")
_REASON: Final = re.compile(r"^(?:Graph Break Reason: )?(.+)\n  Explanation:", re.MULTILINE)
_LINK: Final = re.compile(r"/gb(\d+)\.html")


class BreakReader(logging.Filter):
    """Reads dynamo's graph-break messages into the ledger, and lets them pass only if somebody wants to see them."""

    def __init__(self, wanted: bool) -> None:
        super().__init__()
        self._wanted = wanted

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        at, skipped = _AT.match(message), _SKIPPED.search(message)
        error = record.exc_info[1] if record.exc_info else None
        if at:
            _count(message, f"{Path(at['file']).name}:{at['line']}")
        elif skipped and error is not None:
            _count(str(error), f"{Path(skipped['file']).name}:{skipped['line']} {skipped['name']}")
        return self._wanted


def _count(text: str, frame: str) -> None:
    """The first reason in a message is the cause; others in it tell what the first led to."""
    reason, link = _REASON.search(text), _LINK.search(text)
    words = (reason.group(1) if reason else text.partition("\n")[0]).strip()
    number = f"GB{link.group(1)}" if link else str(_load_gb_type_to_gb_id_map().get(words, ""))
    LEDGER.breaks[number, words, frame] += 1


def listen() -> None:
    """Start counting graph breaks and keeping dynamo's own metrics of every frame."""
    for module in ("symbolic_convert", "convert_frame"):
        logger = logging.getLogger(f"torch._dynamo.{module}.__graph_breaks")
        if not any(isinstance(reader, BreakReader) for reader in logger.filters):
            logger.addFilter(BreakReader(wanted=logger.isEnabledFor(logging.DEBUG)))
        logger.setLevel(logging.DEBUG)
    torch._dynamo.utils.set_compilation_metrics_limit(METRICS_LIMIT)
    reset()


def reset() -> None:
    """Forget everything counted so far."""
    LEDGER.__init__()  # type: ignore[misc]
    torch._dynamo.utils.clear_compilation_metrics()


def graph_use() -> GraphUse:
    """Everything since `listen` or `reset`."""
    frames = torch._dynamo.utils.get_compilation_metrics()
    forward = [graph for graph in LEDGER.graphs if graph.forward]
    return GraphUse(
        graphs=len(forward),
        ops=tuple(graph.operators for graph in forward),
        breaks=tuple(
            GraphBreak(registry_id=number, reason=reason, frame=frame, count=count)
            for (number, reason, frame), count in sorted(LEDGER.breaks.items())
        ),
        recompiles=tuple(str(frame.recompile_reason) for frame in frames if frame.recompile_reason),
        backend_calls=LEDGER.backend_calls,
        executions=LEDGER.executions,
        compile_s=round(sum((frame.duration_us or 0) for frame in frames if not frame.is_runtime) / 1e6, 6),
        modelled_compile_s=sum(graph.modelled_compile_s for graph in LEDGER.graphs),
        cache_hits=LEDGER.cache_hits,
        cache_misses=LEDGER.cache_misses,
    )


def records() -> list[dict[str, Any]]:
    """The records of `torch.neuron.get_dynamo_metrics()`, under TorchNeuron's names."""
    return [
        {
            "graph_id": index,
            "graph_name": graph.name,
            "model_name": graph.name.partition(".")[0],
            "has_collectives": graph.has_collectives,
            "graph_node_count": graph.operators,
            "timestamp": graph.timestamp,
            "torch_neuronx_fx_passes_us": graph.fx_passes_us,
            "torch_neuronx_lower_us": 0,
            "torch_neuronx_compile_us": graph.compile_us,
        }
        for index, graph in enumerate(LEDGER.graphs)
    ]
