"""Waiting for a database server that is away for a while: restarted, failed over, or cut off."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

from neuronqa.errors import DatabaseAway

PATIENCE_S: Final = 120.0
_PAUSE_S: Final = 1.0
Answer = TypeVar("Answer")

log = logging.getLogger(__name__)


def patiently(do: Callable[[], Answer], patience_s: float = PATIENCE_S, pause_s: float = _PAUSE_S) -> Answer:
    """Do what changes nothing when it is done twice, and again as long as the server is away.

    Raises DatabaseAway when it does not come back in time.
    """
    until = time.monotonic() + patience_s
    while True:
        try:
            return do()
        except DatabaseAway as away:
            if time.monotonic() >= until:
                raise
            log.warning("Waiting for the database: %s.", away, extra={"action": "database_away"})
            time.sleep(pause_s)
