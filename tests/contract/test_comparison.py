"""Pages compare sweeps by SQL, the command line by the rule itself: they say the same of every pair of standings."""

from __future__ import annotations

from itertools import product

from sqlalchemy import Engine

from neuronqa.db import queries
from neuronqa.db.browse import comparison
from neuronqa.db.browse.listing import Ask, browse
from neuronqa.db.store import Store
from neuronqa.domain.change import Change
from neuronqa.domain.outcome import Check, Kind
from neuronqa.report import export
from neuronqa.report.compare import compare
from tests.builders import EAGER, but, eligible, entries, failed, passed, said, save_plan, workload
from tests.triaged import both, sweep

NO_GELU = but(passed(EAGER), said(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::gelu float32"))
WRONG_MM = but(passed(EAGER), said(Check.PARITY, Kind.PARITY_SCALE, "aten::mm float32"))
WRONG_ADD = but(passed(EAGER), said(Check.PARITY, Kind.PARITY_SCALE, "aten::add float32"))
CRASH = failed(EAGER, Check.RUN, Kind.RUN_CRASH, "SIGSEGV aten::mm")
BOTH = but(
    passed(EAGER),
    said(Check.FALLBACK, Kind.FALLBACK_NO_KERNEL, "aten::gelu float32"),
    said(Check.PARITY, Kind.PARITY_SCALE, "aten::mm float32"),
)
STANDINGS = {"green": passed(EAGER), "gelu": NO_GELU, "mm": WRONG_MM, "add": WRONG_ADD, "crash": CRASH, "both": BOTH}
PAIRS = list(product([*STANDINGS, "not run"], repeat=2))


def test_page_and_command_line_agree_on_what_became_of_every_entry(engine: Engine) -> None:
    pool = {pair: workload(" to ".join(pair)) for pair in PAIRS}
    plan = save_plan(
        Store(engine), list(pool.values()), entries([(eligible(of), n + 1, 1) for n, of in enumerate(pool.values())])
    )
    for at, name in enumerate(("one", "two")):
        ran = [(pool[pair], pair[at]) for pair in PAIRS if pair[at] != "not run"]
        made = [one for of, state in ran for one in both(of, STANDINGS[state])]
        sweep(engine, plan, name, made, name)
    with engine.connect() as db:
        said_by_rule = compare(export.side(db, "one"), export.side(db, "two"))
        base, head = queries.sweep(db, "one"), queries.sweep(db, "two")
        counted = comparison.counts(db, base, head)
        listed = browse(db, comparison.listing(base, head), Ask(limit=100)).rows
    assert counted == {change: said_by_rule.counts[change] for change in Change if said_by_rule.counts[change]}
    assert set(counted) == set(Change) - {Change.ADDED, Change.GONE}
    assert sum(counted.values()) == sum(n + 1 for n in range(len(PAIRS)))
    assert {row["change"] for row in listed} == {change for change in counted if change.is_one}
