"""`python -m neuronqa.worker.sizing PROFILE`: does the model of the config.json on stdin fit the device? Modelled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from typing import Any

from neuronqa.errors import BadInput, EnvironmentFault

SECONDS = 300


def size(config_text: str, profile_name: str) -> dict[str, Any]:
    """Ask a child, because it takes transformers. Raises BadInput for a config that no model can be made of."""
    environment = {**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", __name__, profile_name]
    try:
        child = subprocess.run(
            command, input=config_text, env=environment, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise BadInput(f"going through the model takes more than {SECONDS} s") from None
    if child.returncode != 0:
        said = (child.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise EnvironmentFault(f"the model cannot be sized: {said}", hint="run `neuronqa doctor`")
    answer: dict[str, Any] = json.loads(child.stdout)
    if "error" in answer:
        raise BadInput(answer["error"])
    return answer


def sized(config_text: str, profile_name: str) -> dict[str, Any]:
    """The answer in this process: a `Fit` as JSON, or `{"error"}`."""
    from neuronqa.device.neuron import profile
    from neuronqa.device.neuron.compiler.limits import compile_limit_s
    from neuronqa.device.neuron.cost.measure import demand
    from neuronqa.device.neuron.cost.size import fit
    from neuronqa.workload.fullsize import full_size, inputs_of
    from neuronqa.workload.runnable import BuildFailure

    chosen = profile.load(profile_name)
    try:
        model = full_size(config_text)
    except BuildFailure as failure:
        return {"error": f"no model can be made of this config: {failure.detail}"}
    if model is None:
        return {"error": "the config describes no model that the installed transformers knows"}
    needed = demand(model, inputs_of(model), chosen.hardware)
    answer = fit(needed, chosen.hardware, compile_limit_s(chosen.hardware))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    about = {"profile": chosen.name, "class": type(model).__name__, "parameters": parameters, "dtype": "bfloat16"}
    return {**about, **asdict(answer), "kind": answer.kind.value}


if __name__ == "__main__":
    print(json.dumps(sized(sys.stdin.read(), sys.argv[1])))
