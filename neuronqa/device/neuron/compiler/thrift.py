"""Spares dynamo work whose only product is a log line that is off.

For every operator it traces, dynamo looks up the name of the enclosing function, and tokenises the whole source file to
do so: 8 % of the time to compile a small model. The name goes into the `trace_call` log and nowhere else
(torch/_dynamo/output_graph.py, `_create_proxy`).
"""

from __future__ import annotations

import logging
from typing import Any

from torch._dynamo import funcname_cache


class _NoNames(dict[str, Any]):
    """Knows every file, and no function in it."""

    def __contains__(self, _file: object) -> bool:
        return True

    def __getitem__(self, _file: str) -> dict[int, str]:
        return {}


def spare_function_names() -> None:
    """Leave function names out, unless the log that shows them is on."""
    if not logging.getLogger("torch._dynamo.output_graph.__trace_call").isEnabledFor(logging.DEBUG):
        funcname_cache.cache = _NoNames()
