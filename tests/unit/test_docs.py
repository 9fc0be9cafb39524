"""What the docs say is what the code says."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_outcome_table_in_the_docs_is_printed_from_the_code() -> None:
    printed = subprocess.run(
        [sys.executable, "docs/outcomes.py"], capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    assert printed.returncode == 0, printed.stderr
    written = (ROOT / "docs/outcomes.md").read_text("utf-8")
    assert printed.stdout == written, "accept with: python docs/outcomes.py > docs/outcomes.md"
