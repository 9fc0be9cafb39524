"""Plays both roles and the judge on files, as a sweep does, in this process and on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch.utils._python_dispatch import _get_current_dispatch_mode

from neuronqa.device import registry
from neuronqa.device.protocol import Adapter
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.observation import Exit, Observation, Progress
from neuronqa.domain.outcome import Check
from neuronqa.domain.policy import Thresholds
from neuronqa.worker import deviation, device_child, reference
from neuronqa.worker.exchange import read_observation
from neuronqa.worker.judge import judge_device, judge_reference
from neuronqa.workload.runnable import Runnable
from tests.integration.roles.families import FAMILIES, build_from, workload

DONE = Exit(done=True, progress=Progress.DONE)
STEPS = 8


@contextmanager
def process() -> Iterator[None]:
    """A role ends as its process would: what was planted does not outlive it."""
    try:
        yield
    finally:
        while (mode := _get_current_dispatch_mode()) is not None:
            mode.__exit__(None, None, None)


@dataclass(frozen=True)
class Stage:
    """One workload in a scratch folder."""

    folder: Path
    name: str
    factory: Callable[[], Runnable]
    variant: str = "eager/fp32/train"
    steps: int = STEPS

    @property
    def reference(self) -> Path:
        return self.folder / "reference"

    @property
    def device(self) -> Path:
        return self.folder / "device"

    def record(self) -> tuple[Finding, ...]:
        self.reference.mkdir(parents=True, exist_ok=True)
        request = {"workload": workload(self.name).to_json(), "variant": self.variant, "steps": self.steps}
        marks: list[Progress] = []
        build = build_from({self.name: self.factory})
        with process():
            reference.record({**request, "out": str(self.reference)}, build, marks.append)
        return judge_reference(self.reference, DONE)

    def observe(
        self,
        device: str = "cpu",
        fault: Mapping[str, Any] | None = None,
        adapter: Callable[[str], Adapter] = registry.adapter,
        marks: list[Progress] | None = None,
    ) -> dict[Check, Finding]:
        self.device.mkdir(parents=True, exist_ok=True)
        request = {
            "workload": workload(self.name).to_json(),
            "variant": self.variant,
            "steps": self.steps,
            "order": BuildOrder(device=device, profile="", fault=fault).to_json(),
            "reference": str(self.reference),
            "out": str(self.device),
        }
        heard = marks if marks is not None else []
        with process():
            device_child.observe(request, build_from({self.name: self.factory}), adapter, heard.append)
        return self.judge()

    def search(
        self, device: str = "cpu", fault: Mapping[str, Any] | None = None, seconds: float = 3600.0
    ) -> dict[Check, Finding]:
        """Look for the operator to blame, and judge again."""
        folder = self.folder / "search"
        folder.mkdir(parents=True, exist_ok=True)
        request = {
            "workload": workload(self.name).to_json(),
            "variant": self.variant,
            "steps": 1,
            "order": BuildOrder(device=device, profile="", fault=fault).to_json(),
            "reference": str(self.reference),
            "out": str(folder),
            "thresholds": asdict(Thresholds()),
            "seconds": seconds,
        }
        with process():
            deviation.search(request, build_from({self.name: self.factory}), registry.adapter, lambda _: None)
        return self.judge(search=folder)

    def judge(self, left: Exit = DONE, search: Path | None = None) -> dict[Check, Finding]:
        variant = Variant.parse(self.variant)
        found = judge_device(self.reference, self.device, left, variant, Thresholds(), search)
        return {finding.check: finding for finding in found}

    def seen(self) -> Observation:
        observation = read_observation(self.device)
        assert observation is not None
        return observation


def family(folder: Path, name: str, variant: str = "eager/fp32/train") -> Stage:
    return Stage(folder, name, FAMILIES[name], variant)
