"""Taking submissions in: read within limits, hashed, and kept as they came. Nothing of them is executed here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from neuronqa.errors import BadInput, InvariantBroken
from neuronqa.fixqueue.verdict import Form, Submission

LARGEST: Final = 256 * 1024
"""Bytes of text."""


def of_text(form: Form, content: str, base: Mapping[str, str]) -> Submission:
    """A submission of an overlay or a diff. Raises BadInput for one that is empty or too large."""
    if form is Form.BUILD:
        raise BadInput("a build is handed in by its path, on this machine")
    if not content.strip():
        raise BadInput("the submission is empty")
    if len(content.encode("utf-8", "replace")) > LARGEST:
        raise BadInput(f"the submission has more than {LARGEST:,} bytes", hint="a kernel is short")
    return Submission(form=form, content=content, base=dict(base))


def of_path(path: Path, base: Mapping[str, str]) -> Submission:
    """A submission from a file of this machine: `.py` an overlay, `.diff` and `.patch` a diff, else a build.

    Raises BadInput for what cannot be read.
    """
    try:
        if path.suffix in (".py", ".diff", ".patch"):
            form = Form.OVERLAY if path.suffix == ".py" else Form.DIFF
            with path.open("rb") as file:
                text = file.read(LARGEST + 1)
            return of_text(form, text.decode("utf-8"), base)
        return Submission(form=Form.BUILD, content=_build(path), base={})
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise BadInput("the submission is no text", where=str(path)) from error


def keep(submission: Submission, folder: Path) -> Path:
    """Write a submission below `folder` under the name of its hash; what is there already is the same."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{submission.sha256}.json"
    said = {"form": submission.form.value, "content": submission.content, "base": dict(submission.base)}
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(said), encoding="ascii")
    fresh.replace(path)
    return path


def load(path: Path, sha256: str) -> Submission:
    """A kept submission. Raises InvariantBroken where it is not what was handed in."""
    try:
        submission = _load(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvariantBroken("a submission cannot be read", where=str(path)) from error
    if submission.sha256 != sha256:
        raise InvariantBroken("a submission is not what was handed in", where=str(path))
    return submission


def _load(path: Path) -> Submission:
    said = json.loads(path.read_bytes())
    return Submission(form=Form(said["form"]), content=said["content"], base=said["base"])


def _build(path: Path) -> str:
    """A wheel's path and hash, or the path of an environment with a Python in it."""
    path = path.resolve()
    if path.is_file():
        with path.open("rb") as file:
            return f"{path}\nsha256 {hashlib.file_digest(file, 'sha256').hexdigest()}"
    if (path / "bin" / "python").exists():
        return str(path)
    raise BadInput("neither a wheel nor an environment", where=str(path), hint="a .py, .diff or .whl file, or a folder")
