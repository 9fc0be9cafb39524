"""Times of `neuronqa check` from a warm start (the device is built): a tiny module of one's own, and a Llama config."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMMAND = "from neuronqa.cli.main import run; run()"
MODULES = ROOT / "tests" / "integration" / "checkup" / "modules.py"
LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


def timed(*arguments: str) -> dict[str, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, "check", *arguments, "--json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = json.loads(done.stdout)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(time.monotonic() - began, 1), "cpu_s": round(cpu, 1), "green": told["green"]}


def main() -> None:
    timed(f"{MODULES}:perceptron")  # builds the device if need be
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(LLAMA))
        figures = {
            "own module": timed(f"{MODULES}:perceptron"),
            "own module, quick": timed(f"{MODULES}:perceptron", "--policy", "quick"),
            "llama config": timed(str(config)),
            "llama config, shrunk": timed(str(config), "--shrink"),
        }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
