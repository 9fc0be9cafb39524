"""Controls: what counts as caught, what withholds a rate, and that they travel like any other job."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from neuronqa import bundled
from neuronqa.domain.case import AttemptKind
from neuronqa.domain.finding import Finding
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.outcome import Check, Kind, Rung
from neuronqa.errors import EnvironmentFault
from neuronqa.sweep import controls as controls_module
from neuronqa.sweep.controls import Control, assignments, load_controls, withheld
from neuronqa.sweep.policies import load_policy
from tests.builders import COMPILED, EAGER, ORDER, QUICK, but, failed, job, passed, said, workload

PLANTED = Control(
    name="wrong-mm",
    workload=workload("host"),
    variant=EAGER,
    fault={"kind": "scale", "op": "aten::mm", "factor": 1.02},
    guards=Check.PARITY,
    expected=("parity:scale", "parity:scatter"),
)
ANY_PARITY = replace(PLANTED, expected=("parity:*",))
TWIN = replace(PLANTED, name="good-mm", fault=None, expected=("pass",))


@pytest.mark.parametrize(
    ("control", "findings", "judged", "caught"),
    [
        (PLANTED, failed(EAGER, Check.PARITY, Kind.PARITY_SCALE, "aten::mm"), "parity:scale(aten::mm)", True),
        (PLANTED, failed(EAGER, Check.PARITY, Kind.PARITY_SCATTER), "parity:scatter", True),
        (PLANTED, failed(EAGER, Check.PARITY, Kind.PARITY_NAN), "parity:nan", False),
        (PLANTED, passed(EAGER), "parity:pass", False),
        (PLANTED, failed(EAGER, Check.RUN, Kind.RUN_CRASH, "SIGSEGV"), "not-run:blocked(run)", False),
        (PLANTED, [said(c, Kind.INFRA_LOST, "node") for c in Check], "infra:lost(node)", False),
        (PLANTED, [], "nothing", False),
        (ANY_PARITY, failed(EAGER, Check.PARITY, Kind.PARITY_SIGN, "aten::mm"), "parity:sign(aten::mm)", True),
        (ANY_PARITY, passed(EAGER), "parity:pass", False),
        (ANY_PARITY, failed(EAGER, Check.RUN, Kind.RUN_CRASH), "not-run:blocked(run)", False),
        (ANY_PARITY, [said(c, Kind.INFRA_LOST, "node") for c in Check], "infra:lost(node)", False),
        (
            ANY_PARITY,
            but(passed(EAGER), said(Check.PARITY, Kind.INCONCLUSIVE_NO_POWER)),
            "inconclusive:no-power",
            False,
        ),
        (ANY_PARITY, [], "nothing", False),
        (PLANTED, [said(Check.RUN, Kind.RUN_PASS)], "nothing", False),
        (TWIN, passed(EAGER), "pass", True),
        (TWIN, but(passed(EAGER), said(Check.PARITY, Kind.PARITY_SCALE)), "parity:scale", False),
        (TWIN, but(passed(EAGER), said(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL)), "fallback:no-kernel", False),
        (TWIN, but(passed(EAGER), said(Check.TRAIN, Kind.INCONCLUSIVE_NO_POWER)), "inconclusive:no-power", False),
        (TWIN, but(passed(EAGER), said(Check.TRAIN, Kind.NOT_RUN_BUDGET)), "not-run:budget", False),
        (TWIN, [], "nothing", False),
        (TWIN, [f for f in passed(EAGER) if f.check is not Check.PARITY], "nothing", False),
    ],
)
def test_what_counts_as_caught(control: Control, findings: list[Finding], judged: str, caught: bool) -> None:
    verdict = control.judge(findings)
    assert (verdict.judged, verdict.caught) == (judged, caught)
    assert verdict.name == control.name
    assert verdict.guards == "parity"


def test_a_long_detail_is_cut_before_it_meets_the_column() -> None:
    verdict = PLANTED.judge(failed(EAGER, Check.PARITY, Kind.PARITY_SCALE, "x" * 200))
    assert len(verdict.judged) == 80
    assert verdict.caught


def test_a_control_that_was_missed_or_never_judged_withholds_the_rung_it_guards() -> None:
    good = PLANTED.judge(failed(EAGER, Check.PARITY, Kind.PARITY_SCALE))
    bad = PLANTED.judge(passed(EAGER))
    alarm = TWIN.judge(failed(EAGER, Check.PARITY, Kind.PARITY_SCALE))
    assert withheld([PLANTED], [good]) == {}
    assert withheld([PLANTED], [bad]) == {Rung.PARITY: "control wrong-mm was judged parity:pass"}
    assert withheld([PLANTED], []) == {Rung.PARITY: "control wrong-mm was not judged"}
    assert withheld([PLANTED, TWIN], [good]) == {Rung.PARITY: "control good-mm was not judged"}
    assert withheld([TWIN], [alarm]) == {Rung.PARITY: "control good-mm was judged parity:scale"}
    hang = replace(PLANTED, name="hang", guards=Check.RUN)
    assert set(withheld([PLANTED, hang], [])) == {Rung.PARITY, Rung.RUNS}
    assert withheld([], []) == {}


def test_controls_travel_as_jobs_that_look_like_any_other() -> None:
    tickets = iter(f"{n:032x}" for n in range(9))
    made, key = assignments([PLANTED, TWIN], QUICK, ORDER, 5, lambda: next(tickets))
    assert sorted(control.name for control in key.values()) == ["good-mm", "wrong-mm"]
    for one in made:
        control = key[one.job.tickets[0].id]
        plain = job(control.workload, [control.variant]).to_json()
        sent = one.job.to_json()
        assert sent.keys() == plain.keys()
        assert sent["tickets"][0].keys() == plain["tickets"][0].keys()
        assert sent["tickets"][0]["order"]["fault"] == control.fault
        assert set(one.kinds.values()) == {AttemptKind.CONTROL}
        assert control.name not in canonical_json(sent)
        assert "control" not in canonical_json(sent)


@pytest.mark.parametrize("device", ["neuron", "cpu"])
def test_a_child_reads_nowhere_that_its_case_is_a_control(device: str) -> None:
    """The source lies among those of real cases, and neither a spec nor the source says what it is for."""
    source = bundled.folder("catalogs") / controls_module.HOSTS
    assert any((source.parent / name).exists() for name in ("healthy.py", "faulty.py"))
    texts = [source.read_text("utf-8")]
    texts += [canonical_json(one.workload.to_json()) for one in load_controls(load_policy("gating"), device)]
    for text in texts:
        assert not re.search("control|planted|host|twin", text)


def test_the_order_of_controls_is_seeded() -> None:
    pool = [replace(PLANTED, name=f"c{n}", variant=v) for n in range(6) for v in (EAGER, COMPILED)]

    def order(seed: int) -> list[str]:
        made, key = assignments(pool, QUICK, ORDER, seed, iter(f"{n:032x}" for n in range(99)).__next__)
        return [key[one.job.tickets[0].id].name for one in made]

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_the_bundled_controls_guard_every_rung_that_is_asked_with_a_fault_of_its_own() -> None:
    for policy in (QUICK, load_policy("gating")):
        controls = load_controls(policy)
        faults = [control for control in controls if control.expected != ("pass",)]
        assert {control.guards.rung for control in faults} >= set(policy.rungs) - {Rung.REGISTERED, Rung.ELIGIBLE}
        assert len({str(control.fault) for control in faults}) >= 6
        assert {control.variant.mode for control in controls} == {variant.mode for variant in policy.variants}
        assert [control for control in controls if control.expected == ("pass",)]


def test_the_bundled_controls_fit_their_columns_and_have_names_of_their_own() -> None:
    controls = load_controls(load_policy("gating"))
    assert len({control.name for control in controls}) == len(controls)
    for control in controls:
        assert len(control.name) <= 64
        assert len(control.judge([]).expected) <= 80


def test_only_what_a_policy_runs_and_asks_is_controlled() -> None:
    eager_runs = replace(QUICK, required={Rung.RUNS: (EAGER,)})
    assert {(control.variant, control.guards.rung) for control in load_controls(eager_runs)} == {(EAGER, Rung.RUNS)}


@pytest.mark.parametrize(
    "row",
    [
        {"name": "n", "host": "h", "variant": "eager/fp32/train", "guards": "parity", "expected": ["parity:odd"]},
        {"name": "n", "host": "h", "variant": "eager/fp32/train", "guards": "parity", "expected": ["odd:*"]},
        {"name": "n", "host": "h", "variant": "eager/fp32/train", "guards": "odd", "expected": ["pass"]},
        {"name": "n", "host": "h", "variant": "eager", "guards": "parity", "expected": ["pass"]},
        {"name": "n", "host": "h", "variant": "eager/fp32/train", "guards": "parity"},
    ],
)
def test_a_control_nobody_could_judge_is_a_broken_installation(
    row: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "controls").mkdir()
    (tmp_path / controls_module.HOSTS).parent.mkdir()
    (tmp_path / controls_module.HOSTS).touch()
    lines = [f"{key} = {value!r}" for key, value in row.items()]
    (tmp_path / "controls" / "controls.toml").write_text("[[control]]\n" + "\n".join(lines))
    monkeypatch.setattr(controls_module, "folder", lambda _name: tmp_path)
    with pytest.raises(EnvironmentFault, match="controls cannot be read"):
        load_controls(QUICK)
