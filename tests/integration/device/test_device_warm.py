"""A zygote may train and compile before it forks: its children load the device all the same, and inherit no more."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.utils
from torch import nn

from neuronqa.device.neuron import build
from neuronqa.device.neuron.adapter import NeuronAdapter
from neuronqa.device.neuron.warm import warm_compile
from neuronqa.domain.build import BuildOrder


def load() -> Any:
    return NeuronAdapter().load(BuildOrder(device="neuron", profile="ideal", binary=str(build.ensure().path)))


def train_on_the_cpu() -> None:
    nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()


def test_backward_works_on_a_device_loaded_after_a_backward_without_one(in_child: Any) -> None:
    def zygote() -> Any:
        train_on_the_cpu()

        def child() -> list[float]:
            load()
            x = torch.ones(2, device="neuron", requires_grad=True)
            (x * 3).sum().backward()
            assert x.grad is not None
            values: list[float] = x.grad.tolist()
            return values

        return [in_child(child) for _ in range(5)]

    assert in_child(zygote) == [[3.0, 3.0]] * 5


def test_warming_leaves_one_thread_and_no_trace(in_child: Any) -> None:
    def zygote() -> dict[str, Any]:
        random = torch.get_rng_state()
        dynamic = torch._dynamo.config.automatic_dynamic_shapes
        warm_compile()
        return {
            "threads": len(list(Path("/proc/self/task").iterdir())),
            "random": torch.equal(random, torch.get_rng_state()),
            "counters": {name: dict(counts) for name, counts in torch._dynamo.utils.counters.items() if counts},
            "metrics": len(torch._dynamo.utils.get_compilation_metrics()),
            "dynamic": torch._dynamo.config.automatic_dynamic_shapes == dynamic,
            "device": torch._C._get_privateuse1_backend_name(),
            "backend": "neuron" in torch._dynamo.list_backends(),
        }

    assert in_child(zygote) == {
        "threads": 1,
        "random": True,
        "counters": {},
        "metrics": 0,
        "dynamic": True,
        "device": "privateuseone",
        "backend": False,
    }


def test_a_child_of_a_warm_zygote_counts_only_its_own_graphs(in_child: Any) -> None:
    def zygote() -> Any:
        warm_compile()

        def child() -> tuple[int, int, int, int]:
            device = load()
            double = torch.compile(lambda x: x * 2, backend="neuron")
            double(torch.ones(2, device="neuron"))
            use = device.graph_use()
            return use.graphs, use.backend_calls, use.executions, len(use.recompiles)

        return [in_child(child), in_child(child)]

    assert in_child(zygote) == [(1, 1, 1, 0)] * 2


def test_a_fork_of_a_process_with_the_device_cannot_use_it(in_child: Any) -> None:
    def parent() -> Any:
        load()

        def child() -> str:
            try:
                torch.ones(1, device="neuron")
            except RuntimeError as error:
                return str(error)
            return "no error"

        return in_child(child)

    assert "Cannot re-initialize Neuron runtime in forked subprocess" in in_child(parent)


def test_the_running_operator_is_in_the_mark_file(in_child: Any, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    mark.touch()

    def child() -> None:
        order = BuildOrder(
            device="neuron",
            profile="ideal",
            binary=str(build.ensure().path),
            fault={"kind": "segfault", "op": "aten::tanh"},
        )
        NeuronAdapter().load(order, str(mark))
        x = torch.ones(2, device="neuron")
        assert mark.read_bytes()[:1] == b"\0"
        os.close(2)
        x.tanh()

    with pytest.raises(Exception, match="SIGSEGV"):
        in_child(child)
    assert mark.read_bytes().partition(b"\0")[0] == b"aten::tanh"
