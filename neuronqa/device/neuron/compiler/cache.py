"""Compiled graphs on disk, as TorchNeuron keeps its NEFFs: one file a graph, named for everything that went into it.

A file is written beside its place and renamed into it, so a reader never sees half of one and a killed writer leaves
nothing that counts. What does not check out on reading is a miss. Only graphs that compiled are kept.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from torch import fx

from neuronqa import cachedir
from neuronqa.device.neuron.cost.graphs import GraphCost
from neuronqa.domain.identity import canonical_json, content_hash
from neuronqa.errors import EnvironmentFault

log = logging.getLogger(__name__)

FOLDER: Final = "TORCH_NEURONX_NEFF_CACHE_DIR"
DISABLED: Final = "TORCH_NEURONX_NEFF_DISABLE_CACHE"
FLAGS: Final = "NEURON_CC_FLAGS"


@dataclass(frozen=True, slots=True)
class Artifact:
    """What compiling a graph came to."""

    cost: GraphCost
    modelled_compile_s: float


class NeffCache:
    """A folder of artifacts; `folder` None keeps nothing and finds nothing."""

    def __init__(self, folder: Path | None, base: dict[str, str]) -> None:
        self._folder = folder
        self._base = base

    def key(self, graph: fx.Graph) -> str:
        """Names the graph, the flags and everything in `base` (compiler, profile, torch)."""
        shapes = [repr(node.meta.get("val")) for node in graph.nodes if node.op == "placeholder"]
        text = str(graph.python_code("self").src)
        return content_hash({**self._base, "flags": os.environ.get(FLAGS, ""), "graph": text, "inputs": shapes})

    def find(self, key: str) -> Artifact | None:
        """The artifact under `key`, or None."""
        if self._folder is None:
            return None
        try:
            stored = json.loads(self._path(key).read_text(encoding="utf-8"))
            body = stored["body"]
            if stored["sha256"] != _digest(body):
                raise ValueError("checksum")
            found = Artifact(GraphCost(**body["cost"]), float(body["modelled_compile_s"]))
        except (OSError, ValueError, KeyError, TypeError):
            log.info("[NEFF_CACHE] Cache MISS for key: %s", key)
            return None
        log.info("[NEFF_CACHE] Cache HIT for key: %s", key)
        return found

    def store(self, key: str, artifact: Artifact) -> None:
        """Keep `artifact`. A folder that cannot be written loses it, which costs time and nothing else."""
        if self._folder is None:
            return
        body = asdict(artifact)
        text = json.dumps({"sha256": _digest(body), "body": body})
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False) as file:
                file.write(text)
            Path(file.name).replace(path)
        except OSError as error:
            log.warning("[NEFF_CACHE] cannot store %s: %s", key, error)
            return
        log.info("[NEFF_CACHE] Storing NEFF for key: %s", key)

    def _path(self, key: str) -> Path:
        assert self._folder is not None
        return self._folder / key[:2] / key[2:4] / f"{key}.neff"


def default_folder() -> Path | None:
    """TORCH_NEURONX_NEFF_CACHE_DIR, else below the cache folder; None where caching is off or cannot be."""
    if os.environ.get(DISABLED) == "1":
        return None
    named = os.environ.get(FOLDER)
    try:
        return Path(named) if named else cachedir.cache_dir() / "neff"
    except EnvironmentFault:
        return None


def _digest(body: object) -> str:
    return hashlib.sha256(canonical_json(body).encode()).hexdigest()
