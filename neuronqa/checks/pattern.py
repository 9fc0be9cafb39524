"""Messages as patterns: what stays when everything that differs from one model or run to the next is taken out."""

from __future__ import annotations

import re
from typing import Final

LIMIT: Final = 120
_MASKS: Final = (
    (re.compile(r"\bneuronqa_workload_\w+"), "MODULE"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "ADDRESS"),
    (re.compile(r"(?:/[\w.+-]+){2,}"), "PATH"),
    (re.compile(r"\b[0-9a-f]{12,}\b"), "HASH"),
    (re.compile(r"-?\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b"), "N"),
    (re.compile(r"N(?:, N)+"), "N"),
)


def masked(text: str) -> str:
    """The first sentence of `text`, without numbers, addresses, paths and hashes."""
    line = text.strip().partition("\n")[0]
    sentence = re.split(r"(?<=\w)[.!?](?:\s|$)", line, maxsplit=1)[0]
    for mask, word in _MASKS:
        sentence = mask.sub(word, sentence)
    return sentence[:LIMIT].strip()
