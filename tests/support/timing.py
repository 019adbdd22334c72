"""Measures processor time, for tests that distinguish linear from quadratic time."""

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
    """Yield a function that returns the processor time in seconds since the body began.

    Garbage is not collected meanwhile: its cost depends on what other tests have left.
    """
    gc.disable()
    began = time.process_time()
    try:
        yield lambda: time.process_time() - began
    finally:
        gc.enable()
