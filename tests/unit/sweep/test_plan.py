"""Catalog to plan: every entry in a group, every config asked about once, and a planner that may die at any moment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from neuronqa.db import queries
from neuronqa.db.engine import open_engine
from neuronqa.db.store import Store
from neuronqa.domain.catalog import CatalogInfo, Entry, Source
from neuronqa.errors import BadInput, EnvironmentFault
from neuronqa.sweep import plan as plan_module
from neuronqa.sweep.plan import ask_planner, installed_versions, make_plan, plan_key
from tests.builders import workload

A, B = workload("a"), workload("b")


@dataclass
class Listed:
    """A catalog of what it is given."""

    rows: list[Entry]
    texts: dict[str, str] = field(default_factory=dict)
    notice: str = ""

    @property
    def info(self) -> CatalogInfo:
        return CatalogInfo(name="l", source=Source.FILE, sha256="c" * 64, registered=len(self.rows), created="")

    def entries(self) -> Iterator[Entry]:
        return iter(self.rows)

    def configs(self) -> Iterator[tuple[str, str]]:
        return iter(self.texts.items())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    engine = open_engine(str(tmp_path / "plan.db"), create=True)
    yield Store(engine)
    engine.dispose()


def scripted(monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    """A planner of our own: `body` sees each request as `ask` and may `say(**answer)`."""
    program = (
        "import json, os, sys\n"
        "def say(**answer):\n"
        "    print(json.dumps(answer), flush=True)\n"
        "for line in sys.stdin:\n"
        "    ask = json.loads(line)\n" + "".join(f"    {line}\n" for line in body.splitlines())
    )
    monkeypatch.setattr(plan_module, "PLANNER", (sys.executable, "-c", program))


def groups(store: Store, plan_id: int) -> dict[str, tuple[str, int, str]]:
    with store.engine.connect() as db:
        return {
            g.group.model_type: (str(g.group.listing), g.entries, g.group.workload) for g in queries.groups(db, plan_id)
        }


def entry(rank: int, model_type: str, **more: object) -> Entry:
    return replace(Entry(id=f"x/{rank}", rank=rank, downloads=rank, model_type=model_type), **more)  # type: ignore[arg-type]


ANSWER = (
    "say(hash=ask['hash'], status='eligible', reason='', model_type=ask['text'], class_name='K',"
    f" kernel_key='k'*32, graph_key='g'*32, workload={A.to_json()!r})"
)


def test_every_entry_is_in_a_group_with_the_outcome_that_its_facts_or_its_config_decide(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(
        monkeypatch,
        "if ask['text'] == 'broken':\n"
        "    say(hash=ask['hash'], status='config_malformed', reason='at line 1\\nline 2', workload=None)\n"
        f"else:\n    {ANSWER}",
    )
    catalog = Listed(
        rows=[
            entry(1, "llama", config="c1"),
            entry(2, "llama", config="c1"),
            entry(3, "broken", config="c2"),
            entry(4, "gated", absence="gated"),
            entry(5, "own", workload=B.to_json()),
            entry(6, "lora", library="peft", config="c3"),
        ],
        texts={"c1": "llama", "c2": "broken", "c3": "never asked"},
    )
    plan_id = make_plan(catalog, store)
    found = groups(store, plan_id)
    assert found.pop("b") == ("listing:eligible", 1, B.hash)
    assert found.pop("llama") == ("listing:eligible", 2, A.hash)
    assert found.pop("broken") == ("listing:config_malformed(at line 1 line 2)", 1, "")
    assert {label: listing.partition("(")[0] for label, (listing, _, _) in found.items()} == {
        "gated": "listing:gated",
        "lora": "listing:adapter",
    }


def test_a_stored_plan_is_used_again_without_a_planner(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, ANSWER)
    catalog = Listed(rows=[entry(1, "llama", config="c1")], texts={"c1": "llama"})
    first = make_plan(catalog, store)
    scripted(monkeypatch, "sys.exit('asked again')")
    assert make_plan(catalog, store) == first


def test_a_plan_is_named_by_its_catalog_and_every_version() -> None:
    versions = installed_versions()
    assert {"builder", "torch", "transformers"} <= set(versions)
    keys = {plan_key("a" * 64, versions), plan_key("b" * 64, versions)}
    keys |= {plan_key("a" * 64, {**versions, name: "0"}) for name in versions}
    assert len(keys) == 2 + len(versions)


def test_an_entry_whose_config_is_not_in_the_catalog_is_bad_input_and_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, ANSWER)
    catalog = Listed(rows=[entry(1, "llama", config="c1"), entry(2, "gone", config="c9")], texts={"c1": "llama"})
    with pytest.raises(BadInput, match="x/2"):
        make_plan(catalog, store)
    assert store.known_plan(plan_key("c" * 64, installed_versions())) is None


def asked(n: int) -> list[dict[str, object]]:
    return list(ask_planner((f"h{i}", "x" * 1000) for i in range(n)))


def test_no_planner_is_started_for_no_configs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "PLANNER", ("/nowhere/python",))
    assert asked(0) == []


def test_answers_come_in_order_and_in_any_number(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, "say(hash=ask['hash'])")
    assert [one["hash"] for one in asked(3000)] == [f"h{i}" for i in range(3000)]


def test_a_planner_that_talks_too_much_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, "print('noise ' * 2000, file=sys.stderr)\nsay(hash=ask['hash'])")
    assert len(asked(100)) == 100


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("say(hash=ask['hash'])\nif ask['hash'] == 'h2': os.kill(os.getpid(), 9)", "died after 3 configs"),
        ("print('ImportError: no transformers', file=sys.stderr)\nsys.exit(1)", "ImportError: no transformers"),
        ("sys.exit(0)", "died after 0 configs: it said nothing"),
        ("if ask['hash'] != 'h1': say(hash=ask['hash'])", "died after 4 configs"),
    ],
)
def test_a_planner_that_dies_or_leaves_a_config_out_is_an_environment_fault(
    monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    scripted(monkeypatch, body)
    with pytest.raises(EnvironmentFault, match=words):
        asked(5)


def test_a_catalog_that_breaks_while_it_is_read_is_not_taken_for_a_planner_that_died(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scripted(monkeypatch, "say(hash=ask['hash'])")

    def breaking() -> Iterator[tuple[str, str]]:
        yield "h0", "text"
        raise BadInput("the shard ends early")

    with pytest.raises(BadInput, match="ends early"):
        list(ask_planner(breaking()))
