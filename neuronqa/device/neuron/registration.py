"""Makes a built device known to torch, as its profile says. Once a process, and for good."""

from __future__ import annotations

import os
from typing import Any, Final

import torch
from torch.utils import backend_registration

from neuronqa.device.neuron import attention, distributed
from neuronqa.device.neuron.afterwards import when_imported
from neuronqa.device.neuron.faults import Fault
from neuronqa.device.neuron.profile import Mechanism, Profile, Where
from neuronqa.device.neuron.surface import DEVICE, NeuronModule
from neuronqa.errors import BadInput

MAX_DEVICES: Final = 64
ROUNDING: Final = "NEURON_RT_STOCHASTIC_ROUNDING_EN"
ROUNDING_SEED: Final = "NEURON_RT_STOCHASTIC_ROUNDING_SEED"


def register(shim: Any, profile: Profile, fault: Fault | None = None) -> NeuronModule:
    """Rename PrivateUse1, register memory, operators, module, dynamo interface and collectives.

    A `fault` of the compiler is handed on to the backend; others are armed by the caller.
    """
    backend_registration.rename_privateuse1_backend(DEVICE)
    shim.initialise(_settings(shim, profile))
    shim.start_autograd_threads()
    shim.set_device(int(os.environ.get("LOCAL_RANK", "0")) % shim.device_count())
    shim.register_operators(_support(shim, profile))
    module = NeuronModule(shim, profile)
    torch._register_device_module(DEVICE, module)
    backend_registration.generate_methods_for_privateuse1_backend(for_storage=True)
    when_imported("torch._dynamo", lambda: _meet_dynamo(shim, profile, module, fault))
    attention.allow_flex_attention()
    distributed.register()
    return module


def _meet_dynamo(shim: Any, profile: Profile, module: NeuronModule, fault: Fault | None) -> None:
    from neuronqa.device.neuron import dynamo
    from neuronqa.device.neuron.compiler import backend

    dynamo.register(module)
    backend.register(shim, profile, fault)


def logical_devices(profile: Profile) -> int:
    """NEURON_RT_NUM_CORES, else what the profile has; never fewer than the ranks of this machine."""
    count = _whole("NEURON_RT_NUM_CORES", profile.hardware.logical_devices)
    if not 1 <= count <= MAX_DEVICES:
        raise BadInput(f"NEURON_RT_NUM_CORES must be 1 to {MAX_DEVICES}", where=str(count))
    return min(max(count, _whole("LOCAL_WORLD_SIZE", 1)), MAX_DEVICES)


def _whole(name: str, default: int) -> int:
    """A whole number from the environment. Raises BadInput for anything else."""
    named = os.environ.get(name, str(default))
    try:
        return int(named)
    except ValueError:
        raise BadInput(f"{name} must be a whole number", where=named) from None


def _settings(shim: Any, profile: Profile) -> Any:
    behaviour = profile.behaviour
    settings = shim.Settings()
    settings.devices = logical_devices(profile)
    settings.memory_limit = profile.hardware.memory_bytes
    settings.contiguous_only = behaviour.memory_format == "contiguous"
    settings.narrow_int64 = behaviour.int64 == "int32"
    settings.narrow_float64 = behaviour.float64 == "float32"
    settings.keeps_parameters = behaviour.keeps_parameters
    only_unimplemented = os.environ.get("TORCH_NEURONX_FALLBACK_ONLY_FOR_UNIMPLEMENTED_OPS") == "1"
    settings.fallback_on_refusal = behaviour.fallback_on_refusal and not only_unimplemented
    settings.blocking = os.environ.get("NEURON_LAUNCH_BLOCKING") == "1"
    settings.matmul_tile = behaviour.matmul_tile
    settings.function_tables = behaviour.function_tables
    settings.stochastic_rounding = behaviour.stochastic_rounding
    if ROUNDING in os.environ:
        settings.stochastic_rounding = os.environ[ROUNDING] == "1"
    settings.rounding_seed = _whole(ROUNDING_SEED, 0)
    return settings


def _support(shim: Any, profile: Profile) -> Any:
    rules = shim.SupportRules()
    rules.everything = profile.behaviour.everything_native
    rules.native = list(profile.native)
    rules.hidden = list(profile.hidden)
    rules.unsupported = list(profile.unsupported)
    rules.composite = list(profile.composite)
    rules.primitives = list(profile.primitive)
    for refusal in profile.refusals:
        if Where.EAGER in refusal.where and not refusal.when:
            mechanism = (
                shim.Mechanism.ARGUMENTS if refusal.mechanism is Mechanism.ARGUMENTS else shim.Mechanism.RECOVERED
            )
            dtypes = [getattr(torch, name) for name in refusal.dtypes]
            rules.refuse(list(refusal.operators), dtypes, mechanism, refusal.message)
    for quirk in profile.quirks:
        rules.quirk(list(quirk.operators), quirk.effect.value)
    return rules
