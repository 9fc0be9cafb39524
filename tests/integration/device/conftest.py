"""Every test in this folder runs in a forked child in which the simulated device was loaded.

`pytestmark = pytest.mark.device(profile="...")`, or the same on a test, chooses the profile (default `ideal`), a
planted `fault`, operators `forced_cpu` and variables of the `environment`.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from neuronqa.device.neuron import build
from neuronqa.device.neuron.adapter import NeuronAdapter
from neuronqa.device.neuron.warm import warm_compile
from neuronqa.domain.build import BuildOrder

torch.set_num_threads(1)

SECONDS = 120


@dataclass(frozen=True)
class ChildDied(Exception):
    """The child left no answer."""

    status: int

    def __str__(self) -> str:
        if os.WIFSIGNALED(self.status):
            return f"killed by {signal.Signals(os.WTERMSIG(self.status)).name}"
        return f"exit code {os.waitstatus_to_exitcode(self.status)} without an answer"


@pytest.fixture(scope="session", autouse=True)
def warm() -> None:
    """Every child inherits a warm compile path, as the children of a zygote do."""
    warm_compile()


@pytest.fixture(name="in_child")
def fixture_in_child() -> Callable[[Callable[[], Any]], Any]:
    """Runs a function in a forked child without a device."""
    return in_child


def in_child(function: Callable[[], Any]) -> Any:
    """Run `function` in a forked child and return what it returns.

    Raises ChildDied if the child ends without an answer, AssertionError with the child's traceback if it raises.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        signal.alarm(SECONDS)
        faulthandler.disable()  # a death that a test asks for is no news for whoever reads the tests' output
        _answer(function, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    if not answer:
        raise ChildDied(status)
    value, error = pickle.loads(answer)  # noqa: S301  our own child wrote it
    if error:
        raise AssertionError(error)
    return value


def _answer(function: Callable[[], Any], writer: int) -> None:
    try:
        answer = pickle.dumps((function(), ""))
    except BaseException:  # noqa: BLE001  whatever it is, the parent must hear of it
        answer = pickle.dumps((None, traceback.format_exc()))
    with os.fdopen(writer, "wb") as pipe:
        pipe.write(answer)
    os._exit(0)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "device(profile, fault, forced_cpu, environment): what the forked child loads")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run the test in a child, with its fixtures; a fixture named `device` is the loaded device."""
    marker = pyfuncitem.get_closest_marker("device")
    if marker is None:
        return None
    wanted = {"profile": "ideal", **marker.kwargs}
    environment = wanted.pop("environment", {})
    path = build.ensure().path
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    def run() -> None:
        os.environ.update(environment)
        device = NeuronAdapter().load(BuildOrder(device="neuron", binary=str(path), **wanted))
        if "device" in arguments:
            arguments["device"] = device
        pyfuncitem.obj(**arguments)

    in_child(run)
    return True


@pytest.fixture
def device() -> None:
    """Replaced by the loaded device in the child."""
