"""The order in which work is handed out, and in what portions."""

from collections.abc import Iterator
from dataclasses import replace

from neuronqa.db.planning import Candidate
from neuronqa.domain.case import AttemptKind
from neuronqa.sweep.schedule import AHEAD, BATCH_JOBS, BATCH_S, VOIDS, Assignment, CostModel, Queue, by_value
from tests.builders import COMPILED, EAGER, job, workload

MANY, LOVED, FEW = (
    Candidate(workload_id=1, family="many", entries=90, downloads=10),
    Candidate(workload_id=2, family="loved", entries=5, downloads=90),
    Candidate(workload_id=3, family="few", entries=5, downloads=0),
)


def assignment(
    name: str, expected_s: float = 1.0, voids: int = 0, kind: AttemptKind = AttemptKind.RECORD
) -> Assignment:
    made = job(workload(name))
    return Assignment(job=made, kinds={t.id: kind for t in made.tickets}, expected_s=expected_s, voids=voids)


def names(batch: list[Assignment]) -> list[str]:
    return [one.job.workload.spec.family for one in batch]


def portions(queue: Queue, workers: int = 1, room_s: float = 1e9) -> list[list[str]]:
    out = []
    while batch := queue.batch(workers, room_s):
        out.append(names(batch))
    return out


def dealt(queue: Queue) -> list[str]:
    """One by one: so many workers that nobody gets two."""
    return [name for batch in portions(queue, workers=10**6) for name in batch]


def test_what_settles_most_entries_and_downloads_goes_first() -> None:
    assert list(by_value([FEW, LOVED, MANY], [EAGER], CostModel())) == [1, 2, 3]


def test_the_same_value_at_a_lower_cost_goes_first() -> None:
    cheap = Candidate(workload_id=1, family="cheap", entries=10, downloads=10)
    dear = Candidate(workload_id=2, family="dear", entries=10, downloads=10)
    cost = CostModel(by_family={("cheap", EAGER): 0.1, ("dear", EAGER): 9.0})
    assert list(by_value([dear, cheap], [EAGER], cost)) == [1, 2]


def test_equals_stay_in_the_order_in_which_they_come() -> None:
    equals = [Candidate(workload_id=n, family="f", entries=1, downloads=1) for n in (3, 1, 2)]
    assert list(by_value(equals, [EAGER], CostModel())) == [3, 1, 2]
    assert list(by_value([replace(FEW, entries=0)], [EAGER], CostModel())) == [3]


def test_a_cost_is_the_familys_own_else_the_variants_else_a_guess() -> None:
    cost = CostModel(by_family={("known", EAGER): 3.0}, by_variant={EAGER: 2.0})
    reference = CostModel().expect("x", [])
    assert cost.expect("known", [EAGER]) == reference + 3.0
    assert cost.expect("other", [EAGER]) == reference + 2.0
    assert cost.expect("other", [COMPILED]) > cost.expect("other", [EAGER])


def test_extras_are_dealt_between_the_main_jobs_at_the_stride_and_never_starve() -> None:
    queue = Queue([assignment(f"m{i}") for i in range(5)], [assignment(f"x{i}") for i in range(3)], stride=3)
    assert not queue.empty
    assert dealt(queue) == ["x0", "m0", "m1", "x1", "m2", "m3", "x2", "m4"]
    assert queue.empty


def test_extras_that_are_left_come_when_the_main_jobs_are_done() -> None:
    assert dealt(Queue([assignment("m")], [assignment("x"), assignment("y")], stride=3)) == ["x", "m", "y"]
    assert dealt(Queue([], [assignment("x"), assignment("y")], stride=3)) == ["x", "y"]


def test_a_lost_job_goes_before_everything_else() -> None:
    queue = Queue([assignment("m")], [assignment("x")])
    queue.put_back(assignment("lost").voided())
    assert not queue.must_be_alone
    assert dealt(queue) == ["lost", "x", "m"]


def test_a_job_that_was_voided_as_often_as_allowed_is_taken_apart_and_runs_alone() -> None:
    once = assignment("one", expected_s=4.0).voided()
    assert [(one.voids, one.alone, len(one.kinds)) for one in once] == [(1, False, 2)]
    twice = once[0].voided()
    assert [(one.voids, one.alone, one.expected_s) for one in twice] == [(VOIDS, True, 2.0)] * 2
    assert [one.job.tickets[0].variant for one in twice] == [EAGER, COMPILED]
    assert [set(one.kinds) for one in twice] == [{one.job.tickets[0].id} for one in twice]
    queue = Queue([assignment("m")])
    queue.put_back(twice)
    assert queue.must_be_alone
    assert portions(queue) == [["one"], ["one"], ["m"]]


def test_a_solo_run_is_alone_from_the_start() -> None:
    solo = assignment("s", kind=AttemptKind.ALONE)
    assert solo.alone
    queue = Queue([solo, assignment("t", kind=AttemptKind.ALONE)])
    assert queue.must_be_alone
    assert portions(queue) == [["s"], ["t"]]


def test_short_jobs_are_handed_out_together_long_ones_by_themselves() -> None:
    def endless() -> Iterator[Assignment]:
        for n in range(10**6):
            yield assignment(f"short{n}", expected_s=1.0)

    queue = Queue(endless())
    assert len(queue.batch(workers=2)) == int(BATCH_S)
    long = Queue([assignment("long", expected_s=60.0), assignment("short", expected_s=0.1)])
    assert portions(long) == [["long"], ["short"]]
    tiny = Queue(assignment(f"tiny{n}", expected_s=1e-4) for n in range(AHEAD))
    assert len(tiny.batch(workers=0)) <= BATCH_JOBS


def test_the_last_jobs_are_shared_among_the_workers() -> None:
    queue = Queue([assignment(f"m{n}") for n in range(8)])
    assert [len(batch) for batch in portions(queue, workers=2)] == [2, 1, 1, 1, 1, 1, 1]


def test_the_last_jobs_go_longest_first_unless_value_is_the_order() -> None:
    jobs = [assignment("short", 1.0), assignment("long", 9.0), assignment("middle", 5.0)]
    assert dealt(Queue(jobs)) == ["long", "middle", "short"]
    assert dealt(Queue(jobs, by_value=True)) == ["short", "long", "middle"]


def test_a_large_source_is_read_as_it_is_needed_and_only_its_end_is_reordered() -> None:
    taken = []

    def source() -> Iterator[Assignment]:
        for n in range(3 * AHEAD):
            taken.append(n)
            yield assignment(f"m{n}", expected_s=float(n + 1))

    queue = Queue(source())
    assert len(taken) == AHEAD
    order = [int(name[1:]) for name in dealt(queue)]
    assert sorted(order) == list(range(3 * AHEAD))
    assert order[:AHEAD] == list(range(AHEAD))
    assert order[-AHEAD // 2 :] == sorted(order[-AHEAD // 2 :], reverse=True)


def test_where_time_is_short_the_jobs_that_still_fit_are_tried() -> None:
    jobs = [assignment("long", 9.0), assignment("fits", 2.0), assignment("fits-too", 1.0), assignment("longer", 12.0)]
    queue = Queue(jobs, [assignment("control", 5.0)], by_value=True)
    assert portions(queue, room_s=3.0) == [["fits", "fits-too"]]
    assert not queue.empty
    assert dealt(queue) == ["control", "long", "longer"]
