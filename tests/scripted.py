"""A fleet without processes: a script says what each job comes to. And a clock that moves only when told."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from neuronqa.domain.job import Job, JobResult
from neuronqa.errors import EnvironmentFault
from neuronqa.sweep.driver import Progress
from neuronqa.sweep.fleet import Completion
from tests.builders import result

Script = Callable[[Job, int], JobResult | str]
"""A job and how often it was submitted before -> its result, or how it was lost."""


def all_pass(job: Job, _before: int) -> JobResult | str:
    return result(job)


class ScriptedFleet:
    """Obeys a fleet's contract: at most `workers * window` batches in hand, completions in the order of submission."""

    def __init__(self, script: Script = all_pass, workers: int = 2, window: int = 2) -> None:
        self.size = workers
        self.submitted: list[Job] = []
        self.in_hand: list[int] = []
        """How many batches the fleet held after each submission."""
        self.ranks = 1
        self.refused: dict[str, str] = {}
        self.most_ranks = 8
        self.on_wait: Callable[[], None] = lambda: None
        self._script = script
        self._window = window
        self._queue: deque[tuple[int, list[tuple[Job, int]]]] = deque()

    def check_room(self, ranks: int) -> None:
        if ranks > self.most_ranks:
            raise EnvironmentFault(f"no node has room for {ranks} ranks")

    def lay_out(self, ranks: int) -> None:
        assert not self._queue, "work was in flight when the fleet was laid out anew"
        self.ranks = ranks

    def await_first(self) -> None:
        """Every scripted worker is ready at once."""

    def capacity(self) -> int:
        return self.size * self._window - len(self._queue)

    def submit(self, token: int, jobs: Sequence[Job]) -> None:
        assert self.capacity() > 0, "the driver overfilled the fleet"
        assert {t.variant.ranks for job in jobs for t in job.tickets} == {self.ranks}, (
            "a case met a slot of another width"
        )
        batch = []
        for job in jobs:
            batch.append((job, sum(other.workload.hash == job.workload.hash for other in self.submitted)))
            self.submitted.append(job)
        self._queue.append((token, batch))
        self.in_hand.append(len(self._queue))

    def wait(self, timeout: float) -> Sequence[Completion]:
        self.on_wait()
        if not self._queue or timeout <= 0:
            return []
        token, batch = self._queue.popleft()
        results = []
        for job, before in batch:
            answer = self._script(job, before)
            if isinstance(answer, str):
                return [Completion(token=token, results=None, lost=answer)]
            results.append(answer)
        return [Completion(token=token, results=results)]

    def close(self) -> None:
        self._queue.clear()


class Quiet:
    """A display nobody looks at; it keeps what it was shown last."""

    def __init__(self) -> None:
        self.stages: list[str] = []
        self.last: Progress | None = None

    def show(self, progress: Progress) -> None:
        self.last = progress

    def stage(self, text: str) -> None:
        self.stages.append(text)


class Clock:
    """Monotonic time that moves only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now
