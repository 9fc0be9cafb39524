"""What the simulated device costs beside the plain CPU, in the same process, on one thread, recorded.

Ratios are of CPU seconds, the least of several rounds on each side, taken in turn. Memory is the resident set after 200
and after 1,000 rounds of building, running and dropping a model.

    PYTHONPATH=. python tests/benchmark/device.py [profile ...]
"""

from __future__ import annotations

import copy
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

ROUNDS: Final = 15
ADDS: Final = 2000
DROPPED: Final = 1000
WARM: Final = 200
LIMITS: Final = {
    "ideal": {"llama": 1.5, "bert": 1.25, "add": 3.0, "compiled": 1.1},
    "trn2-sdk2.33": {"llama": 4.0, "bert": 4.0, "compiled": 1.1},
}
IMPORT: Final = """
import time
import torch
started = time.process_time()
from neuronqa.device.neuron.adapter import NeuronAdapter
from neuronqa.domain.build import BuildOrder
NeuronAdapter().load(BuildOrder(device="neuron", profile="ideal"))
print(time.process_time() - started)
"""


def main(profiles: list[str]) -> dict[str, Any]:
    if len(profiles) == 1:
        return {profiles[0]: _measure(profiles[0])}
    rows: dict[str, Any] = {}
    for name in profiles:  # a device is loaded once a process, with one profile
        told = subprocess.run([sys.executable, __file__, name], stdout=subprocess.PIPE, check=True, text=True)
        rows |= json.loads(told.stdout)["profiles"]
    return rows


def _measure(profile: str) -> dict[str, Any]:
    from neuronqa.device.neuron.adapter import NeuronAdapter
    from neuronqa.domain.build import BuildOrder

    torch.set_num_threads(1)
    device = NeuronAdapter().load(BuildOrder(device="neuron", profile=profile))
    recording = device.recording()
    recording.start()
    found: dict[str, Any] = {
        "llama": _ratio(_llama()),
        "bert": _ratio(_bert()),
        "add": _add(),
        "compiled": _compiled(),
        "resident_mb": _resident(),
    }
    found["limits"] = LIMITS.get(profile, {})
    found["import_s"] = round(float(subprocess.check_output([sys.executable, "-c", IMPORT], text=True)), 3)
    return found


def _llama() -> tuple[nn.Module, dict[str, Tensor]]:
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=256,
    )
    tokens = torch.randint(0, 256, (2, 16))
    return LlamaForCausalLM(config), {"input_ids": tokens, "labels": tokens}


def _bert() -> tuple[nn.Module, dict[str, Tensor]]:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, vocab_size=256
    )
    tokens = torch.randint(0, 256, (2, 16))
    return BertForSequenceClassification(config), {"input_ids": tokens, "labels": torch.tensor([0, 1])}


def _step(model: nn.Module, inputs: dict[str, Tensor], target: str) -> Callable[[], None]:
    """Forward, backward and AdamW on `target`."""
    module = copy.deepcopy(model).to(target)
    given = {name: tensor.to(target) for name, tensor in inputs.items()}
    optimizer = torch.optim.AdamW(module.parameters(), foreach=False)

    def step() -> None:
        module(**given).loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def _ratio(made: tuple[nn.Module, dict[str, Tensor]]) -> float:
    return _in_turn(_step(*made, "neuron"), _step(*made, "cpu"))


def _in_turn(ours: Callable[[], None], theirs: Callable[[], None]) -> float:
    least = [float("inf"), float("inf")]
    for number in range(ROUNDS + 2):  # the first two of each warm up
        for side, run in enumerate((ours, theirs)):
            started = time.process_time()
            run()
            if number >= 2:
                least[side] = min(least[side], time.process_time() - started)
    return round(least[0] / least[1], 3)


def _add() -> float:
    def adding(target: str) -> Callable[[], None]:
        a, b = torch.ones(8, device=target), torch.ones(8, device=target)

        def run() -> None:
            for _ in range(ADDS):
                torch.add(a, b)

        return run

    return _in_turn(adding("neuron"), adding("cpu"))


def _compiled() -> float:
    """A step of the compiled module over the eager step, both on the device."""
    model, inputs = _llama()

    def steps(compiled: bool) -> Callable[[], None]:
        module = copy.deepcopy(model).to("neuron")
        given = {name: tensor.to("neuron") for name, tensor in inputs.items()}
        forward = torch.compile(module, backend="neuron") if compiled else module

        def step() -> None:
            forward(**given).loss.backward()

        return step

    return _in_turn(steps(True), steps(False))


def _resident() -> dict[str, float]:
    before = 0.0
    for number in range(DROPPED):
        layer = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)).to("neuron")
        layer(torch.randn(8, 64, device="neuron")).sum().backward()
        del layer
        if number == WARM:
            gc.collect()
            before = _mb()
    gc.collect()
    return {"after_200": before, "after_1000": _mb()}


def _mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1)


if __name__ == "__main__":
    named = sys.argv[1:] or list(LIMITS)
    print(json.dumps({"schema_version": 1, "unit": "times the CPU, in CPU seconds", "profiles": main(named)}, indent=2))
