"""Each planted fault does what its name says, and a good twin nothing that matters."""

from __future__ import annotations

import copy
import resource
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from neuronqa.device.neuron import build
from neuronqa.device.neuron.adapter import NeuronAdapter
from neuronqa.device.neuron.faults import KINDS, FaultKind, Site
from neuronqa.device.neuron.planted.effects import EFFECTS
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Mode
from neuronqa.domain.outcome import Check

STEPS = 4
DEATHS = {
    "segfault": "SIGSEGV",
    "abort": "SIGABRT",
    "killed": "SIGKILL",
    "exit": "exit code 0",
    "compiler-crash": "SIGABRT",
}
HANGS = ("hang", "slow", "compiler-hang")


class Everything(nn.Module):
    """Uses every operator a fault has in its pattern."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 16)
        self.norm = nn.LayerNorm(16)
        self.query, self.key = nn.Linear(16, 16), nn.Linear(16, 16)
        self.convolution, self.batch_norm = nn.Conv1d(16, 16, 3, padding=1), nn.BatchNorm1d(16)
        self.head = nn.Linear(16, 20)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        h = self.norm(x)
        scores = self.query(h) @ self.key(h).transpose(1, 2)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        x = x + scores.masked_fill(~mask, float("-inf")).softmax(-1) @ h
        x = x + self.batch_norm(self.convolution(x.transpose(1, 2))).transpose(1, 2) * 1.5
        x = x + F.gelu(x) * x.cumsum(1) * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        logits: Tensor = self.head(x)
        return logits


@dataclass(frozen=True)
class Seen:
    """What four steps of training showed."""

    losses: list[float]
    state: dict[str, Tensor]
    tied: bool
    mechanisms: set[tuple[str, int]]
    executions: int


def train(model: nn.Module, forward: Callable[[Tensor], Tensor], tokens: Tensor) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(tokens).flatten(0, 1), tokens.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def start() -> tuple[Everything, Tensor]:
    torch.manual_seed(0)
    model = Everything()
    tokens = torch.randint(0, 20, (3, 12))
    tokens[0, :4] = 3
    return model, tokens


def on_the_device(order: dict[str, Any], mode: Mode) -> Seen:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    binary = str(build.ensure().path)
    device = NeuronAdapter().load(BuildOrder(device="neuron", profile="ideal", binary=binary, fault=order))
    model, tokens = start()
    model.to("neuron")
    recording = device.recording()
    recording.start()
    forward = torch.compile(model, backend="neuron") if mode is Mode.COMPILE else model
    losses = train(model, forward, tokens.to("neuron"))
    device.synchronize()
    return Seen(
        losses=losses,
        state={name: value.cpu() for name, value in model.state_dict().items()},
        tied=model.head.weight is model.embedding.weight,
        mechanisms={(use.op, use.mechanism) for use in recording.ops()},
        executions=device.graph_use().executions if mode is Mode.COMPILE else 0,
    )


def on_the_cpu() -> Seen:
    model, tokens = start()
    losses = train(model, model, tokens)
    return Seen(losses, copy.deepcopy(model.state_dict()), tied=True, mechanisms=set(), executions=0)


@pytest.fixture(scope="module")
def reference() -> Seen:
    return on_the_cpu()


def distance(seen: Seen, reference: Seen) -> float:
    """The largest difference of a loss or a tensor, relative to its scale; infinite where a value is not finite."""
    pairs = [(torch.tensor(seen.losses), torch.tensor(reference.losses))]
    pairs += [(seen.state[name].float(), value.float()) for name, value in reference.state.items()]
    worst = 0.0
    for ours, theirs in pairs:
        if not torch.isfinite(ours).all():
            return float("inf")
        worst = max(worst, float((ours - theirs).abs().max() / theirs.abs().max().clamp_min(1e-6)))
    return worst


def cases(*checks: Check | None) -> list[Any]:
    kinds = [kind for kind in KINDS.values() if kind.check in checks and kind.name not in (*DEATHS, *HANGS)]
    return [pytest.param(kind, id=kind.name) for kind in kinds]


def test_every_fault_of_an_operator_has_an_effect_and_every_effect_a_fault() -> None:
    wanted = {kind.name for kind in KINDS.values() if kind.site is Site.OPERATOR and "mechanism" not in kind.parameters}
    import_module("neuronqa.device.neuron.planted.arm")
    assert set(EFFECTS) == wanted


@pytest.mark.parametrize("kind", cases(Check.PARITY, Check.TRAIN))
def test_a_wrong_number_shows_in_losses_or_state(kind: FaultKind, in_child: Any, reference: Seen) -> None:
    order = {"kind": kind.name, **({"after": 10} if "after" in kind.parameters else {})}
    seen = in_child(lambda: on_the_device(order, kind.modes[0]))
    assert distance(seen, reference) > 1e-5


@pytest.mark.parametrize("kind", cases(None))
def test_a_good_twin_stays_within_rounding(kind: FaultKind, in_child: Any, reference: Seen) -> None:
    seen = in_child(lambda: on_the_device({"kind": kind.name}, Mode.EAGER))
    assert seen.losses == pytest.approx(reference.losses, rel=1e-6)


@pytest.mark.parametrize("kind", cases(Check.FALLBACK))
def test_a_fallback_is_recorded_with_its_mechanism(kind: FaultKind, in_child: Any) -> None:
    seen = in_child(lambda: on_the_device({"kind": kind.name}, kind.modes[0]))
    assert ("aten::mm", int(kind.parameters.get("mechanism", 5))) in seen.mechanisms
    assert seen.executions == (2 * STEPS if kind.site is Site.COMPILER else 0)


@pytest.mark.parametrize("kind", cases(Check.RUN))
def test_an_error_reaches_the_caller(kind: FaultKind, in_child: Any) -> None:
    if kind.name == "leak":
        resource_limit = 3 << 30

        def leak() -> Seen:
            resource.setrlimit(resource.RLIMIT_DATA, (resource_limit, resource_limit))
            return on_the_device({"kind": "leak", "megabytes": 1024}, Mode.EAGER)

        with pytest.raises(AssertionError, match="MemoryError"):
            in_child(leak)
        return
    with pytest.raises(AssertionError, match="Error"):
        in_child(lambda: on_the_device({"kind": kind.name}, Mode.EAGER))


@pytest.mark.parametrize("name", ["graph-refused", "compiler-error"])
def test_a_compiler_error_carries_its_code(name: str, in_child: Any) -> None:
    with pytest.raises(AssertionError, match="NCC_"):
        in_child(lambda: on_the_device({"kind": name}, Mode.COMPILE))


def test_a_graph_that_is_not_executed_counts_no_execution(in_child: Any, reference: Seen) -> None:
    seen = in_child(lambda: on_the_device({"kind": "graph-not-executed"}, Mode.COMPILE))
    assert seen.executions == 0
    assert distance(seen, reference) < 1e-5


def test_replaced_parameters_come_untied(in_child: Any) -> None:
    assert not in_child(lambda: on_the_device({"kind": "replaced-parameters"}, Mode.EAGER)).tied


@pytest.mark.parametrize("name", sorted(DEATHS))
def test_a_death_is_what_its_name_says(name: str, in_child: Any) -> None:
    with pytest.raises(Exception, match=DEATHS[name]):
        in_child(lambda: on_the_device({"kind": name}, KINDS[name].modes[0]))


@pytest.mark.parametrize("name", HANGS)
def test_a_hang_lasts_until_it_is_killed(name: str, in_child: Any) -> None:
    import signal

    def hang() -> Seen:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_REAL, 3)
        return on_the_device({"kind": name}, KINDS[name].modes[0])

    with pytest.raises(Exception, match="SIGALRM"):
        in_child(hang)


def test_conditions_narrow_a_fault_to_a_phase_a_call_or_a_size(in_child: Any) -> None:
    def losses(order: dict[str, Any]) -> tuple[float, float]:
        def run() -> tuple[float, float]:
            binary = str(build.ensure().path)
            NeuronAdapter().load(BuildOrder(device="neuron", profile="ideal", binary=binary, fault=order))
            x = torch.ones(2, 2, device="neuron", requires_grad=True)
            loss = (x @ x @ torch.ones(2, 3, device="neuron")).sum()
            loss.backward()
            assert x.grad is not None
            return loss.item(), x.grad.sum().item()

        result: tuple[float, float] = in_child(run)
        return result

    right = losses({"kind": "twin-identity", "op": "aten::mm"})
    double = {"kind": "scale", "op": "aten::mm", "factor": 2.0}
    assert losses({**double, "phase": "forward"}) == (4 * right[0], right[1])
    assert losses({**double, "phase": "backward"}) == (right[0], 4 * right[1])
    assert losses({**double, "nth": 1}) == (2 * right[0], right[1])
    assert losses({**double, "size": 7}) == right
