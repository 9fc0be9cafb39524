"""Does verification believe what it should, and nothing else? Cheats and true fixes with known answers, as data."""

from __future__ import annotations

import hashlib
import secrets
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from neuronqa.bundled import folder
from neuronqa.device.prepare import prepare
from neuronqa.domain.build import BuildOrder
from neuronqa.domain.case import Variant
from neuronqa.domain.policy import Policy
from neuronqa.domain.workload import ModuleSpec, Workload
from neuronqa.errors import EnvironmentFault
from neuronqa.fixqueue import policy as rules
from neuronqa.fixqueue.sandbox import Sandbox
from neuronqa.fixqueue.verdict import CaseRef, Conclusion, Form, Submission, Target, Verdict
from neuronqa.fixqueue.verification import verify
from neuronqa.sweep.controls import HOSTS
from neuronqa.sweep.policies import load_policy

SOURCE: Final = "drills/hosts.py"
HEADER: Final = "import torch\nfrom neuronqa.device.neuron.overlay import kernel\n"
KINDS: Final = ("cheat", "impossible", "fix")
_SHOWN: Final = (5, 7)
_HIDDEN: Final = ((3, 12), (6, 5), (1, 9), (8, 8))
_PASSING: Final = ("add", "logsumexp", "rsub")


@dataclass(frozen=True, kw_only=True)
class Drill:
    """A submission and what has to become of it."""

    kind: str
    name: str
    submission: Submission
    target: Target
    stage: str = ""
    """Where a cheat has to be stopped: `S0` to `S7`."""

    def right(self, verdict: Verdict) -> bool:
        """Is the verdict what it has to be?"""
        if self.kind == "fix":
            return verdict.conclusion is Conclusion.ACCEPTED
        if self.kind == "impossible":
            return verdict.conclusion in (Conclusion.REJECTED, Conclusion.INCONCLUSIVE)
        return verdict.conclusion is Conclusion.REJECTED and verdict.stage.label == self.stage


@dataclass(frozen=True, kw_only=True)
class Drilled:
    """What became of one."""

    kind: str
    name: str
    right: bool
    conclusion: str
    stage: str
    reason: str
    note: str


def drills(names: Iterable[str] = ()) -> list[Drill]:
    """The bundled drills, all or some. Raises EnvironmentFault for a broken installation."""
    path = folder("catalogs") / "drills" / "drills.toml"
    try:
        data = tomllib.loads(path.read_text("utf-8"))
        found = [_drill(kind, row) for kind in KINDS for row in data[kind]]
    except (OSError, tomllib.TOMLDecodeError, KeyError, ValueError) as error:
        raise EnvironmentFault(f"the drills cannot be read: {error}", where=str(path)) from error
    wanted = set(names)
    return [one for one in found if not wanted or one.name in wanted]


def run(
    chosen: Iterable[Drill],
    *,
    profile: str = "trn2-sdk2.33",
    policy: Policy | None = None,
    told: Callable[[Drilled], None] | None = None,
) -> list[Drilled]:
    """Verify each in one warm sandbox, with a secret of its own. Raises NotEnforced where there can be no sandbox."""
    order = prepare(BuildOrder(device="neuron", profile=profile)).order
    limits = policy or load_policy("gating")
    results = []
    with Sandbox() as sandbox, tempfile.TemporaryDirectory(prefix="neuronqa-drill-") as place:
        for number, one in enumerate(chosen):
            verdict = verify(
                one.submission,
                one.target,
                base=order,
                policy=limits,
                seed=secrets.token_bytes(32),
                folder=Path(place) / str(number),
                sandbox=sandbox,
            )
            results.append(_told(one, verdict))
            if told is not None:
                told(results[-1])
    return results


def totals(results: Iterable[Drilled]) -> dict[str, Any]:
    """As `neuronqa queue drill --json` shows them."""
    known = list(results)
    cheats = [one for one in known if one.kind == "cheat"]
    fixes = [one for one in known if one.kind == "fix"]
    impossible = [one for one in known if one.kind == "impossible"]
    return {
        "schema_version": 1,
        "drills": len(cheats),
        "rejected_at_right_stage": sum(one.right for one in cheats),
        "true_fixes": len(fixes),
        "accepted": sum(one.right for one in fixes),
        "impossible": len(impossible),
        "impossible_accepted": sum(not one.right for one in impossible),
        "wrong": [asdict(one) for one in known if not one.right],
    }


def _told(one: Drill, verdict: Verdict) -> Drilled:
    return Drilled(
        kind=one.kind,
        name=one.name,
        right=one.right(verdict),
        conclusion=verdict.conclusion.value,
        stage=verdict.stage.label,
        reason=verdict.reason.value if verdict.reason else "",
        note=verdict.note or verdict.hint,
    )


def _drill(kind: str, row: Mapping[str, Any]) -> Drill:
    top = f"{row['top']}\n" if row.get("top") else ""
    text = f"{top}{HEADER}\n{row['kernel']}"
    op = row.get("op", f"aten::{row['host']}")
    ops = (op,) if op else ()
    outcomes = tuple(row.get("outcomes", (*_fallbacks(op), *map(_fallback, _declared(text)))))
    source = HOSTS if row["host"] == "breaking" else SOURCE
    sha256 = hashlib.sha256((folder("catalogs") / source).read_bytes()).hexdigest()

    def case(host: str, size: tuple[int, int], variant: str, failing: tuple[str, ...]) -> CaseRef:
        arguments = {"op": host, "rows": size[0], "width": size[1]} if source == SOURCE else {}
        factory = "host" if source == SOURCE else host
        spec = ModuleSpec(source=source, source_sha256=sha256, factory=factory, arguments=arguments)
        return CaseRef(workload=Workload(spec), variant=Variant.parse(variant), outcomes=failing, name=f"{host} {size}")

    shown = row.get("variant", "eager/fp32/train")
    half = tuple(text.replace("float32", "bfloat16") for text in outcomes)
    return Drill(
        kind=kind,
        name=row["name"],
        stage=row.get("stage", ""),
        submission=Submission(form=Form.OVERLAY, content=text),
        target=Target(
            key=f"drill:{row['name']}",
            ops=ops,
            members=tuple(case(row["host"], size, shown, outcomes) for size in (_SHOWN,)),
            siblings=(
                *(case(row["host"], size, shown, outcomes) for size in _HIDDEN),
                case(row["host"], _SHOWN, shown.replace("fp32", "bf16"), half),
            ),
            passing=tuple(case(host, _SHOWN, "eager/fp32/train", ()) for host in _PASSING if source == SOURCE),
        ),
    )


def _declared(text: str) -> Iterable[str]:
    try:
        return rules.declared(text)
    except SyntaxError:
        return ()


def _fallback(op: str) -> str:
    return f"fallback:no-kernel({op} float32)"


def _fallbacks(op: str) -> tuple[str, ...]:
    return (_fallback(op),) if op else ()
