"""The command line, run in this process as a shell would run it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from neuronqa.cli import main, output


@dataclass(frozen=True)
class Said:
    """What a command left."""

    code: int
    out: str
    err: str


Command = Callable[..., Said]


@pytest.fixture
def neuronqa(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    for console in (output.out, output.err):
        monkeypatch.setattr(console, "width", 200)

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["neuronqa", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main.run()
        printed = capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Said(left.value.code, printed.out, printed.err)

    return run
