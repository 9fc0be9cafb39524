"""Selectors over facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from neuronqa.catalog import select
from neuronqa.catalog.catalog import Listed, selected
from neuronqa.domain.catalog import Entry, ListingStatus, Source
from neuronqa.errors import BadInput, UsageError

ENTRIES = tuple(
    Entry(
        id=f"org{rank % 3}/model-{rank}",
        rank=rank,
        downloads=1000 // rank,
        model_type=("llama", "bert", "t5")[rank % 3],
        task=("text-generation", "fill-mask")[rank % 2],
    )
    for rank in range(1, 61)
)
WHOLE = Listed(name="test", source=Source.FILE, rows=ENTRIES, texts={})


def ranks(expression: str) -> list[int]:
    return sorted(select.chosen(select.parse(expression), ENTRIES))


def test_all_keeps_all() -> None:
    assert ranks("all") == list(range(1, 61))


def test_top_keeps_the_best_ranked() -> None:
    assert ranks("top-3") == [1, 2, 3]
    assert ranks("top-0") == []


def test_filters_match_whole_values_and_stars() -> None:
    assert ranks("type:llama") == list(range(3, 61, 3))
    assert ranks("id:org0/*-3") == [3]
    assert ranks("id:*model-6") == [6]
    assert ranks("type:lla") == []
    assert ranks("task:fill*") == list(range(1, 61, 2))


def test_and_filters_before_it_counts() -> None:
    assert ranks("type:llama,top-2") == [3, 6]
    assert ranks("top-2,type:llama") == [3, 6]
    assert set(ranks("type:llama,random-5@1")) <= set(range(3, 61, 3))
    assert len(ranks("type:llama,random-5@1")) == 5
    assert set(ranks("top-20,random-5@1")) <= set(range(1, 21))


def test_or_joins() -> None:
    assert ranks("top-2|id:*-60") == [1, 2, 60]


def test_a_draw_depends_on_seed_and_ids_alone() -> None:
    assert ranks("random-10@7") == ranks("random-10@7")
    assert ranks("random-10@7") != ranks("random-10@8")
    drawn = set(ranks("random-10@7"))
    assert drawn & set(ranks("type:llama")) <= set(ranks("type:llama,random-10@7"))
    assert len(ranks("random-100@7")) == 60


def test_a_list_keeps_the_ids_of_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("# mine\norg0/model-3\n\n  org1/model-4  \nnobody/nothing\n")
    assert ranks(f"list:{path}") == [3, 4]


def test_a_list_is_named_by_its_ids_not_its_path(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("org0/model-3\n")
    assert str(select.parse(f"list:{tmp_path / 'a'}")) == str(select.parse(f"list:{tmp_path / 'b'}"))


def test_status_asks_who_knows() -> None:
    selector = select.parse("status:gated")
    assert selector.asks_status

    def status_of(entry: Entry) -> ListingStatus:
        return ListingStatus.GATED if entry.rank == 5 else ListingStatus.ELIGIBLE

    assert select.chosen(selector, ENTRIES, status_of) == {5}
    with pytest.raises(UsageError, match="status"):
        select.chosen(selector, ENTRIES)


@pytest.mark.parametrize(
    "text",
    ["", "top", "top-", "top--1", "top-1.5", "random-3", "random-3@", "colour:red", "type:", "nonsense", "all,,all"],
)
def test_what_is_no_selector_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        select.parse(text)


def test_results_are_asked_of_whoever_has_them() -> None:
    def results(field: str, key: str) -> frozenset[str]:
        assert (field, key) == ("cluster", "ck1:00ff")
        return frozenset({"org0/model-3", "org1/model-4", "gone/since"})

    found = selected(WHOLE, "type:llama,cluster:ck1:00ff|top-1", results=results)
    assert sorted(found.kept) == [1, 3]
    assert found.info.name == "test[type:llama,cluster:ck1:00ff|top-1]"
    for without in ("cluster:ck1:00ff", "failed:20260101"):
        with pytest.raises(UsageError, match="results of a sweep"):
            select.parse(without)


def test_an_unknown_status_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="eligible"):
        select.parse("status:fine")


def test_an_unreadable_list_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="absent"):
        select.parse(f"list:{tmp_path / 'absent'}")


def test_two_draws_in_one_group_are_refused() -> None:
    with pytest.raises(UsageError, match="random"):
        select.chosen(select.parse("random-1@1,random-1@2"), ENTRIES)


def test_a_selection_is_a_catalog_of_its_own() -> None:
    derived = selected(WHOLE, "type:llama")
    assert derived.info.name == "test[type:llama]"
    assert derived.info.registered == 20
    assert derived.info.sha256 != WHOLE.info.sha256
    assert [entry.rank for entry in derived.entries()] == list(range(3, 61, 3))
    assert derived.info == selected(WHOLE, "type:llama").info
    assert derived.info.sha256 != selected(WHOLE, "type:bert").info.sha256


@pytest.mark.parametrize("expression", ["type:nothing", "top-0", "id:org1/model-1 or id:org1/model-4"])
def test_a_selection_of_nothing_is_a_usage_error(expression: str) -> None:
    with pytest.raises(UsageError, match="nothing in test is selected"):
        selected(WHOLE, expression)


def test_the_name_of_a_selection_is_one_clean_line() -> None:
    name = selected(WHOLE, "id:\x1b[2J\u202e*|all").info.name
    assert name.isprintable()
    assert "\u202e" not in name


def test_names_and_brackets_come_apart() -> None:
    assert select.split_name("top-100k[type:llama]") == ("top-100k", "type:llama")
    assert select.split_name("top-100k") == ("top-100k", None)
    assert select.split_name("./folder[1]/x") == ("./folder[1]/x", None)
