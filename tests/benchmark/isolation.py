"""What isolation costs: `python -m tests.benchmark.isolation [--cases 20] [--device neuron]`. JSON on stdout.

- `no_op`: CPU milliseconds of a child that does nothing, below a zygote that holds torch, by who spends them.
- `recovery`: seconds from a segmentation fault to the first line of the next case.
- `eager`: CPU milliseconds per healthy eager case outside the case itself: worker, zygote, judge, and the child's own
  setup as `no_op` measured it.
- `compile`: CPU seconds of the same compile cases, taken in turn, below three zygotes: `warmed` as in a sweep;
  `imported`, with every module but without the warm-up; `plain`, with torch and transformers only.

On a busy machine believe the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.job import Job, Ticket
from neuronqa.domain.policy import Limits, Thresholds
from neuronqa.domain.workload import Workload
from neuronqa.worker.actor import CaseActor, outfit
from neuronqa.worker.folders import WorkFolder
from neuronqa.worker.supervisor import Supervisor

ROLES: Final = Path(__file__).parents[1] / "integration" / "worker"
LIMITS: Final = Limits(deadline_s=300.0)
SMALL: Final = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
CONFIGS: Final = (
    {"model_type": "bert", "architectures": ["BertForMaskedLM"], "vocab_size": 100, **SMALL},
    {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": 100,
        "num_key_value_heads": 2,
        **SMALL,
    },
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--device", default="neuron")
    parser.add_argument("--profile", default="trn2-sdk2.33")
    arguments = parser.parse_args()
    sys.path.insert(0, str(ROLES))
    order = prepare(BuildOrder(device=arguments.device, profile=arguments.profile)).order
    workloads = planned()
    no_op = measure_no_op(arguments.cases)
    report = {
        "schema_version": 1,
        "cases": arguments.cases,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "no_op": no_op,
        "recovery": measure_recovery(arguments.cases),
        "eager": measure_eager(workloads, order, arguments.cases, no_op["child_ms"]),
        "compile": measure_compile(workloads, order, max(2, arguments.cases // 5)),
    }
    json.dump(report, sys.stdout, indent=2)
    print()


def planned() -> list[Workload]:
    lines = "".join(json.dumps({"hash": str(n), "text": json.dumps(c)}) + "\n" for n, c in enumerate(CONFIGS))
    command = [sys.executable, "-m", "neuronqa.workload.planner"]
    plans = subprocess.run(command, input=lines, text=True, stdout=subprocess.PIPE, check=True).stdout.splitlines()
    return [Workload.from_json(json.loads(plan)["workload"]) for plan in plans]


@contextmanager
def supervisor(**changes: Any) -> Iterator[tuple[Supervisor, Path]]:
    with WorkFolder() as work:
        held = Supervisor(work.path, replace(outfit("neuron"), **changes))
        held.start()
        yield held, work.path
        held.close()


def measure_no_op(cases: int) -> dict[str, float]:
    with supervisor(entry="worker_roles:run", warm="") as (held, work):
        held.run("nothing", {"out": str(work / "first")}, LIMITS)
        mine, zygote = own_cpu(), cpu_of(held.start().pid)
        exits = [held.run("nothing", {"out": str(work / f"out-{n}")}, LIMITS) for n in range(cases)]
        return {
            "worker_ms": 1000 * (own_cpu() - mine) / cases,
            "zygote_ms": 1000 * (cpu_of(held.start().pid) - zygote) / cases,
            "child_ms": 1000 * statistics.mean(left.cpu_s for left in exits),
        }


def measure_recovery(cases: int) -> dict[str, float]:
    """Both roles write down the monotonic clock, which all processes share."""
    gaps = []
    with supervisor(entry="worker_roles:run", warm="") as (held, work):
        for number in range(cases):
            times = []
            for role in ("note_time_and_crash", "note_time"):
                out = work / f"{role}-{number}"
                held.run(role, {"out": str(out)}, LIMITS)
                times.append(float((out / "time").read_text()))
            gaps.append(times[1] - times[0])
    return {"median_s": statistics.median(gaps), "worst_s": max(gaps)}


def measure_eager(workloads: list[Workload], order: BuildOrder, cases: int, setup_ms: float) -> dict[str, float]:
    actor = CaseActor(order.device)
    actor.ready()
    actor.run([job(workload, order, "eager/fp32/train", 1) for workload in workloads])
    judge = actor._judge._process
    assert judge is not None
    zygote = actor._supervisor.start().pid
    before = own_cpu(), cpu_of(zygote), cpu_of(judge.pid)
    results = actor.run([job(workload, order, "eager/fp32/train", cases) for workload in workloads])
    after = own_cpu(), cpu_of(zygote), cpu_of(judge.pid)
    children = [reference.exit for result in results for reference in result.references]
    children += [attempt.exit for result in results for attempt in result.attempts]
    actor.close()
    assert all(left.done for left in children), "a case failed; the figures would mean nothing"
    worker, forks, judging = (1000 * (b - a) / (cases * len(workloads)) for a, b in zip(before, after, strict=True))
    setup = setup_ms * len(children) / (cases * len(workloads))
    return {
        "worker_ms": worker,
        "zygote_ms": forks,
        "judge_ms": judging,
        "setup_ms": setup,
        "harness_ms": worker + forks + judging + setup,
        "case_ms": 1000 * statistics.mean(left.cpu_s for left in children),
    }


def job(workload: Workload, order: BuildOrder, variant: str, tickets: int) -> Job:
    made = tuple(Ticket(id=str(n), variant=Variant.parse(variant), order=order) for n in range(tickets))
    return Job(workload=workload, tickets=made, thresholds=Thresholds(), limits=LIMITS)


def measure_compile(workloads: list[Workload], order: BuildOrder, rounds: int) -> dict[str, Any]:
    full = outfit(order.device)
    settings = {
        "warmed": full,
        "imported": replace(full, warm=""),
        "plain": replace(full, warm="", preload=("torch", "transformers")),
    }
    cpu = dict.fromkeys(settings, 0.0)
    with ExitStack() as stack:
        actors = {name: CaseActor(settings=chosen) for name, chosen in settings.items()}
        for actor in actors.values():
            stack.callback(actor.close)
            actor.ready()
        for _ in range(rounds):
            for workload in workloads:
                for name, actor in actors.items():
                    (result,) = actor.run([job(workload, order, "compile/fp32/train", 1)])
                    (attempt,) = result.attempts
                    assert attempt.exit.done, attempt
                    cpu[name] += attempt.exit.cpu_s
    cases = rounds * len(workloads)
    return {
        **{f"{name}_s": total / cases for name, total in cpu.items()},
        "warmed_to_imported": cpu["warmed"] / cpu["imported"],
        "warmed_to_plain": cpu["warmed"] / cpu["plain"],
    }


def own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def cpu_of(pid: int) -> float:
    """Seconds of a living process, its children not counted (proc(5), stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
