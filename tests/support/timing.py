"""How long something may take, for tests that tell a linear time from a quadratic one."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fail if the body takes more of the processor's time: what waits for other processes does not count."""
    began = time.process_time()
    yield
    taken = time.process_time() - began
    assert taken <= seconds, f"took {taken:.2f} s of {seconds:g} s"
