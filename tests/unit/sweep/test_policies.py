"""Policies by name and by file, the gate an answer must clear, and budgets."""

from pathlib import Path

import pytest

from neuronqa.bundled import folder
from neuronqa.domain.case import Dtype, Mode
from neuronqa.domain.ladder import Gate
from neuronqa.domain.outcome import Rung
from neuronqa.errors import BadInput, ExitCode, UsageError
from neuronqa.sweep.budget import parse_budget
from neuronqa.sweep.policies import GateExpression, Narrowing, load_policy

GATING = load_policy("gating")


POLICIES = sorted((folder("catalogs") / "policies").glob("*.toml"))
FOR_MODELS = ("gating", "quick", "thorough")


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.stem)
def test_every_bundled_policy_loads_by_its_own_name_and_from_its_file(path: Path) -> None:
    policy = load_policy(path.stem)
    assert policy.name == path.stem
    assert load_policy(str(path)) == policy


@pytest.mark.parametrize("name", FOR_MODELS)
def test_a_policy_for_models_asks_for_everything_but_size(name: str) -> None:
    assert load_policy(name).rungs == tuple(rung for rung in Rung if rung is not Rung.FITS)


@pytest.mark.parametrize("name", sorted({path.stem for path in POLICIES} - set(FOR_MODELS)))
def test_a_policy_for_a_suite_asks_at_least_that_it_builds_and_runs(name: str) -> None:
    assert {Rung.BUILDS, Rung.RUNS} <= set(load_policy(name).rungs)


def test_gating_asks_what_its_name_promises_and_quick_asks_less() -> None:
    quick = load_policy("quick")
    assert [str(variant) for variant in GATING.variants] == [
        "compile/fp32/train",
        "eager/bf16/train",
        "eager/fp32/train",
    ]
    assert set(quick.variants) < set(GATING.variants)


MALFORMED: dict[str, str | bytes] = {
    "empty": "",
    "no TOML": "name = \n",
    "not UTF-8": b"name = '\xff'",
    "binary": b"\x00\x01\x02",
    "no name": "[required]\nruns = ['eager/fp32/train']",
    "no required": "name = 'own'",
    "required is a word": "name = 'own'\nrequired = 'runs'",
    "unknown rung": "name = 'own'\n[required]\nflies = ['eager/fp32/train']",
    "unknown variant": "name = 'own'\n[required]\nruns = ['lazy/fp32/train']",
    "variant is a number": "name = 'own'\n[required]\nruns = [1]",
    "asks nothing": "name = 'own'\n[required]\nruns = []",
    "asks in vain": "name = 'own'\n[required]\nfull-graph = ['eager/fp32/train']",
    "unknown key": "name = 'own'\nwaive = true\n[required]\nruns = ['eager/fp32/train']",
    "misspelt threshold": "name = 'own'\n[required]\nruns = ['eager/fp32/train']\n[thresholds]\nparity = 1",
    "threshold is NaN": "name = 'own'\n[required]\nruns = ['eager/fp32/train']\n[thresholds]\nparity_ratio = nan",
    "limit is a word": "name = 'own'\n[required]\nruns = ['eager/fp32/train']\n[limits]\ndeadline_s = 'long'",
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_policy_is_one_line_that_names_the_file(name: str, tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    body = MALFORMED[name]
    path.write_bytes(body if isinstance(body, bytes) else body.encode())
    with pytest.raises(BadInput) as caught:
        load_policy(str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("name", ["", "nonsense", "../policies/gating", "gating.toml", "/", "."])
def test_a_policy_that_is_not_there_is_said_so_with_those_that_are(name: str) -> None:
    with pytest.raises(BadInput, match="no policy") as caught:
        load_policy(name)
    assert "gating, " in str(caught.value)


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "/etc/passwd/own.toml"])
def test_a_name_no_file_can_have_is_bad_input(name: str) -> None:
    with pytest.raises(BadInput, match="policy cannot be read"):
        load_policy(name)


def gate(rung: Rung, low: float | None, high: float | None) -> Gate:
    return Gate(rung, 0, 0, 0, 100, low, high)


LADDER = tuple(gate(rung, 0.6, 0.9) for rung in GATING.rungs)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("green>=60%", ExitCode.DONE),
        ("green >= 0.6", ExitCode.DONE),
        ("runs>=50%,parity>=60%", ExitCode.DONE),
        ("green>=0", ExitCode.DONE),
        ("green>=60.01%", ExitCode.CANNOT_TELL),
        ("green>=90%", ExitCode.CANNOT_TELL),
        ("green>=90.1%", ExitCode.GATE_MISSED),
        ("green>=100%", ExitCode.GATE_MISSED),
        ("green>=1", ExitCode.GATE_MISSED),
        ("runs>=70%,parity>=95%", ExitCode.GATE_MISSED),
        ("parity>=95%,runs>=70%", ExitCode.GATE_MISSED),
        ("runs>=50%,parity>=70%", ExitCode.CANNOT_TELL),
    ],
)
def test_a_gate_holds_misses_or_cannot_tell(text: str, verdict: ExitCode) -> None:
    assert GateExpression.parse(text, GATING).judge(LADDER) is verdict


def test_a_withheld_rate_cannot_tell_unless_another_gate_is_missed_anyway() -> None:
    ladder = tuple(gate(g.rung, None, None) if g.rung.height >= Rung.PARITY.height else g for g in LADDER)
    assert GateExpression.parse("green>=1%", GATING).judge(ladder) is ExitCode.CANNOT_TELL
    assert GateExpression.parse("green>=1%,runs>=95%", GATING).judge(ladder) is ExitCode.GATE_MISSED
    assert GateExpression.parse("runs>=60%", GATING).judge(ladder) is ExitCode.DONE


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "green", "green>80%", "green>=", "green>=80%%", "green>=eighty", "green>=80", "green>=101%"),
        *("green>=-1%", "fits>=80%", "flies>=80%", "green<=80%", "green>=80%,", "green>=80% runs>=80%"),
        *("green>=1e-1", "green>=٨%"),
    ],
)
def test_a_gate_that_does_not_parse_or_is_never_asked_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        GateExpression.parse(text, GATING)
    assert caught.value.hint


def test_a_narrowing_keeps_what_was_named() -> None:
    assert not Narrowing().partial
    assert Narrowing().keeps(Mode.COMPILE, Dtype.BF16)
    narrowed = Narrowing(mode=Mode.EAGER, dtype=Dtype.FP32)
    assert narrowed.partial
    kept = [(mode, dtype) for mode in Mode for dtype in Dtype if narrowed.keeps(mode, dtype)]
    assert kept == [(Mode.EAGER, Dtype.FP32)]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("10m", 600.0), ("2h", 7200.0), ("1h30m", 5400.0), (" 1h1m1s ", 3661.0), ("05m", 300.0)],
)
def test_a_budget_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize(
    "text", ["", " ", "0s", "0h0m", "10", "10 m", "m", "-5m", "5M", "1.5h", "5m5h", "5m5m", "1d", "5m\n5s", "٥m", "inf"]
)
def test_a_budget_that_does_not_parse_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="does not parse") as caught:
        parse_budget(text)
    assert "10m" in caught.value.hint
    assert "\n" not in str(caught.value)
