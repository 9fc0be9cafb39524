"""How well are causes told apart? Faults planted into real models on the simulated device, and B-cubed over what the
checks made of them.

Two sets: *single*, one fault an operator; *mixed*, two faults on each of many operators, and faults that sit in many
operators at once. A planted fault is the label of every failure it brings that the same run does not have without it;
the cluster is the key of the cause that failure is put down to. Trials are appended to a file, so that a long
measurement can be made in parts. Prints the grades as JSON.

    python -m tests.benchmark.clustering TRIALS [seconds] [workloads] [workers]
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from neuronqa import catalog as catalogs
from neuronqa.db.occurrences import Occurrence
from neuronqa.device.neuron.faults import MATMUL
from neuronqa.domain.case import Variant
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.outcome import Check, Outcome
from neuronqa.domain.trial import Plant, Trial
from neuronqa.sweep import certification
from neuronqa.sweep.certification import Assignment
from neuronqa.triage.attribution import attribute
from neuronqa.triage.grading import Grade, grade
from tests.benchmark.certification import go_on

VARIANT: Final = Variant.parse("eager/fp32/train")
SEED: Final = 8
NAMED: Final = 40
SINGLE_DRAWN: Final = 9
"""Plants of a workload; it does not use every operator, so about half of them act."""
MIXED_DRAWN: Final = 5
KINDS: Final[tuple[tuple[dict[str, Any], Check], ...]] = (
    ({"kind": "scale", "factor": 1.5}, Check.PARITY),
    ({"kind": "no-kernel"}, Check.FALLBACK),
    ({"kind": "raise"}, Check.RUN),
    ({"kind": "nan"}, Check.PARITY),
    ({"kind": "segfault"}, Check.RUN),
)
"""What differs in nature: a wrong kernel, none, one that raises, one that is not finite, one that crashes."""
OPERATORS: Final = tuple(
    f"aten::{name}"
    for name in (
        *("mm", "addmm", "bmm", "_softmax", "native_layer_norm", "gelu", "silu", "relu", "tanh", "sigmoid"),
        *("add.Tensor", "mul.Tensor", "sub.Tensor", "div.Tensor", "rsqrt", "mean.dim", "pow.Tensor_Scalar"),
        *("sum.dim_IntList", "embedding", "embedding_dense_backward", "convolution", "convolution_backward"),
        *("native_batch_norm", "native_batch_norm_backward", "cat", "index_select", "gather", "masked_fill.Scalar"),
        *("where.self", "cumsum", "exp", "neg", "nll_loss_forward", "_log_softmax", "topk", "cos", "sin"),
        *("gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward", "threshold_backward"),
        *("native_layer_norm_backward", "_softmax_backward_data", "_log_softmax_backward_data"),
        *("nll_loss_backward", "select_backward", "slice_backward", "constant_pad_nd", "softplus", "sqrt", "log"),
        *(
            "max_pool2d_with_indices",
            "max_pool2d_with_indices_backward",
            "_adaptive_avg_pool2d",
            "clamp",
            "index.Tensor",
        ),
        *("hardtanh", "hardswish", "leaky_relu", "native_group_norm", "upsample_bilinear2d", "glu", "mul.Scalar"),
    )
)
SHARED: Final[tuple[tuple[dict[str, Any], Check], ...]] = (
    ({"kind": "bf16-accumulation"}, Check.PARITY),
    ({"kind": "device-error", "op": "aten::mm|aten::addmm|aten::bmm|aten::convolution"}, Check.RUN),
    ({"kind": "out-of-memory", "op": "aten::cat|aten::embedding|aten::convolution"}, Check.RUN),
    ({"kind": "exit", "op": "aten::_softmax|aten::_log_softmax|aten::native_layer_norm"}, Check.RUN),
)
"""One cause in many operators."""


def single() -> list[Plant]:
    """One fault an operator."""
    return [_of(op, i) for i, op in enumerate(OPERATORS)]


def mixed() -> list[Plant]:
    """Two faults of another nature on every operator, and some that sit in many."""
    others = [_of(op, i + 1 + i // len(KINDS) % (len(KINDS) - 1)) for i, op in enumerate(OPERATORS)]
    return [*single(), *others, *(_plant(fault, check) for fault, check in SHARED)]


SETS: Final = {"single": (single, SINGLE_DRAWN), "mixed": (mixed, MIXED_DRAWN)}


def _of(op: str, n: int) -> Plant:
    fault, check = KINDS[n % len(KINDS)]
    return _plant({**fault, "op": op}, check)


def _plant(fault: dict[str, Any], check: Check) -> Plant:
    numeric = check is Check.PARITY
    return Plant(kind=fault["kind"], op=fault.get("op", MATMUL), check=check.value, fault=fault, numeric=numeric)


def assignments(workloads: int) -> list[Assignment]:
    """A seeded draw of both sets for every workload."""
    chosen = certification.choose(catalogs.open("top-100k"), workloads)
    drawing = random.Random(SEED)
    made = []
    for workload in chosen:
        drawn = {}
        for plants, count in SETS.values():
            drawn.update({_label(one): one for one in drawing.sample(plants(), count)})
        made.append(Assignment(workload=workload, variant=VARIANT, plants=tuple(drawn.values())))
    return made


def graded(trials: Iterable[Trial], labels: frozenset[str]) -> dict[str, Any]:
    """The grade of the trials of a set, and what spoils it."""
    noticed = [one for one in trials if one.acted and one.noticed_by and _label(one.plant) in labels]
    pairs = [(_label(one.plant), said) for one in noticed for said in _failures(one)]
    found: Grade = grade([(label, key) for label, (key, _) in pairs])
    return {
        **found.to_json(),
        "trials": len(noticed),
        "models": len({one.workload for one in noticed}),
        "spoilt": list(_spoilt(pairs)),
    }


def _failures(trial: Trial) -> Iterator[tuple[str, str]]:
    """(key, words) of every failure that the plant brought, symptoms put down to what they follow from."""
    variant = Variant.parse(trial.variant)
    found = [
        Occurrence(0, 0, trial.workload, trial.family, variant, Check(check), Outcome.parse(text), 1, 0)
        for check, text in trial.found.items()
        if check in trial.noticed_by
    ]
    for failure in attribute(found):
        yield failure.cause.key, f"{failure.cause.check.value} {failure.cause.outcome}"


def _spoilt(pairs: Iterable[tuple[str, tuple[str, str]]]) -> Iterator[dict[str, Any]]:
    """Labels in more than one cluster and clusters of more than one label, the worst first."""
    of_label: dict[str, Counter[str]] = defaultdict(Counter)
    of_key: dict[str, Counter[str]] = defaultdict(Counter)
    for label, (key, words) in pairs:
        of_label[label][f"{key} {words}"] += 1
        of_key[key][label] += 1
    apart = [(len(some), label, some) for label, some in of_label.items() if len({one[:16] for one in some}) > 1]
    together = [(len(some), key, some) for key, some in of_key.items() if len(some) > 1]
    for _, name, some in sorted([*apart, *together], key=lambda one: (-one[0], one[1]))[:NAMED]:
        yield {"of": name, "in": dict(some)}


def _label(plant: Plant) -> str:
    return canonical_json(dict(plant.fault))


def summary(trials: Iterable[Trial]) -> dict[str, Any]:
    """Both sets, graded."""
    made = list(trials)
    return {name: graded(made, frozenset(map(_label, plants()))) for name, (plants, _) in SETS.items()}


def main() -> None:
    arguments = sys.argv[1:]
    seconds = float(arguments[1]) if len(arguments) > 1 else 3600.0
    workloads = int(arguments[2]) if len(arguments) > 2 else 44
    workers = int(arguments[3]) if len(arguments) > 3 else 2
    trials = go_on(Path(arguments[0]), assignments(workloads), seconds, workers, "ideal")
    print(json.dumps(summary(trials), indent=2))


if __name__ == "__main__":
    main()
