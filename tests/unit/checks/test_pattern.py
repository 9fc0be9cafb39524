"""What differs from one model to the next is no part of a cause."""

import pytest

from neuronqa.checks.pattern import masked

TABLE = [
    ("ValueError: this factory makes nothing", "ValueError: this factory makes nothing"),
    ("num_channels (16) must be divisible by num_groups (32)", "num_channels (N) must be divisible by num_groups (N)"),
    ("split_sizes=[8, 12, 12] do not fit 16. Found at line 3", "split_sizes=[N] do not fit N"),
    ("no module neuronqa_workload_b2e6ff01 at /tmp/x1/y2.py", "no module MODULE at PATH"),
    ("<object at 0x7f3a12> failed\nmore", "<object at ADDRESS> failed"),
    ("off by -1.5e-07 at key deadbeefdeadbeef", "off by N at key HASH"),
    ("index_put in layer2.conv is refused", "index_put in layer2.conv is refused"),
    ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "pattern"), TABLE)
def test_a_message_becomes_its_pattern(text: str, pattern: str) -> None:
    assert masked(text) == pattern


def test_a_pattern_is_short() -> None:
    assert len(masked("word " * 100)) <= 120
