"""Looks are repeated until two in a row agree."""

from collections.abc import Sequence

import pytest

from flotilla_insight.doctor import looking
from flotilla_insight.doctor.collect import Sources
from flotilla_insight.doctor.finding import Finding, Outcome, broken
from flotilla_insight.doctor.looking import AGAIN_SECONDS, examined
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.testkit.tables import cases

_A, _B, _C = (broken(code, "x", "it does not work", "mend it") for code in "ABC")


@pytest.mark.parametrize(
    ("looks", "found", "count"),
    cases(
        {
            "nothing": ([[]], [], 1),
            "the same again": ([[_A], [_A]], [_A], 2),
            "gone again": ([[_A, _B], [_B]], [_B], 2),
            "something new": ([[_A], [_A, _B], [_A, _B]], [_A, _B], 3),
            "something new each time": ([[_A], [_B], [_C]], [], 3),
        }
    ),
)
async def test_findings_are_those_that_two_looks_agree_on(
    looks: Sequence[Sequence[Finding]], found: Sequence[Finding], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, clock = iter(looks), FakeClock()

    async def collect(_: Sources) -> Sequence[Finding]:
        return next(left)

    def examine(findings: Sequence[Finding]) -> Sequence[Outcome]:
        return [Outcome(check="bus", title="the bus works", findings=findings)]

    monkeypatch.setattr(looking, "collect", collect)
    monkeypatch.setattr(looking, "examine", examine)
    outcomes = await examined(Sources(api=FakeApi().api, clock=clock))
    assert list(outcomes[0].findings) == list(found)
    assert clock.sleeps == [AGAIN_SECONDS] * (count - 1)
