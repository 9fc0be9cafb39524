"""Catalogs written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuronqa.catalog import definition
from neuronqa.catalog.expectations import expected, expects_listing, surprises
from neuronqa.domain.case import Variant
from neuronqa.domain.catalog import Entry, Source
from neuronqa.domain.outcome import Check, Outcome
from neuronqa.domain.workload import ModuleSpec, Workload
from neuronqa.errors import BadInput

HEAD = 'schema_version = 1\nname = "own"\nsource = "file"\n'
EAGER, COMPILE = Variant.parse("eager/fp32/train"), Variant.parse("compile/fp32/train")


def folder(tmp_path: Path, entries: str, head: str = HEAD) -> Path:
    (tmp_path / "catalog.toml").write_text(head + entries)
    (tmp_path / "own.py").write_text("def make(): ...\n")
    return tmp_path


def test_an_entry_may_define_a_workload(tmp_path: Path) -> None:
    text = '[[entry]]\nid = "a"\nfactory = "own.py:make"\narguments = { n = 1 }\ndeadline_s = 5\nmemory_mb = 900\n'
    catalog = definition.read(folder(tmp_path, text))
    (entry,) = catalog.entries()
    assert entry.workload is not None
    spec = Workload.from_json(entry.workload).spec
    assert isinstance(spec, ModuleSpec)
    assert (spec.source, spec.factory, spec.arguments) == (str(tmp_path / "own.py"), "make", {"n": 1})
    assert (spec.deadline_s, spec.memory_mb) == (5, 900)


def test_a_changed_factory_changes_the_catalog(tmp_path: Path) -> None:
    home = folder(tmp_path, '[[entry]]\nid = "a"\nfactory = "own.py:make"\n')
    before = definition.read(home).info.sha256
    (home / "own.py").write_text("def make(): return None\n")
    assert definition.read(home).info.sha256 != before


def test_an_entry_may_hold_a_config_or_its_bytes(tmp_path: Path) -> None:
    text = '[[entry]]\nid = "a"\nconfig = \'{"model_type": "llama"}\'\n[[entry]]\nid = "b"\nconfig_base64 = "/w=="\n'
    catalog = definition.read(folder(tmp_path, text))
    assert sorted(text for _, text in catalog.configs()) == ['{"model_type":"llama"}', "\udcff"]
    assert catalog.info.source is Source.FILE


def test_ranks_follow_the_order(tmp_path: Path) -> None:
    catalog = definition.read(folder(tmp_path, '[[entry]]\nid = "a"\n[[entry]]\nid = "b"\ndownloads = 3\n'))
    assert list(catalog.entries()) == [Entry(id="a", rank=1, downloads=0), Entry(id="b", rank=2, downloads=3)]


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ("[[entry]]\ndownloads = 1\n", "no 'id'"),
        ('[[entry]]\nid = "a"\ncolour = "red"\n', "unknown member 'colour'"),
        ('[[entry]]\nid = "a"\ndownloads = -1\n', "'downloads'"),
        ('[[entry]]\nid = "a"\n[[entry]]\nid = "a"\n', "one id"),
        ('[[entry]]\nid = "a"\nfactory = "make"\n', "FILE.py:FUNCTION"),
        ('[[entry]]\nid = "a"\nfactory = "../own.py:make"\n', "FILE.py:FUNCTION"),
        ('[[entry]]\nid = "a"\nfactory = "absent.py:make"\n', "absent.py"),
        ('[[entry]]\nid = "a"\nconfig_base64 = "!"\n', "config_base64"),
        ('[[entry]]\nid = "a"\nexpected = { run = "run:fine" }\n', "run:fine"),
        ('[[entry]]\nid = "a"\nexpected = { run = 1 }\n', "'expected'"),
        ('[[entry]]\nid = ""\n', "'id'"),
        ("[[entry]\n", "not TOML"),
        ("entry = 1\n", "entry"),
    ],
)
def test_what_is_wrong_names_file_and_entry(tmp_path: Path, entries: str, said: str) -> None:
    with pytest.raises(BadInput) as caught:
        definition.read(folder(tmp_path, entries))
    assert said in str(caught.value)
    assert "catalog.toml" in str(caught.value)


@pytest.mark.parametrize(
    "head",
    [
        'schema_version = 2\nname = "own"\nsource = "file"\n',
        'schema_version = 1\nname = "own"\nsource = "moon"\n',
        'schema_version = 1\nsource = "file"\n',
        HEAD + "extra = 1\n",
    ],
)
def test_a_wrong_head_is_refused(tmp_path: Path, head: str) -> None:
    with pytest.raises(BadInput, match=r"catalog\.toml"):
        definition.read(folder(tmp_path, "", head))


def knowing(**expected: str) -> Entry:
    return Entry(id="a", rank=1, downloads=0, expected=expected)


def test_the_expectation_that_names_most_of_a_variant_counts() -> None:
    entry = Entry(
        id="a",
        rank=1,
        downloads=0,
        expected={"graph": "graph:break", "eager fp32 run": "run:oom", "run": "run:pass", "eager run": "run:timeout"},
    )
    assert expected(entry, EAGER, Check.RUN) == Outcome.parse("run:oom")
    assert expected(entry, COMPILE, Check.RUN) == Outcome.parse("run:pass")
    assert expected(entry, COMPILE, Check.GRAPH) == Outcome.parse("graph:break")
    assert expected(entry, EAGER, Check.TRAIN) is None


def test_what_is_not_expected_is_a_surprise() -> None:
    crash = knowing(run="run:crash(SIGSEGV)")
    blocked = (EAGER, Check.TRAIN, Outcome.parse("not-run:blocked(run)"))
    assert not list(surprises(crash, [(EAGER, Check.RUN, Outcome.parse("run:crash(SIGSEGV)")), blocked]))
    assert list(surprises(crash, [(EAGER, Check.RUN, Outcome.parse("run:crash(SIGABRT)"))]))
    assert list(surprises(crash, [(EAGER, Check.RUN, Outcome.parse("run:pass"))]))
    assert list(surprises(knowing(), [blocked]))
    assert list(surprises(knowing(), [(EAGER, Check.PARITY, Outcome.parse("parity:nan"))]))
    assert not list(surprises(knowing(), [(EAGER, Check.PARITY, Outcome.parse("parity:pass"))]))


def test_an_entry_without_a_word_is_to_be_eligible() -> None:
    assert expects_listing(knowing(), Outcome.parse("listing:eligible"))
    assert not expects_listing(knowing(), Outcome.parse("listing:gated"))


def test_a_listing_without_a_detail_fits_any() -> None:
    assert expects_listing(knowing(listing="listing:gated"), Outcome.parse("listing:gated(ask)"))
    assert not expects_listing(knowing(listing="listing:gated(ask)"), Outcome.parse("listing:gated"))
    assert not expects_listing(knowing(listing="listing:gated"), Outcome.parse("listing:disabled"))
