"""Building the device: found again, built once, and one clear line when it cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from neuronqa.device.neuron import build, vector
from neuronqa.domain.build import BuildOrder
from neuronqa.errors import BadInput, EnvironmentFault

ORDER = BuildOrder(device="neuron", profile="trn2-sdk2.33")


def test_the_key_changes_with_everything_that_decides_the_binary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = build.recipe()
    assert before.abi == "cxx11"
    assert "2.13" in before.torch
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    (tmp_path / "a.cpp").write_text("int a;")
    first = build.recipe().key
    (tmp_path / "a.cpp").write_text("int b;")
    assert len({before.key, first, build.recipe().key}) == 3
    monkeypatch.setattr(build, "FLAGS", ("-O2",))
    assert build.recipe().flags == ("-O2",)


def test_a_built_device_is_found_again(tmp_path: Path) -> None:
    key = build.recipe().key
    target = tmp_path / "device" / key / f"{build.MODULE}.so"
    target.parent.mkdir(parents=True)
    target.write_bytes(b"")
    assert build.ensure(tmp_path) == build.BuiltBinary(target, key, 0.0)


def small_sources(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A device that compiles in no time, or not at all."""
    folder.mkdir()
    (folder / "small.cpp").write_text(text)
    monkeypatch.setattr(build, "SOURCES", folder)


def test_a_build_that_fails_is_one_line_with_the_compilers_first_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_sources(tmp_path / "src", monkeypatch, "#error planted")
    with pytest.raises(EnvironmentFault) as caught:
        build.ensure(tmp_path / "cache")
    assert "planted" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not list((tmp_path / "cache" / "device").glob("*/*.so"))


def test_concurrent_builders_build_once(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "small.cpp").write_text('extern "C" int answer() { return 42; }')
    code = (
        "import sys, json; from pathlib import Path; from neuronqa.device.neuron import build\n"
        "build.SOURCES = Path(sys.argv[1]); built = build.ensure(Path(sys.argv[2]))\n"
        "print(json.dumps([str(built.path), built.seconds > 0]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "src"), str(tmp_path / "cache")]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    answers = [json.loads(child.communicate()[0]) for child in children]
    assert len({path for path, _ in answers}) == 1
    assert sorted(built for _, built in answers) == [False, False, True]
    assert not list((tmp_path / "cache" / "device").glob(".building-*"))


def test_no_compiler_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", str(tmp_path / "nothing"))
    with pytest.raises(EnvironmentFault, match="there is no C\\+\\+ compiler"):
        build.ensure(tmp_path)


def test_no_python_headers_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
    with pytest.raises(EnvironmentFault, match="headers of this Python are missing"):
        build.ensure(tmp_path / "cache")


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(EnvironmentFault, match="cannot be stored"):
        build.ensure(tmp_path / "file")


def test_the_module_prints_json_and_exits_4_without_a_compiler() -> None:
    environment = {**os.environ, "CXX": "/nothing"}
    command = [sys.executable, "-m", "neuronqa.device.neuron.build", "--json"]
    finished = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert finished.returncode == 4
    assert len(finished.stderr.splitlines()) == 1


def test_the_vector_names_each_part_and_needs_no_torch() -> None:
    code = (
        "import sys, json; from dataclasses import asdict\n"
        "from neuronqa.domain.build import BuildOrder; from neuronqa.device.neuron.vector import build_vector\n"
        "print(json.dumps(asdict(build_vector(BuildOrder(device='neuron', profile='ideal')))))\n"
        "assert 'torch' not in sys.modules"
    )
    told: dict[str, Any] = json.loads(subprocess.check_output([sys.executable, "-c", code]))
    assert told["profile"] == "ideal"
    assert told["versions"]["torch"].startswith("2.13")
    assert told["versions"]["cpu"]
    assert all(told[part] for part in ("adapter", "profile_sha256", "shim", "passes"))


def test_a_fault_an_overlay_and_a_forced_operator_each_change_the_vector(tmp_path: Path) -> None:
    overlay = tmp_path / "overlay.py"
    overlay.write_text('@kernel("aten::mm")\ndef mm(a, b):\n    return a\n')
    orders = [
        ORDER,
        BuildOrder(device="neuron", profile="trn2-sdk2.33", fault={"kind": "scale"}),
        BuildOrder(device="neuron", profile="trn2-sdk2.33", fault={"kind": "scale", "factor": 1.5}),
        BuildOrder(device="neuron", profile="trn2-sdk2.33", overlays=(str(overlay),)),
        BuildOrder(device="neuron", profile="trn2-sdk2.33", forced_cpu=("aten::mm",)),
        BuildOrder(device="neuron", profile="ideal"),
    ]
    hashes = [vector.build_vector(order).hash for order in orders]
    assert len(set(hashes)) == len(orders)
    overlay.write_text('@kernel("aten::mm")\ndef mm(a, b):\n    return b\n')
    assert vector.build_vector(orders[3]).hash != hashes[3]


def test_an_unknown_profile_is_bad_input() -> None:
    with pytest.raises(BadInput, match="unknown device profile"):
        vector.build_vector(BuildOrder(device="neuron", profile="trn9"))
