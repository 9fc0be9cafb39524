"""What every test shares: property tests that draw the same examples everywhere, and nobody's own settings."""

import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "gate",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("gate")


@pytest.fixture(autouse=True, scope="session")
def no_settings_of_mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A developer's own database is never touched by a test, whatever it forgets to name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEURONQA_DB", str(tmp_path_factory.mktemp("unnamed") / "unnamed.db"))
        yield


@pytest.fixture(autouse=True)
def nothing_stays_planted() -> Iterator[None]:
    """A fault is armed until its process ends, and tests share one: whoever leaves it armed fails, not the next."""
    yield
    dispatch = sys.modules.get("torch.utils._python_dispatch")
    if dispatch is None:
        return
    left = []
    while (mode := dispatch._get_current_dispatch_mode()) is not None:
        left.append(type(mode).__name__)
        mode.__exit__(None, None, None)
    assert not left, "a dispatch mode is left behind"
