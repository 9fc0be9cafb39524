"""Views as HTML: everything is escaped, made visible, and no undefined name is forgiven."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from neuronqa.dashboard.plain import finalize
from neuronqa.dashboard.view import Column, Form
from neuronqa.domain.identity import canonical_json
from neuronqa.domain.outcome import Kind
from neuronqa.report.text import percent, span
from neuronqa.report.value import VERDICTS_ARE_FOR


class Renderer:
    """The templates below a folder, and the static files they name."""

    def __init__(self, base: Path) -> None:
        self._static = {
            path.relative_to(base / "static").as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()[:12]
            for path in (base / "static").rglob("*")
            if path.is_file()
        }
        self._environment = Environment(
            loader=FileSystemLoader(base / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=finalize,
        )
        self._environment.filters |= {
            "percent": percent,
            "span": span,
            "count": count,
            "nbytes": nbytes,
            "ratio": ratio,
            "when": when,
            "chart": chart,
            "standing": standing,
            "shapes": shapes,
            "pretty": pretty,
            "urlencode": urlencode,
        }
        self._environment.globals |= {"verdicts_are_for": VERDICTS_ARE_FOR, "static": self.static, "shown": shown}

    def static(self, name: str) -> str:
        """The address of a static file: it changes with the file, so that it may be kept for ever."""
        return f"/static/{name}?{self._static[name]}"

    def html(self, template: str, values: Mapping[str, Any]) -> str:
        return self._environment.get_template(template).render(**values)


def count(n: float | None) -> str:
    return "–" if n is None else f"{n:,.0f}"


def nbytes(n: float | None) -> str:
    """In binary units."""
    if n is None:
        return "–"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024:
            return f"{n:,.0f} {unit}" if unit == "B" else f"{n:,.1f} {unit}"
        n /= 1024
    return f"{n:,.1f} TiB"


def ratio(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def when(seconds: float | None) -> str:
    """UTC, to the minute."""
    return "–" if not seconds else time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


def chart(spec: Mapping[str, Any]) -> str:
    """For a `data-` attribute."""
    return canonical_json(spec)


_WORDS = {"green": "pass", "fixed": "pass", "run": "not-run", "unknown": "not-run"}
"""Of states and changes, which are no kinds: `newly run`, `not run`, ..."""


def standing(kind: str) -> str:
    """The class a kind of outcome is coloured by: pass, fail or not-run."""
    word = kind.rpartition(" ")[2]
    if word in _WORDS:
        return _WORDS[word]
    try:
        return Kind(word).rules.standing.value
    except ValueError:
        return "fail"


def shapes(value: Any) -> str:
    """`2x3, 3x2`"""
    return ", ".join("×".join(str(n) for n in shape) or "scalar" for shape in value or ()) or "–"


def urlencode(text: object) -> str:
    """For a path or a query. What no URL can say is spelt out, and leads nowhere."""
    return quote(str(text), safe=":", errors="backslashreplace")


def pretty(value: Any) -> str:
    """JSON to be read."""
    return json.dumps(value, indent=2, ensure_ascii=True, sort_keys=True)


def shown(column: Column, row: Mapping[str, Any]) -> Any:
    """A cell as text."""
    value = row[column.name]
    match column.form:
        case Form.COUNT:
            return count(value)
        case Form.BYTES:
            return nbytes(value)
        case Form.RATIO:
            return ratio(value)
        case Form.TIME:
            return when(value)
        case Form.SHAPES:
            return shapes(value)
        case Form.TEXT | Form.MONO | Form.OUTCOME:
            return "" if value is None else str(value)
