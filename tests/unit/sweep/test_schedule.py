"""The order in which work is handed out."""

from neuronqa.domain.case import AttemptKind
from neuronqa.domain.plan import PlannedWorkload
from neuronqa.sweep.schedule import VOIDS, Assignment, CostModel, Queue, by_value
from tests.builders import COMPILED, EAGER, job, workload


def planned(name: str, entries: int, downloads: int) -> PlannedWorkload:
    return PlannedWorkload(workload=workload(name), kernel_key=name, entries=entries, downloads=downloads)


def assignment(name: str, voids: int = 0) -> Assignment:
    made = job(workload(name))
    return Assignment(job=made, kinds={t.id: AttemptKind.RECORD for t in made.tickets}, expected_s=1.0, voids=voids)


def dealt(queue: Queue) -> list[str]:
    out = []
    while (one := queue.next()) is not None:
        out.append(one.job.workload.spec.family)
    return out


def test_what_settles_most_entries_and_downloads_goes_first() -> None:
    many, loved, few = planned("many", 90, 10), planned("loved", 5, 90), planned("few", 5, 0)
    assert [p.kernel_key for p in by_value([few, loved, many], [EAGER], CostModel())] == ["many", "loved", "few"]


def test_the_same_value_at_a_lower_cost_goes_first() -> None:
    cheap, dear = planned("cheap", 10, 10), planned("dear", 10, 10)
    cost = CostModel(by_family={("cheap", EAGER): 0.1, ("dear", EAGER): 9.0})
    assert [p.kernel_key for p in by_value([dear, cheap], [EAGER], cost)] == ["cheap", "dear"]


def test_the_order_of_equals_is_reproducible() -> None:
    equals = [planned(name, 1, 1) for name in "abcdef"]
    assert by_value(equals, [EAGER], CostModel()) == by_value(equals[::-1], [EAGER], CostModel())
    assert by_value([planned("unloved", 0, 0)], [EAGER], CostModel())[0].kernel_key == "unloved"


def test_a_cost_is_the_familys_own_else_the_variants_else_a_guess() -> None:
    cost = CostModel(by_family={("known", EAGER): 3.0}, by_variant={EAGER: 2.0})
    reference = CostModel().expect(workload("x"), [])
    assert cost.expect(workload("known"), [EAGER]) == reference + 3.0
    assert cost.expect(workload("other"), [EAGER]) == reference + 2.0
    assert cost.expect(workload("other"), [COMPILED]) > cost.expect(workload("other"), [EAGER])


def test_extras_are_dealt_between_the_main_jobs_at_the_stride_and_never_starve() -> None:
    queue = Queue([assignment(f"m{i}") for i in range(5)], [assignment(f"x{i}") for i in range(3)], stride=3)
    assert len(queue) == 8
    assert dealt(queue) == ["x0", "m0", "m1", "x1", "m2", "m3", "x2", "m4"]
    assert len(queue) == 0


def test_extras_that_are_left_come_when_the_main_jobs_are_done() -> None:
    assert dealt(Queue([assignment("m")], [assignment("x"), assignment("y")], stride=3)) == ["x", "m", "y"]
    assert dealt(Queue([], [assignment("x"), assignment("y")], stride=3)) == ["x", "y"]


def test_a_lost_job_goes_before_everything_else() -> None:
    queue = Queue([assignment("m")], [assignment("x")], stride=1)
    queue.put_back(assignment("lost").voided)
    assert not queue.last_chance
    assert dealt(queue) == ["lost", "x", "m"]


def test_only_a_job_that_was_voided_as_often_as_allowed_is_on_its_last_chance() -> None:
    one = assignment("one")
    chances = []
    for _ in range(VOIDS + 1):
        chances.append(one.last_chance)
        one = one.voided
    assert chances == [False] * VOIDS + [True]
    queue = Queue([], [], stride=1)
    queue.put_back(assignment("one", voids=VOIDS))
    assert queue.last_chance
