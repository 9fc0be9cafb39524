"""CPU seconds of `neuronqa --help`, beside a bare interpreter's in the same run."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys

RUNS = 9
HELP = (sys.executable, "-m", "neuronqa", "--help")
BARE = (sys.executable, "-c", "pass")


def cpu_seconds(command: tuple[str, ...]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    cpu_seconds(HELP)
    helps, bares = zip(*((cpu_seconds(HELP), cpu_seconds(BARE)) for _ in range(RUNS)), strict=True)
    figures = {"median_cpu_s": statistics.median(helps), "bare_cpu_s": statistics.median(bares), "limit_cpu_s": 0.5}
    print(json.dumps({"benchmark": "cli_help", "schema_version": 1, "runs": RUNS, **figures}))
