"""Which operator and which line of source a failing finding speaks of."""

from __future__ import annotations

import linecache
import re
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import neuronqa
from neuronqa.checkup.value import Blocker, Place
from neuronqa.domain.case import Variant
from neuronqa.domain.finding import Finding
from neuronqa.domain.outcome import Check

_FRAME: Final = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+),? in (?P<function>[^\s,]+)')
_BREAK: Final = re.compile(r"(?P<file>[^:]+):(?P<line>\d+) (?P<function>\S+)")
_OPERATOR: Final = re.compile(r"\b\w+::\w+(?:\.\w+)?")
_INSTALLED: Final = tuple({sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib")})


def blocker(variant: Variant, found: Finding, places: Mapping[str, Any], source: str) -> Blocker:
    """`places` says where the model calls each operator; `source` is the person's own file, if there is one."""
    evidence = found.evidence
    op = operator_of(found)
    texts = [str(evidence.get(name, "")) for name in ("traceback", "stack", "message")]
    place = _of_text(texts, source) or _of_break(evidence, source) or _of_operator(op, places)
    return Blocker(
        variant=variant,
        check=found.check,
        outcome=found.outcome,
        words=str(evidence.get("words", "")),
        op=op,
        place=place,
        message=str(evidence.get("message", "")),
        traceback=_own_part(str(evidence.get("traceback") or evidence.get("stack", ""))),
    )


def placed(blockers: Sequence[Blocker]) -> tuple[Blocker, ...]:
    """Where nothing was compiled, the line is that of the graph break in the same run that left nothing to compile."""
    breaks = {one.variant: one.place for one in blockers if one.check is Check.GRAPH}
    return tuple(
        replace(one, place=breaks.get(one.variant)) if one.check is Check.COMPILE and one.place is None else one
        for one in blockers
    )


def operator_of(found: Finding) -> str:
    """The operator a finding names, or an empty string."""
    told = found.evidence.get("op")
    if isinstance(told, str) and told:
        return told
    if found.check in (Check.RUN, Check.FALLBACK, Check.PARITY, Check.COMPILE, Check.TRAIN):
        named = _OPERATOR.search(found.outcome.detail)
        return named.group() if named else ""
    return ""


def _of_text(texts: Sequence[str], source: str) -> Place | None:
    """The innermost frame in a person's own files, else in what is built on torch, of the first text that has one."""
    for text in texts:
        frames = [f for f in _frames(text) if not f.file.startswith((*_inner(), "<"))]
        own = [f for f in frames if f.file == source or not f.file.startswith(_INSTALLED)]
        chosen = own or frames
        if chosen:
            # faulthandler writes the most recent call first.
            return _with_code(chosen[0] if "most recent call first" in text else chosen[-1])
    return None


def _inner() -> tuple[str, ...]:
    """Frames below these say nothing about a model. torch is found, not imported."""
    torch = find_spec("torch")
    package = str(Path(neuronqa.__file__).parent)
    return (package,) if torch is None or torch.origin is None else (package, str(Path(torch.origin).parent))


def _frames(text: str) -> Iterator[Place]:
    for found in _FRAME.finditer(text):
        yield Place(file=found["file"], line=int(found["line"]), function=found["function"])


def _of_break(evidence: Mapping[str, Any], source: str) -> Place | None:
    """Where dynamo gave up. It tells files of one's own by name alone."""
    breaks = evidence.get("breaks")
    if not isinstance(breaks, list) or not breaks:
        return None
    found = _BREAK.fullmatch(str(breaks[0].get("frame", "")))
    if found is None:
        return None
    own = source and Path(source).name == found["file"]
    file = source if own else found["file"]
    return _with_code(Place(file=file, line=int(found["line"]), function=found["function"], progress="forward"))


def _of_operator(op: str, places: Mapping[str, Any]) -> Place | None:
    """Where an operator is called first; an overload of the same name will do."""
    if not op:
        return None
    base = op.rpartition(".")[0] or op
    alike = [name for name in places if (name.rpartition(".")[0] or name) == base]
    told = places.get(op) or (places[alike[0]] if alike else None)
    if told is None:
        return None
    file, line, function, progress = told
    return _with_code(Place(file=str(file), line=int(line), function=str(function), progress=str(progress)))


def _with_code(place: Place) -> Place:
    code = linecache.getline(place.file, place.line).strip()
    return Place(file=place.file, line=place.line, function=place.function, code=code, progress=place.progress)


def _own_part(text: str) -> str:
    """A stack that faulthandler wrote, without our frames; a traceback has none."""
    ours = f'File "{Path(neuronqa.__file__).parent}'
    return "\n".join(line for line in text.splitlines() if not line.strip().startswith(ours)).strip()
