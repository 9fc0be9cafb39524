"""Does every failure that a sweep reports show again, by its script, in a fresh process?

Writes the reproduction of every root cause of a sweep with `neuronqa repro --run` and counts those whose cause key
appears in both runs of the script.

    PYTHONPATH=. python tests/benchmark/reproduction.py DATABASE [sweep]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

SECONDS: Final = 900
NEURONQA: Final = (sys.executable, "-m", "neuronqa")


def main(database: str, sweep: list[str]) -> dict[str, Any]:
    listed = said([*NEURONQA, "triage", "list", *sweep, "--db", database, "--json"])
    rows = [one_of(cause, database, sweep) for cause in listed["causes"]]
    return {
        "schema_version": 1,
        "sweep": listed["sweep"],
        "clusters": len(rows),
        "reproduced": sum(row["reproduced"] for row in rows),
        "rows": rows,
    }


def one_of(cause: dict[str, Any], database: str, sweep: list[str]) -> dict[str, Any]:
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        asked = [str(cause["cluster"]), "--run", "--json", "--db", database, "--output", str(Path(place) / "repro")]
        made = said([*NEURONQA, "repro", *asked, *(["--sweep", *sweep] if sweep else [])])
    row = {
        "cluster": cause["cluster"],
        "outcome": cause["outcome"],
        "reproduced": bool(made.get("same") and (made.get("again") or {}).get("same")),
        "grain": made.get("grain"),
        "seen": made.get("seen"),
        "seconds": round(time.monotonic() - began, 1),
    }
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def said(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    try:
        return dict(json.loads(done.stdout))
    except ValueError:
        return {"error": done.stderr[-2000:]}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2:3]), indent=1))
