"""Where things are: bundled folders, the cache, and errors that say so in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuronqa import bundled, cachedir, errors
from neuronqa.errors import (
    BadInput,
    DatabaseAway,
    EnvironmentFault,
    ExitCode,
    InvariantBroken,
    NeuronQAError,
    NodeUnsound,
    UsageError,
)
from tests.powerless import powerless


def test_the_bundled_folders_are_there_and_no_other_name_is() -> None:
    for name in bundled.FOLDERS:
        assert bundled.folder(name).is_dir()
    with pytest.raises(ValueError, match="secrets"):
        bundled.folder("secrets")


def test_an_installation_without_a_folder_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "neuronqa").mkdir()
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "__init__.py").touch()
    monkeypatch.setattr(bundled, "__file__", str(tmp_path / "neuronqa" / "bundled.py"))
    with pytest.raises(EnvironmentFault, match="reinstall") as caught:
        bundled.folder("db")
    assert str(tmp_path / "db") in str(caught.value)


def test_a_wheels_own_folder_goes_before_one_that_happens_to_lie_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "neuronqa" / "_bundled" / "db"
    own.mkdir(parents=True)
    (tmp_path / "db").mkdir()
    monkeypatch.setattr(bundled, "__file__", str(tmp_path / "neuronqa" / "bundled.py"))
    assert bundled.folder("db") == own


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("NEURONQA_CACHE", raising=False)
    assert cachedir.cache_dir() == tmp_path / "home" / ".cache" / "neuronqa"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cachedir.cache_dir() == tmp_path / "xdg" / "neuronqa"
    monkeypatch.setenv("NEURONQA_CACHE", str(tmp_path / "own" / "deep"))
    assert cachedir.cache_dir() == tmp_path / "own" / "deep"
    assert (tmp_path / "own" / "deep").is_dir()


def test_a_cache_that_cannot_be_used_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "closed").mkdir(mode=0o555)
    for place in ("file", "file/below", "closed/below", "closed", "x" * 300):
        monkeypatch.setenv("NEURONQA_CACHE", str(tmp_path / place))
        with powerless(), pytest.raises(EnvironmentFault, match="NEURONQA_CACHE"):
            cachedir.cache_dir()


def test_a_user_without_a_home_is_told_to_name_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "NEURONQA_CACHE"):
        monkeypatch.delenv(name, raising=False)

    def nobody() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", nobody)
    with pytest.raises(EnvironmentFault, match="NEURONQA_CACHE"):
        cachedir.cache_dir()


def test_an_error_is_one_line_of_what_where_and_what_to_do() -> None:
    assert str(BadInput("it broke")) == "it broke"
    assert str(BadInput("it\nbroke", where="/a\tfile", hint="mend\r\nit")) == "it broke (/a file) - mend it"


def test_every_error_has_an_exit_code_of_the_documented_ones() -> None:
    codes = {
        NeuronQAError: ExitCode.ENVIRONMENT,
        UsageError: ExitCode.USAGE,
        BadInput: ExitCode.BAD_INPUT,
        EnvironmentFault: ExitCode.ENVIRONMENT,
        DatabaseAway: ExitCode.ENVIRONMENT,
        NodeUnsound: ExitCode.ENVIRONMENT,
        InvariantBroken: ExitCode.CANNOT_TELL,
    }
    for kind, code in codes.items():
        assert kind("x").exit_code is code
    tree = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, NeuronQAError)]
    assert set(tree) == set(codes)
    assert [int(code) for code in ExitCode] == [0, 1, 2, 3, 4, 5, 130]
