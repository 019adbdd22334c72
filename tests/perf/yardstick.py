"""How fast the machine is while something is measured.

Machines that others use too are now faster and now slower, by half and within a minute: then a ratio of two steps, one
after the other, says as much about the neighbours as about the steps. So a process of its own does the same small piece
of work five times a second, all the time, and notes how much CPU time it took: what a busy neighbour, a shared core or
a lower clock makes of one second. Seconds divided by that are comparable (docs/performance.md says how well).
"""

import json
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

EVERY = 0.2
"""Seconds between two pieces of work: 0.75 % of two cores."""

USUAL_MS = 3.0
"""What the work took on the machine of docs/performance.md in most rollouts. It cancels out of every ratio, and only
makes adjusted seconds look like seconds."""

_DOCUMENT = json.dumps(
    [
        {
            "metadata": {"name": f"pod-{number}", "labels": {"app": "bench", "number": str(number)}},
            "status": {
                "conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "Initialized", "Scheduled")]
            },
        }
        for number in range(60)
    ]
)


def _work() -> None:
    """Reads and writes JSON: many small objects, as everything does that is measured."""
    for _ in range(6):
        json.dumps(json.loads(_DOCUMENT))


def _measure(questions: Connection) -> None:
    """Answers each moment with what the work cost since then, until nobody asks any more."""
    costs: list[tuple[float, float]] = []
    try:
        while True:
            if questions.poll(EVERY):
                since = questions.recv()
                questions.send([cost for moment, cost in costs if moment >= since])
                continue
            before = time.thread_time()
            _work()
            costs.append((time.monotonic(), time.thread_time() - before))
    except (BrokenPipeError, EOFError):
        return


class Yardstick:
    """Measures for the time of a `with` block. Moments are those of the system's monotonic clock."""

    def __init__(self) -> None:
        self._questions, self._theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self._process = context.Process(target=_measure, args=(self._theirs,), daemon=True)

    def __enter__(self) -> Self:
        self._process.start()
        self._theirs.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._questions.close()
        self._process.join()

    def cost_ms(self, since: float) -> float:
        """Milliseconds of CPU that the work took since then, on average."""
        self._questions.send(since)
        return statistics.mean(self._questions.recv()) * 1000

    def adjusted(self, seconds: float, since: float) -> float:
        """What the seconds would have been at the machine's usual speed."""
        return seconds * USUAL_MS / self.cost_ms(since)
