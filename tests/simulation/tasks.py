"""Tasks that are alike in every run, and how to end them without running a loop.

Sets of tasks (task groups, `asyncio.wait`) are iterated in the order of hashes, and by default an object's hash is its
address in memory. Here it is the task's number.
"""

import asyncio
from collections.abc import Coroutine, Generator, Iterable
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")

MOST_AWAITS = 32
"""Awaits in nested `finally` blocks of one task; more would be a loop that no cancellation ends."""


class SimulatedTask(asyncio.Task[T]):
    """A task with a number."""

    def __init__(
        self,
        number: int,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        loop: asyncio.AbstractEventLoop,
        name: object,
        context: Context | None,
    ) -> None:
        self._number = number
        super().__init__(coro, loop=loop, name=str(name or f"task-{number}"), context=context)

    def __hash__(self) -> int:
        return self._number


def bury(tasks: Iterable[SimulatedTask[Any]]) -> None:
    """Close the coroutines of unfinished tasks where they stand. What their `finally` blocks await never comes."""
    for task in tasks:
        coro = task.get_coro()
        if task.done() or not isinstance(coro, Coroutine):
            continue
        for _ in range(MOST_AWAITS):
            try:
                coro.close()
            except RuntimeError:  # it awaited something on its way out: the next close ends that as well
                continue
            except (Exception, BaseExceptionGroup):  # noqa: BLE001 - it met the ruins of others, and has ended
                pass
            break
