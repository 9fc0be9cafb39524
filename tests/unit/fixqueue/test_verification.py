"""What verification decides before anything runs."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import pytest

from neuronqa.domain.build import BuildOrder
from neuronqa.fixqueue import sandbox, verification
from neuronqa.fixqueue.reason import Reason
from neuronqa.fixqueue.sandbox import NotEnforced
from neuronqa.fixqueue.verdict import Conclusion, Form, Stage, Submission, Target, Verdict
from neuronqa.sweep.policies import load_policy

KERNEL = """import torch
from neuronqa.device.neuron.overlay import kernel


@kernel("aten::maximum")
def maximum(a, b):
    return torch.where(a > b, a, b)
"""
OTHER = KERNEL.replace("maximum", "minimum").replace(">", "<")


class NoSandbox:
    """A machine that cannot shut anything in."""

    def __init__(self, device: str) -> None:
        self.device = device

    def __enter__(self) -> Any:
        raise NotEnforced("a network namespace")

    def __exit__(self, *_: object) -> None:
        return None


def verdict(folder: Path, form: Form, content: str, base: dict[str, str] | None = None) -> Verdict:
    return verification.verify(
        Submission(form=form, content=content, base=base or {}),
        Target(key="k", ops=("aten::maximum",)),
        base=BuildOrder(device="neuron", profile="ideal"),
        policy=load_policy("gating"),
        seed=b"secret",
        folder=folder,
    )


def diff(old: str, new: str, name: str = "item_1.py") -> str:
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{name}", f"b/{name}")
    return "".join(lines)


@pytest.fixture(autouse=True)
def _no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "Sandbox", NoSandbox)


def test_where_nothing_can_be_shut_in_nothing_runs_and_nothing_is_concluded(tmp_path: Path) -> None:
    said = verdict(tmp_path, Form.OVERLAY, KERNEL)
    assert (said.conclusion, said.stage, said.reason) == (Conclusion.INCONCLUSIVE, Stage.LOADS, Reason.NOT_ENFORCED)


@pytest.mark.parametrize(
    ("form", "content", "base", "reason"),
    [
        (Form.OVERLAY, "import os\n" + KERNEL, {}, Reason.SURROUNDINGS),
        (Form.OVERLAY, OTHER, {}, Reason.UNRELATED_KERNEL),
        (Form.DIFF, "nonsense", {}, Reason.PATCH_REFUSED),
        (Form.DIFF, diff(OTHER, KERNEL), {"item_1.py": OTHER}, Reason.BREAKS_ANOTHER),
        (Form.DIFF, diff(OTHER, OTHER + "import os\n"), {"item_1.py": OTHER}, Reason.SURROUNDINGS),
        (Form.DIFF, diff(OTHER, KERNEL, "../item_1.py"), {"item_1.py": OTHER}, Reason.PATH_OUTSIDE),
    ],
)
def test_what_breaks_the_rules_is_rejected_before_it_runs(
    form: Form, content: str, base: dict[str, str], reason: Reason, tmp_path: Path
) -> None:
    said = verdict(tmp_path, form, content, base)
    assert (said.conclusion, said.stage, said.reason) == (Conclusion.REJECTED, Stage.POLICY, reason)
    assert said.shown()["text"] == reason.text


def test_a_build_is_a_person_s_to_decide(tmp_path: Path) -> None:
    said = verdict(tmp_path, Form.BUILD, "/some/wheel.whl")
    assert (said.conclusion, said.stage) == (Conclusion.NEEDS_HUMAN, Stage.PERSON)


def test_what_an_agent_is_shown_leaves_out_notes_and_measurements() -> None:
    said = Verdict(
        conclusion=Conclusion.REJECTED,
        stage=Stage.SIBLINGS,
        reason=Reason.VALUES,
        note="LlamaForCausalLM",
        measured={"cases": 9},
    )
    assert set(said.shown()) == {"conclusion", "stage", "reason", "text"}
    assert "Llama" not in str(said.shown())


STATE = {
    "uid": 2**31 - 7,
    "user_space": "user:[1]",
    "network_space": "net:[1]",
    "filtered": True,
    "seccomp": "2",
    "no_new_privileges": "1",
    "may_write": False,
    "limits": [1, 1, 1, 1],
}


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({}, []),
        ({"uid": 0, "user_space": str(Path("/proc/self/ns/user").readlink())}, ["a user of its own"]),
        ({"may_write": True}, ["a user of its own"]),
        ({"network_space": str(Path("/proc/self/ns/net").readlink())}, ["a network namespace"]),
        ({"seccomp": "0"}, ["a filter on system calls"]),
        ({"filtered": False}, ["a filter on system calls"]),
        ({"no_new_privileges": "0"}, ["no new privileges"]),
        ({"limits": [1, -1, 1, 1]}, ["resource limits"]),
    ],
)
def test_a_sandbox_names_what_it_does_not_enforce(change: dict[str, Any], missing: list[str]) -> None:
    assert sandbox.lacking({**STATE, **change}) == missing
