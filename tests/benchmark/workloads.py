"""What planning and building cost, as JSON: `python tests/benchmark/workloads.py [N@SEED]`."""

from __future__ import annotations

import json
import sys
import time

from neuronqa.workload import architectures
from neuronqa.workload.audit import audit, sample, summary
from neuronqa.workload.examples import example
from neuronqa.workload.planner import plan_config


def main(drawn: str = "60@0") -> None:
    chosen = sample(drawn)
    texts = [text for architecture in chosen if (text := _example(architecture))]
    for text in texts:
        plan_config(text)
    started = time.process_time()
    for text in texts:
        plan_config(text)
    planned = (time.process_time() - started) / len(texts)
    figures = summary(audit(chosen, workers=1))
    print(
        json.dumps(
            {"plan_ms": round(1000 * planned, 2), "case_cpu_s": figures["cpu_s"], "case_peak_mb": figures["peak_mb"]}
        )
    )


def _example(architecture: architectures.Architecture) -> str:
    try:
        return example(architecture)
    except Exception:  # noqa: BLE001 - a class may refuse its own defaults
        return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
