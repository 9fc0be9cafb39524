"""The cache of compiled graphs, and what limits a compilation."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from neuronqa.device.neuron import build
from neuronqa.device.neuron.adapter import NeuronAdapter
from neuronqa.device.neuron.compiler.cache import Artifact, NeffCache
from neuronqa.device.neuron.cost.graphs import GraphCost
from neuronqa.domain.build import BuildOrder

InChild = Callable[[Callable[[], Any]], Any]

ARTIFACT = Artifact(GraphCost(operators=3, instructions=5, seconds=0.1, flops=7, nbytes=11), 2.5)


def compile_once(**environment: str) -> tuple[int, int, float, str]:
    """Hits, misses, modelled seconds, and the error's code, for one small graph."""
    os.environ.update(environment)
    order = BuildOrder(device="neuron", profile="trn2-sdk2.33", binary=str(build.ensure().path))
    device = NeuronAdapter().load(order)
    try:
        torch.compile(lambda x: (x @ x).relu() + 1, backend="neuron")(torch.ones(4, 4, device="neuron"))
    except Exception as error:  # noqa: BLE001  told to the parent
        return 0, 0, 0.0, f"{type(error).__name__} {device.error_code(error)} {error}"
    use = device.graph_use()
    return use.cache_hits, use.cache_misses, use.modelled_compile_s, ""


def test_a_graph_compiled_before_is_found_and_takes_no_modelled_time(in_child: InChild, tmp_path: Path) -> None:
    folder = {"TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path)}
    hits, misses, seconds, _ = in_child(lambda: compile_once(**folder))
    assert (hits, misses) == (0, 1)
    assert seconds > 0.5
    assert in_child(lambda: compile_once(**folder)) == (1, 0, 0.0, "")
    (file,) = tmp_path.glob("*/*/*.neff")
    assert file.parent.name == file.name[2:4]


def test_other_flags_are_another_graph_and_no_cache_is_none(in_child: InChild, tmp_path: Path) -> None:
    folder = {"TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path)}
    in_child(lambda: compile_once(**folder))
    assert in_child(lambda: compile_once(**folder, NEURON_CC_FLAGS="-O2"))[:2] == (0, 1)
    assert in_child(lambda: compile_once(**folder, TORCH_NEURONX_NEFF_DISABLE_CACHE="1"))[:2] == (0, 1)
    assert len(list(tmp_path.glob("*/*/*.neff"))) == 2


def test_a_damaged_file_is_a_miss_and_is_written_anew(in_child: InChild, tmp_path: Path) -> None:
    folder = {"TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path)}
    in_child(lambda: compile_once(**folder))
    (file,) = tmp_path.glob("*/*/*.neff")
    whole = file.read_text()
    for damaged in (whole[:20], "", whole.replace("2", "3"), "[]"):
        file.write_text(damaged)
        assert in_child(lambda: compile_once(**folder))[:2] == (0, 1)
        assert file.read_text() == whole


def test_a_folder_that_cannot_be_written_costs_nothing_but_the_cache(in_child: InChild, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = {"TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path / "file")}
    assert in_child(lambda: compile_once(**folder))[:2] == (0, 1)


def test_concurrent_writers_one_of_them_killed_leave_whole_files_only(tmp_path: Path) -> None:
    keys = [f"{number:032x}" for number in range(40)]

    def write() -> None:
        cache = NeffCache(tmp_path, {})
        while True:
            for key in keys:
                cache.store(key, ARTIFACT)

    children = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            write()
        children.append(pid)
    cache = NeffCache(tmp_path, {})
    seen = 0
    while seen < 400:
        for key in keys:
            found = cache.find(key)
            assert found in (None, ARTIFACT)
            seen += found is not None
        os.kill(children[0], signal.SIGKILL)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert all(cache.find(key) in (None, ARTIFACT) for key in keys)


def test_a_compilation_beyond_its_time_is_a_timeout(in_child: InChild, tmp_path: Path) -> None:
    environment = {
        "TORCH_NEURONX_NEFF_CACHE_DIR": str(tmp_path),
        "TORCH_NEURONX_NEURONX_CC_TIMEOUT": "0.5",
    }
    *_, error = in_child(lambda: compile_once(**environment))
    assert "NeuronCompileTimeout" in error
    assert "timed out after 0.5 s" in error
    assert not list(tmp_path.glob("*/*/*.neff"))


def test_too_many_instructions_are_refused_with_their_code(in_child: InChild, tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(
        'schema = 1\nname = "mine"\nextends = "trn2-sdk2.33"\nsummary = "small"\n[sources]\nus = "us"\n'
        '[device]\ninstruction_limit = { value = 2, source = "us" }\n'
    )

    def attempt() -> str:
        order = BuildOrder(device="neuron", profile=str(mine), binary=str(build.ensure().path))
        device = NeuronAdapter().load(order)
        with pytest.raises(Exception, match="exceeds the limit") as caught:
            torch.compile(lambda x: (x @ x).relu() + 1, backend="neuron")(torch.ones(4, 4, device="neuron"))
        return device.error_code(caught.value)

    assert in_child(attempt) == "NCC_EBVF030"
