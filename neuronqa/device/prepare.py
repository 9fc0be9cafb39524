"""Make a device ready before any clock starts: build what must be built, and name what stands under test.

Run as a child (`python -m neuronqa.device.prepare`), because building needs torch and the driver must not import it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from neuronqa.domain.build import BuildOrder, BuildVector, Prepared
from neuronqa.errors import BadInput, EnvironmentFault, NeuronQAError

COMMAND = (sys.executable, "-m", "neuronqa.device.prepare")


def prepare(order: BuildOrder) -> Prepared:
    """Build the ordered device in a child process. Raises BadInput or EnvironmentFault with the child's own words."""
    said_to = json.dumps(order.anchored().to_json())
    child = subprocess.run(COMMAND, input=said_to, capture_output=True, text=True)
    try:
        answer: Mapping[str, Any] = json.loads(child.stdout)
    except json.JSONDecodeError:
        said = (child.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise EnvironmentFault(f"the device cannot be prepared: {said}", hint="run `neuronqa doctor`") from None
    if "error" in answer:
        kind = BadInput if answer["exit_code"] == int(BadInput.exit_code) else EnvironmentFault
        raise kind(answer["error"], where=answer["where"], hint=answer["hint"])
    return Prepared(
        order=BuildOrder.from_json(answer["order"]),
        vector=BuildVector(**answer["vector"]),
        seconds=answer["seconds"],
    )


def main() -> None:
    """Read a build order from stdin, write what was prepared (or one error) to stdout, as JSON."""
    from neuronqa.device.registry import adapter

    order = BuildOrder.from_json(json.load(sys.stdin))
    try:
        prepared = adapter(order.device).prepare(order)
    except NeuronQAError as error:
        answer: dict[str, Any] = {
            "error": error.what,
            "where": error.where,
            "hint": error.hint,
            "exit_code": int(error.exit_code),
        }
    else:
        answer = {
            "order": prepared.order.to_json(),
            "vector": asdict(prepared.vector),
            "seconds": prepared.seconds,
        }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
