"""Plans made here leave nothing behind in a developer's own cache."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def a_cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURONQA_CACHE", str(tmp_path / "cache"))
