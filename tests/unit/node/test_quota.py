"""A burst, then a rate per second, for each source alone."""

import pytest

from flotilla_common.node import quota
from flotilla_common.node.quota import Quota


def test_a_burst_and_what_flows_in_again() -> None:
    it = Quota(burst=2, per_second=0.5)
    assert [it.take("a", 0) for _ in range(3)] == [True, True, False]
    assert it.take("b", 0)
    assert [it.take("a", now) for now in (1.9, 2.0, 2.0, 3.9, 4.0)] == [False, True, False, False, True]
    assert [it.take("a", 100) for _ in range(3)] == [True, True, False]


def test_to_ask_costs_nothing() -> None:
    it = Quota(burst=1, per_second=1)
    assert [it.left("a", 0) for _ in range(3)] == [True] * 3
    assert it.take("a", 0)
    assert not it.left("a", 0.9)
    assert it.left("a", 1)


def test_only_so_many_sources_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only active ones are tracked: others count as new."""
    monkeypatch.setattr(quota, "SOURCES", 2)
    it = Quota(burst=1, per_second=0.001)
    assert all(it.take(source, 0) for source in ("a", "b"))
    assert not it.take("a", 1)
    assert it.take("c", 1)
    assert not it.take("a", 1)
    assert it.take("b", 1)


def test_a_wait_is_long_enough_for_time_to_pass() -> None:
    """A source that retries when allowed gets its turn, however little time is left to wait."""
    it = Quota(burst=1, per_second=0.5)
    assert it.take("a", 254.4)
    now = 254.4 + 0.7
    tries = 0
    while not it.left("a", now):  # after the first wait 3e-14 s are left, below the resolution of such a time
        now += it.wait("a", now)
        tries += 1
        assert tries < 5
    assert it.wait("a", now) == 0
