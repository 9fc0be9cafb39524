"""The offline edition of top-100k, really generated from the installed transformers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from neuronqa.catalog import offline, status
from neuronqa.catalog.config import MalformedConfig, parse, stored_text
from neuronqa.catalog.offline import calibration, report
from neuronqa.catalog.snapshot import Snapshot
from neuronqa.domain.catalog import Entry, Source

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def edition(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return Snapshot.open(offline.ensure(tmp_path_factory.mktemp("offline")))


@pytest.fixture(scope="session")
def entries(edition: Snapshot) -> list[Entry]:
    return list(edition.entries())


def test_it_has_a_hundred_thousand_entries_and_calls_itself_synthetic(edition: Snapshot, entries: list[Entry]) -> None:
    assert edition.info.registered == len(entries) == 100_000
    assert edition.info.source is Source.SYNTHETIC
    assert edition.info.name == "top-100k"
    assert len({entry.id for entry in entries}) == 100_000
    assert all(entry.id.startswith("synthetic/") for entry in entries)
    assert all(not entry.base_model or entry.base_model.startswith("synthetic/") for entry in entries)


def test_ranks_and_downloads_fall_together(entries: list[Entry]) -> None:
    assert [entry.rank for entry in entries] == list(range(1, 100_001))
    downloads = [entry.downloads for entry in entries]
    assert downloads == sorted(downloads, reverse=True)


def test_it_keeps_to_every_published_figure(edition: Snapshot) -> None:
    lines = report.compare(calibration.load(), edition)
    assert {line.kind for line in lines} == {"published", "estimate"}
    assert not [line for line in lines if not line.holds]


def test_every_head_class_of_the_installed_transformers_is_there(entries: list[Entry]) -> None:
    script = (
        "from neuronqa.catalog.offline.architectures import heads\nfor h in heads(): print(h.model_type, h.class_name)"
    )
    listed = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout
    wanted = {tuple(line.split()) for line in listed.splitlines()}
    assert len(wanted) > 1_500
    found = {(entry.model_type, name) for entry in entries for name in entry.architectures}
    assert wanted <= found


def test_facts_agree_with_configs(edition: Snapshot, entries: list[Entry]) -> None:
    texts = dict(edition.configs())
    used = {entry.config for entry in entries if entry.config}
    assert used == set(texts)
    for entry in entries:
        if not entry.config or not entry.architectures:
            continue
        value = parse(texts[entry.config])
        assert value["model_type"] == entry.model_type
        assert value["architectures"] == list(entry.architectures)
        assert ("auto_map" in value) == entry.custom_code
        assert ("quantization_config" in value) == bool(entry.quantization)


def test_configs_are_stored_as_any_catalog_stores_them(edition: Snapshot) -> None:
    malformed = 0
    for _, text in edition.configs():
        try:
            parse(text)
        except MalformedConfig:
            malformed += 1
        else:
            assert stored_text(text.encode()) == text
    assert 5 < malformed < 60


def test_every_kind_of_entry_that_facts_can_tell_is_there(entries: list[Entry]) -> None:
    counts = Counter(decided[0].value for entry in entries if (decided := status.from_facts(entry)))
    assert counts.keys() == {
        "gguf_only", "adapter", "quantized", "gated", "no_config", "private_or_removed", "disabled", "non_transformers"
    }  # fmt: skip


def test_the_process_that_asks_imports_neither_torch_nor_transformers(edition: Snapshot) -> None:
    script = (
        "import sys; from pathlib import Path; from neuronqa.catalog import offline\n"
        f"offline.ensure(Path({str(edition.folder.parent)!r}))\n"
        "assert not {'torch', 'transformers', 'ray', 'sqlalchemy', 'huggingface_hub'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


@pytest.mark.full
def test_the_same_seed_gives_the_same_bytes(edition: Snapshot, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    subprocess.run(
        [sys.executable, "-m", "neuronqa.catalog.offline.generate", str(again)],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "77", "LC_ALL": "C"},
        capture_output=True,
    )
    names = sorted(path.name for path in edition.folder.iterdir())
    assert names == sorted(path.name for path in again.iterdir())
    assert [name for name in names if (again / name).read_bytes() != (edition.folder / name).read_bytes()] == []


@pytest.mark.full
def test_it_has_three_thousand_kernel_keys(edition: Snapshot, entries: list[Entry]) -> None:
    undecided = {entry.config for entry in entries if entry.config and status.from_facts(entry) is None}
    asked = "".join(
        json.dumps({"hash": name, "text": text}) + "\n" for name, text in edition.configs() if name in undecided
    )
    told = subprocess.run(
        [sys.executable, "-m", "neuronqa.workload.planner"],
        input=asked,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
    ).stdout
    plans = {plan["hash"]: plan for plan in map(json.loads, told.splitlines())}
    assert plans.keys() == undecided
    statuses = Counter(plans[e.config]["status"] for e in entries if e.config in plans)
    assert len({plan["kernel_key"] for plan in plans.values() if plan["status"] == "eligible"}) >= 3_000
    assert 0.45 < statuses["eligible"] / 100_000 < 0.6
    for name, share in (("unknown_model_type", 0.02), ("remote_code", 0.034), ("config_invalid", 0.006)):
        assert abs(statuses[name] / 100_000 - share) < 0.002, name
