"""How long something may take, for tests that tell a linear time from a quadratic one."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the body takes more of the processor's time: what waits for other processes does not count."""
    began = time.process_time()
    yield
    taken = time.process_time() - began
    assert taken <= seconds, f"took {taken:.2f} s of {seconds:g} s"


@contextmanager
def measured() -> Iterator[Callable[[], float]]:
    """Give a function that returns the seconds of the processor's time since the body began. Garbage is not collected
    meanwhile: what that costs depends on everything that other tests have left."""
    gc.disable()
    began = time.process_time()
    try:
        yield lambda: time.process_time() - began
    finally:
        gc.enable()
