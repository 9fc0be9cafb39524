"""The offline edition of `top-100k`: for machines that cannot reach the Hub, and called synthetic wherever it is shown.

It is generated from the config classes of the installed transformers, the shapes of well-known published models
(`catalogs/shapes.toml`) and published figures about the Hub's population (`catalogs/calibration.json`). Same seed, same
files and same transformers give the same bytes. Generating imports transformers, so it happens in a child process; this
module imports neither transformers nor torch.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

from neuronqa import bundled
from neuronqa.catalog import whole
from neuronqa.errors import EnvironmentFault

SEED: Final = 0
SIZE: Final = 100_000
DATA: Final = ("calibration.json", "shapes.toml")
FORMAT: Final = ("config.py", "manifest.py", "rows.py", "snapshot.py")
"""What writes and reads a snapshot: an edition of another format is made again, not refused."""


def key() -> str:
    """What the bytes of the edition depend on: seed, generator, format, data and versions."""
    digest = hashlib.sha256(f"{SEED} {SIZE} {sorted(versions().items())}".encode())
    folder = Path(__file__).parent
    sources = [*sorted(folder.glob("*.py")), *(folder.parent / name for name in FORMAT)]
    for path in (*sources, *(bundled.folder("catalogs") / name for name in DATA)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def ensure(cache: Path) -> Path:
    """Return the folder of the edition below `cache`, generating it if it is not there yet.

    Raises EnvironmentFault when transformers is missing or generating fails.
    """
    return whole.make(cache / key(), _generate)


def _generate(folder: Path) -> None:
    command = [sys.executable, "-m", "neuronqa.catalog.offline.generate", str(folder)]
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    quiet = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "PYTHONHASHSEED": "0"}
    child = subprocess.run(
        command, env={**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(paths)}, capture_output=True, text=True
    )
    if child.returncode != 0:
        last = (child.stderr.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
        raise EnvironmentFault(f"the offline edition cannot be generated: {last[:300]}", where=" ".join(command[1:3]))


def versions() -> dict[str, str]:
    """Installed versions that decide which configs there are. Raises EnvironmentFault without transformers."""
    found = {}
    for name in ("transformers", "timm"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if "transformers" not in found:
        raise EnvironmentFault("transformers is not installed", hint="pip install 'transformers~=5.24.0'")
    return found
