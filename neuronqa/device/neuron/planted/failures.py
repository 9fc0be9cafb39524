"""Faults that are no numbers: errors, deaths, hangs, leaks."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import torch

from neuronqa.device.neuron.build import MODULE
from neuronqa.device.neuron.codes import runtime_error
from neuronqa.device.neuron.faults import Fault
from neuronqa.device.neuron.planted.effects import Call, Run, effect

# Texts of the public torch-neuronx source, April 2026, csrc/core/ErrorHandler.cpp.
_EXECUTION = 'NRT Execution error occurred on Neuron for operation={op}\nerror message="NRT EXECUTION FAILED: {why}"'


def _shim() -> Any:
    return sys.modules[MODULE]


@effect("raise")
def raise_error(call: Call, _run: Run, _fault: Fault) -> Any:
    raise RuntimeError(f"planted error in {call.name}")


@effect("not-implemented")
def not_implemented(call: Call, _run: Run, _fault: Fault) -> Any:
    raise NotImplementedError(f"Operation {call.name} is not implemented for Neuron")


@effect("delayed-error")
def delayed_error(call: Call, run: Run, _fault: Fault) -> Any:
    result = run()
    _shim().post_error(_EXECUTION.format(op=call.name, why=runtime_error(1004)))
    return result


@effect("device-error")
def device_error(call: Call, _run: Run, fault: Fault) -> Any:
    raise RuntimeError(_EXECUTION.format(op=call.name, why=runtime_error(int(fault.number("status")))))


@effect("out-of-memory")
def out_of_memory(call: Call, _run: Run, _fault: Fault) -> Any:
    raise torch.OutOfMemoryError(f"{runtime_error(4)}: out of device memory in {call.name}")


@effect("segfault")
def segfault(_call: Call, _run: Run, _fault: Fault) -> Any:
    _shim().fault_segfault()


@effect("abort")
def abort(_call: Call, _run: Run, _fault: Fault) -> Any:
    os.abort()


@effect("killed")
def killed(_call: Call, _run: Run, _fault: Fault) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


@effect("exit")
def leave(_call: Call, _run: Run, fault: Fault) -> Any:
    _shim().fault_exit(int(fault.number("code")))


@effect("hang")
def hang(_call: Call, _run: Run, _fault: Fault) -> Any:
    _shim().fault_hang()


@effect("slow")
def slow(_call: Call, run: Run, fault: Fault) -> Any:
    time.sleep(fault.number("seconds"))
    return run()


_LEAKED: list[bytearray] = []


@effect("leak")
def leak(_call: Call, run: Run, fault: Fault) -> Any:
    block = bytearray(int(fault.number("megabytes")) << 20)
    block[::4096] = b"\1" * len(block[::4096])  # touched, so that it counts
    _LEAKED.append(block)
    return run()
