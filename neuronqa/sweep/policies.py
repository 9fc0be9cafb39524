"""Policies as files: the bundled ones by name, anybody's own by path; and the gate an answer must clear."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from neuronqa.bundled import folder
from neuronqa.domain.case import Dtype, Mode
from neuronqa.domain.ladder import Gate
from neuronqa.domain.outcome import Rung
from neuronqa.domain.policy import Policy
from neuronqa.errors import BadInput, ExitCode, UsageError


def load_policy(name_or_path: str) -> Policy:
    """A bundled policy by name, or a TOML file by path. Raises BadInput naming what is wrong with it."""
    bundled = {path.stem: path for path in (folder("catalogs") / "policies").glob("*.toml")}
    path = bundled.get(name_or_path, Path(name_or_path))
    try:
        return Policy.from_json(tomllib.loads(path.read_text("utf-8")))
    except (FileNotFoundError, IsADirectoryError) as error:
        hint = f"choose one of {', '.join(sorted(bundled))}, or name a TOML file"
        raise BadInput(f"there is no policy {name_or_path!r}", hint=hint) from error
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(f"the policy cannot be read: {error}", where=str(path), hint="see catalogs/policies") from error


@dataclass(frozen=True, kw_only=True)
class Narrowing:
    """Variants a person chose not to run. Their cases stay required, so they count as not run."""

    mode: Mode | None = None
    dtype: Dtype | None = None

    @property
    def partial(self) -> bool:
        return self.mode is not None or self.dtype is not None

    def keeps(self, mode: Mode, dtype: Dtype) -> bool:
        """Is a case of this mode and dtype run at all?"""
        return (self.mode is None or mode is self.mode) and (self.dtype is None or dtype is self.dtype)


_GATE = re.compile(r"\s*(?P<rung>[a-z-]+)\s*(?:>=)\s*(?P<rate>[0-9]+(?:\.[0-9]+)?)\s*(?P<percent>%?)\s*")


@dataclass(frozen=True, kw_only=True)
class GateExpression:
    """`green>=80%`, or several joined by `,`: every one must hold."""

    text: str
    floors: tuple[tuple[Rung, float], ...]

    @classmethod
    def parse(cls, text: str, policy: Policy) -> GateExpression:
        """`green` means the policy's highest rung. Raises UsageError for what does not parse or is never asked."""
        floors = []
        for part in text.split(","):
            match = _GATE.fullmatch(part)
            if match is None:
                raise UsageError(f"the gate {part.strip()!r} does not parse", hint="write e.g. --gate 'green>=80%'")
            rate = float(match["rate"]) / (100.0 if match["percent"] else 1.0)
            if rate > 1.0:
                raise UsageError(f"the gate asks for more than everything: {part.strip()!r}", hint="did you mean %?")
            floors.append((_rung(match["rung"], policy), rate))
        return cls(text=text, floors=tuple(floors))

    def judge(self, gates: tuple[Gate, ...]) -> ExitCode:
        """DONE if every low end clears its floor, GATE_MISSED if a high end cannot, else CANNOT_TELL."""
        by_rung = {gate.rung: gate for gate in gates}
        verdict = ExitCode.DONE
        for rung, floor in self.floors:
            gate = by_rung[rung]
            if gate.low is None or gate.high is None:
                verdict = ExitCode.CANNOT_TELL
            elif gate.high < floor:
                return ExitCode.GATE_MISSED
            elif gate.low < floor:
                verdict = ExitCode.CANNOT_TELL
        return verdict


def _rung(word: str, policy: Policy) -> Rung:
    if word == "green":
        return policy.rungs[-1]
    asked = {rung.value: rung for rung in policy.rungs}
    if word not in asked:
        raise UsageError(
            f"policy {policy.name!r} asks for no rung {word!r}", hint=f"choose green or one of {', '.join(asked)}"
        )
    return asked[word]
