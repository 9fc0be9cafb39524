"""A broken factory gets one clear line and its own traceback, never ours."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import neuronqa
from neuronqa.checkup.examine import Examiner
from neuronqa.checkup.target import of_factory
from neuronqa.checkup.text import as_text, one_line
from neuronqa.checkup.value import Checkup
from neuronqa.domain.case import Variant
from neuronqa.domain.outcome import Rung
from neuronqa.domain.policy import Limits, Policy
from neuronqa.errors import ExitCode

FILE = Path(__file__).with_name("broken.py")
OURS = str(Path(neuronqa.__file__).parent)
EAGER = Variant.parse("eager/fp32/train")
POLICY = Policy(name="eager", required=dict.fromkeys((Rung.BUILDS, Rung.RUNS, Rung.PARITY), (EAGER,)))

SAID = {
    "raises": ("KeyError", "missing", "broken.py:", "deeper"),
    "hangs": ("build:timeout", "broken.py:", "hangs"),
    "elsewhere": ("parameter 0.weight is on meta", "make everything on the CPU"),
    "input_elsewhere": ("an input is on meta", "make everything on the CPU"),
    "wrong_device": ("build:error", "broken.py:", "wrong_device"),
    "no_gradient": ("reference:no-gradient", "does not depend on any parameter"),
    "frozen": ("reference:", "no output depends on a parameter"),
    "leaves": ("build:crash", "exit 3", "broken.py:", "leaves"),
    "leaves_at_once": ("build:crash", "exit 3"),
    "nothing": ("nothing returned nothing, not (module, inputs)",),
    "only_a_module": ("only_a_module returned a Sequential, not (module, inputs)",),
    "no_module": ("no_module returned a dict where its module should be",),
    "nothing_to_train": ("build:vacuous", "nothing to train"),
    "wrong_inputs": ("inputs:error", "the inputs do not fit forward(image", "missing a required argument"),
    "wrong_shape": ("reference:error", "mat1 and mat2"),
    "vector_loss": ("reference:error", "the loss must be a tensor of one element, not a tensor of shape (3,)"),
    "loss_of_text": ("returned a str where its loss should be",),
    "strange_optimizer": ("returned a str where its optimizer should be",),
    "optimizer_of_another": ("it holds parameters that the module does not",),
    "endless_recursion": ("RecursionError", "broken.py:", "endless_recursion"),
    "eats_memory": ("build:oom",),
    "not_a_number": ("reference:non-finite", "NaN or Inf"),
    "interrupts": ("build:crash", "exit 130"),
    "absent": ("has no function absent",),
    "something": ("has no function something",),
}


def check(examiner: Examiner, name: str) -> Checkup:
    limits = Limits(deadline_s=1.5 if name == "hangs" else 20.0, memory_mb=1024)
    return examiner.examine(of_factory(FILE, name), replace(POLICY, limits=limits))


@pytest.mark.parametrize("name", SAID)
def test_a_broken_factory_gets_one_clear_line_and_its_own_traceback(examiner: Examiner, name: str) -> None:
    checkup = check(examiner, name)
    line, text = one_line(checkup), as_text(checkup)
    assert "\n" not in line
    for words in SAID[name]:
        assert words in line
    assert OURS not in text
    assert len(text) < 4000
    assert checkup.unfit
    assert checkup.exit_code is ExitCode.BAD_INPUT


def test_a_traceback_begins_in_the_persons_own_file(examiner: Examiner) -> None:
    told = check(examiner, "raises").first
    assert told is not None
    assert told.place is not None
    assert (told.place.function, told.place.code) == ("deeper", 'return table["missing"]')
    lines = told.traceback.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert [line.partition(", in ")[2] for line in lines if line.startswith("  File")] == ["raises", "deeper"]


def test_a_factory_that_prints_megabytes_is_only_loud(examiner: Examiner) -> None:
    checkup = check(examiner, "prints_a_lot")
    assert checkup.green, as_text(checkup)
    assert len(as_text(checkup)) < 4000
