"""Device profiles as data: what they say, and what they may not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuronqa.device.neuron import profile
from neuronqa.device.neuron.profile import Mechanism, Where
from neuronqa.errors import BadInput

MINIMAL = """
schema = 1
name = "mine"
summary = "a device"
[sources]
ours = "us"
[device]
logical_devices = { value = 1, source = "ours" }
memory_bytes = { value = 0, source = "ours" }
target = { value = "none", source = "ours" }
instance_devices = { value = 1, source = "ours" }
cores_per_device = { value = 1, source = "ours" }
tensor_ghz = { value = 1.0, source = "ours" }
float32_passes = { value = 1, source = "ours" }
vector_ghz = { value = 1.0, source = "ours" }
scalar_ghz = { value = 1.0, source = "ours" }
gpsimd_ghz = { value = 1.0, source = "ours" }
memory_gbps = { value = 1.0, source = "ours" }
dma_gbps = { value = 1.0, source = "ours" }
instruction_limit = { value = 0, source = "ours" }
compile_limit_s = { value = 0, source = "ours" }
[behaviour]
[[native]]
source = "ours"
operators = ["mm"]
"""


def write(folder: Path, text: str, name: str = "mine.toml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", profile.names())
def test_every_bundled_profile_loads_under_its_own_name(name: str) -> None:
    loaded = profile.load(name)
    assert loaded.name == name
    assert len(loaded.sha256) == 32


def test_the_default_profile_is_bundled_and_has_the_published_support() -> None:
    loaded = profile.load()
    assert loaded.name == profile.DEFAULT
    assert len(loaded.native) == 396
    assert len(loaded.hidden) == 11
    assert "addmm.out" in loaded.native
    assert not any(name.startswith("maximum") for name in loaded.native)


def test_an_extension_adds_and_replaces_by_name() -> None:
    old, new = profile.load("trn2-beta-2026-04"), profile.load("trn2-sdk2.33")
    assert set(old.native) <= set(new.native)
    assert old.behaviour.whole_graph_fallback
    assert not new.behaviour.whole_graph_fallback
    rules = {rule.name: rule for rule in new.refusals}
    assert rules["integer-matmul"].code == "NCC_EVRF035"
    assert rules["integer-matmul"].mechanism is Mechanism.RECOVERED
    assert rules["complex"].where == (Where.EAGER,)
    assert "integer-scatter" not in {rule.name for rule in old.refusals}


def test_a_profile_is_named_by_what_it_says_and_not_by_its_comments(tmp_path: Path) -> None:
    first = profile.load(write(tmp_path, MINIMAL))
    second = profile.load(write(tmp_path, "# a remark\n" + MINIMAL.replace('"ours"', '"ours: thought over"')))
    third = profile.load(write(tmp_path, MINIMAL.replace('"mm"', '"mm", "bmm"')))
    assert first.sha256 == second.sha256
    assert first.sha256 != third.sha256


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('memory_bytes = { value = 0, source = "ours"', "memory_bytes = { value = 0"), "[device] memory_bytes has no"),
        (('[[native]]\nsource = "ours"', "[[native]]"), "[[native]] has no source"),
        (('"none", source = "ours"', '"none", source = "hearsay"'), "no tag of [sources]"),
        (("schema = 1", "schema = 2"), "schema is 2, not 1"),
        (("schema = 1", "schema = 1\ncolour = 'red'"), "unknown key 'colour'"),
        (("logical_devices = { value = 1", "logical_devices = { value = true"), "logical_devices must be int"),
        (("[behaviour]", '[behaviour]\nspeed = { value = 1, source = "ours" }'), "behaviour has no 'speed'"),
        (('summary = "a device"', ""), "incomplete or malformed: 'summary'"),
        (('name = "mine"', "name = "), "cannot be read"),
        (('name = "mine"', 'name = "mine"\nextends = "nowhere"'), "unknown device profile 'nowhere'"),
    ],
)
def test_a_wrong_profile_is_one_clear_line(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    assert change[0] in MINIMAL
    path = write(tmp_path, MINIMAL.replace(*change))
    with pytest.raises(BadInput) as caught:
        profile.load(path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_profiles_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    first, second = tmp_path / "a.toml", tmp_path / "b.toml"
    write(tmp_path, MINIMAL.replace('name = "mine"', f'name = "a"\nextends = "{second}"'), "a.toml")
    write(tmp_path, MINIMAL.replace('name = "mine"', f'name = "b"\nextends = "{first}"'), "b.toml")
    with pytest.raises(BadInput, match="in a circle"):
        profile.load(str(first))


@pytest.mark.parametrize("name", ["trn9", "nowhere.toml", ""])
def test_an_unknown_profile_is_bad_input(name: str) -> None:
    with pytest.raises(BadInput):
        profile.load(name)


def test_quirks_are_data_with_a_known_effect(tmp_path: Path) -> None:
    quirk = '[quirk.odd]\noperators = ["relu"]\neffect = "nan-becomes-zero"\nsource = "ours"\n'
    (loaded,) = profile.load(write(tmp_path, MINIMAL + quirk)).quirks
    assert (loaded.operators, loaded.effect) == (("relu",), profile.Effect.NAN_BECOMES_ZERO)
    with pytest.raises(BadInput, match="'explodes' is not a valid Effect"):
        profile.load(write(tmp_path, MINIMAL + quirk.replace("nan-becomes-zero", "explodes")))
    with pytest.raises(BadInput, match="has no source"):
        profile.load(write(tmp_path, MINIMAL + quirk.replace('source = "ours"\n', "")))


def test_a_rule_without_a_text_has_that_of_its_code(tmp_path: Path) -> None:
    rule = '[refuse.complex]\noperators = ["mm"]\nwhere = ["graph"]\ncode = "NCC_EVRF004"\nsource = "ours"\n'
    (loaded,) = profile.load(write(tmp_path, MINIMAL + rule)).refusals
    assert loaded.message == "[NCC_EVRF004] complex data types are not supported"
    for broken in (rule.replace("NCC_EVRF004", "NCC_EVRF999"), rule.replace('code = "NCC_EVRF004"\n', "")):
        with pytest.raises(BadInput, match="the rule 'complex' has"):
            profile.load(write(tmp_path, MINIMAL + broken))


def test_codes_are_those_of_compiler_and_runtime() -> None:
    from neuronqa.device.neuron import codes

    assert len([code for code in codes.texts() if code.startswith("NCC_E")]) >= 40
    assert codes.runtime_error(1003) == "NRT status 1003 (numerical error (NaN))"
    assert codes.runtime_error(77) == "NRT status 77"


def test_only_the_ideal_profile_computes_as_the_cpu_does() -> None:
    for name in profile.names():
        behaviour = profile.load(name).behaviour
        assert (behaviour.matmul_tile == 0 and not behaviour.function_tables) == (name == "ideal")
