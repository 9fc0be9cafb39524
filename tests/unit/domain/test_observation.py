"""What children saw survives strict JSON, whatever the numbers and strings in it."""

import json
import math
from dataclasses import asdict, fields, is_dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neuronqa.domain.identity import canonical_json, relaxed
from neuronqa.domain.observation import (
    Curve,
    Exit,
    Failure,
    GraphBreak,
    GraphUse,
    Observation,
    OpUse,
    Placement,
    Progress,
    StateUse,
    from_json,
)

TEXT = st.text(st.characters(), max_size=6)
CURVES = st.builds(Curve, loss=st.lists(st.floats(), max_size=3).map(tuple))
OPS = st.builds(
    OpUse,
    op=TEXT,
    dtype=TEXT,
    placement=st.sampled_from(Placement),
    shapes=st.lists(st.lists(st.integers(0, 9), max_size=3).map(tuple), max_size=2).map(tuple),
)
GRAPHS = st.builds(
    GraphUse,
    graphs=st.integers(0, 9),
    ops=st.lists(st.integers(0, 9), max_size=3).map(tuple),
    breaks=st.lists(st.builds(GraphBreak, registry_id=TEXT, reason=TEXT, frame=TEXT), max_size=2).map(tuple),
    recompiles=st.lists(TEXT, max_size=2).map(tuple),
)
FAILURES = st.builds(Failure, progress=st.sampled_from(Progress), error=TEXT, message=TEXT)
OBSERVATIONS = st.builds(
    Observation,
    role=st.sampled_from(["reference", "device"]),
    reached=st.sampled_from(Progress),
    failure=st.none() | FAILURES,
    partial=st.lists(TEXT, max_size=2).map(tuple),
    curve=CURVES,
    ops=st.lists(OPS, max_size=2).map(tuple),
    graph=st.none() | GRAPHS,
    state=st.none() | st.builds(StateUse, untied=st.lists(TEXT, max_size=2).map(tuple)),
    dtypes=st.dictionaries(TEXT, TEXT, max_size=2),
    seconds=st.dictionaries(TEXT, st.floats(allow_nan=False), max_size=2),
)


def same(one: Any, other: Any) -> bool:
    """Equality in which NaN equals NaN."""
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if is_dataclass(one):
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, tuple | list):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


@given(OBSERVATIONS)
def test_an_observation_reads_back(seen: Observation) -> None:
    again = from_json(Observation, relaxed(json.loads(canonical_json(asdict(seen)))))
    assert same(again, seen)


def test_a_curve_that_begins_with_nan_reads_back() -> None:
    seen = Observation(role="device", reached=Progress.DONE, curve=Curve(loss=(math.nan, 1.0)))
    again = from_json(Observation, relaxed(json.loads(canonical_json(asdict(seen)))))
    assert math.isnan(again.curve.loss[0])
    assert again.curve.loss[1:] == (1.0,)


def test_an_exit_reads_back() -> None:
    left = Exit(done=False, progress=Progress.FORWARD, signal="SIGSEGV", last_op="aten::mm", stderr_tail="\ud800\0")
    assert from_json(Exit, relaxed(json.loads(canonical_json(asdict(left))))) == left


@pytest.mark.parametrize(
    "value",
    [
        {"role": "device", "reached": "done", "invented": 1},
        {"role": "device", "reached": "nowhere"},
        {"role": "device"},
        {"role": "device", "reached": "done", "ops": [{"op": "aten::add", "invented": 1}]},
        {"role": "device", "reached": "done", "partial": [{"op": "aten::add"}]},
        {"role": "device", "reached": "done", "graph": {"graphs": 1, "ops": [], "breaks": [{"nonsense": 1}]}},
    ],
)
def test_what_a_child_could_not_have_written_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        from_json(Observation, value)
