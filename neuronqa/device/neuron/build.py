"""Builds the device's compiled part once per PyTorch build and compiler, and finds it again.

`python -m neuronqa.device.neuron.build --json` prints `{"path", "key", "seconds"}`. The caller needs no torch: it is
imported only where something has to be compiled.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from neuronqa import cachedir
from neuronqa.domain.identity import content_hash
from neuronqa.errors import EnvironmentFault, NeuronQAError

SOURCES: Final = Path(__file__).with_name("csrc")
MODULE: Final = "neuronqa_neuron"
FLAGS: Final = ("-O1", "-Wall")
"""No -march=native: the binary is shared between the machines of a fleet."""


@dataclass(frozen=True, slots=True)
class BuiltBinary:
    """A built device. `seconds` is 0 when it was found and not made."""

    path: Path
    key: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides the bytes of the binary."""

    torch: str
    """Version and commit."""
    abi: str
    python: str
    compiler: str
    flags: tuple[str, ...]
    source: str
    """SHA-256 over names and contents."""

    @property
    def key(self) -> str:
        return content_hash(asdict(self))


def recipe() -> Recipe:
    """Look at this machine. Raises EnvironmentFault where torch or a compiler is missing."""
    torch_folder = _torch_folder()
    version = (torch_folder / "version.py").read_text(encoding="utf-8")
    return Recipe(
        torch=" ".join(re.findall(r"^(?:__version__|git_version) = '([^']*)'", version, re.MULTILINE)),
        abi=_abi(torch_folder),
        python=str(sysconfig.get_config_var("SOABI")),
        compiler=_compiler_version(),
        flags=FLAGS,
        source=_source_hash(),
    )


def found(cache: Path | None = None) -> BuiltBinary | None:
    """The device for this machine if it is in the cache."""
    key = recipe().key
    target = (cache or cachedir.cache_dir()) / "device" / key / f"{MODULE}.so"
    return BuiltBinary(target, key, 0.0) if target.is_file() else None


def ensure(cache: Path | None = None) -> BuiltBinary:
    """Return the device for this machine, building it if it is not in the cache yet.

    Safe under concurrent callers: one builds, the others wait, and nobody ever sees half a file. Raises
    EnvironmentFault with one line when it cannot be built.
    """
    folder = (cache or cachedir.cache_dir()) / "device"
    key = recipe().key
    target = folder / key / f"{MODULE}.so"
    if target.is_file():
        return BuiltBinary(target, key, 0.0)
    _check_headers()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / f"{key}.lock"):
            if target.is_file():
                return BuiltBinary(target, key, 0.0)
            started = time.monotonic()
            _build_into(folder, target)
            return BuiltBinary(target, key, round(time.monotonic() - started, 3))
    except OSError as error:
        raise EnvironmentFault(
            f"the device cannot be stored: {error.strerror or error}",
            where=str(folder),
            hint="set NEURONQA_CACHE to a folder you can write",
        ) from error


def _build_into(folder: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=".building-", dir=folder) as scratch:
        _compile(Path(scratch))
        target.parent.mkdir(exist_ok=True)
        (Path(scratch) / f"{MODULE}.so").replace(target)


def _compile(scratch: Path) -> None:
    """Run the compiler in a process of its own, so that torch is not imported into the caller."""
    environment = {**os.environ, "PATH": os.pathsep.join((_ninja_folder(), os.environ.get("PATH", "")))}
    environment["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
    environment.setdefault("MAX_JOBS", str(os.cpu_count() or 1))
    command = [sys.executable, "-c", _COMPILE_SCRIPT, str(scratch), *(str(path) for path in _sources(".cpp"))]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
    if finished.returncode != 0:
        raise EnvironmentFault(
            f"the device does not compile: {_first_error(finished.stdout + finished.stderr)}",
            where=str(SOURCES),
            hint="it needs g++ 10 or later and the headers of this Python and PyTorch",
        )


_COMPILE_SCRIPT: Final = f"""
import sys
from torch.utils.cpp_extension import load
load(
    {MODULE!r},
    sys.argv[2:],
    extra_cflags={list(FLAGS)!r},
    build_directory=sys.argv[1],
    is_python_module=False,
    verbose=True,
)
"""


def _first_error(output: str) -> str:
    for line in output.splitlines():
        if "error" in line.lower():
            return line.strip()[:300]
    lines = output.strip().splitlines()
    return lines[-1].strip()[:300] if lines else "the compiler said nothing"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """The lock goes with the process, however it ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sources(*suffixes: str) -> list[Path]:
    return sorted(path for path in SOURCES.iterdir() if path.suffix in suffixes)


def _source_hash() -> str:
    return hash_of(*_sources(".cpp", ".h"))


def hash_of(*paths: Path) -> str:
    """SHA-256 over names and contents of files; of a folder, its Python files, those below it included."""
    digest = hashlib.sha256()
    for path in paths:
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _torch_folder() -> Path:
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        raise EnvironmentFault("PyTorch is not installed", hint="pip install 'torch~=2.13.0'")
    return Path(spec.origin).parent


def _abi(torch_folder: Path) -> str:
    """Which std::string PyTorch was built with: its smallest library shows it in every name that takes one."""
    core = (torch_folder / "lib" / "libc10.so").read_bytes()
    return "cxx11" if b"NSt7__cxx1112basic_string" in core else "before-cxx11"


def _compiler_version() -> str:
    name = os.environ.get("CXX", "c++")
    command = shutil.which(name)
    if command is None:
        raise EnvironmentFault(
            "there is no C++ compiler", where=name, hint="install g++ (Debian, Ubuntu: apt-get install g++)"
        )
    told = subprocess.run([command, "--version"], capture_output=True, text=True)
    return told.stdout.partition("\n")[0].strip()


def _check_headers() -> None:
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.is_file():
        raise EnvironmentFault(
            "the C headers of this Python are missing",
            where=str(header),
            hint="install them (Debian, Ubuntu: apt-get install python3-dev)",
        )


def _ninja_folder() -> str:
    """The `ninja` package puts its program where PATH may not reach it."""
    try:
        import ninja
    except ImportError:
        return ""
    return str(ninja.BIN_DIR)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build the simulated neuron device.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(arguments)
    try:
        built = ensure()
    except NeuronQAError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    facts = {"path": str(built.path), "key": built.key, "seconds": built.seconds}
    print(json.dumps(facts) if options.json else f"{built.path} ({built.seconds:.1f} s)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
