"""What a verification draws after a submission is in: from a secret and from the submission itself, so that nobody can
choose a submission to suit the draw.
"""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import Sequence
from typing import TypeVar

Thing = TypeVar("Thing")


def seed(secret: bytes, sha256: str, purpose: str) -> int:
    """A number that nobody without `secret` can tell. The same submission gets the same one."""
    return int.from_bytes(hmac.digest(secret, f"{purpose}:{sha256}".encode(), hashlib.sha256)[:6])


def drawn(pool: Sequence[Thing], count: int, secret: bytes, sha256: str, purpose: str) -> list[Thing]:
    """At most `count` of `pool`, at random."""
    generator = random.Random(seed(secret, sha256, purpose))
    return generator.sample(list(pool), min(count, len(pool)))
