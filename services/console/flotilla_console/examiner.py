"""Makes the checks of `flotilla doctor` for all viewers of the console together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import structlog

from flotilla_common.clock import Clock
from flotilla_insight.doctor.finding import Finding, Outcome, warning

FRESH_SECONDS = 30.0
"""Seconds for which findings are shown before the checks are made again."""

MOST_SECONDS = 90.0
"""Limit for all checks: three looks, of which each fact has its own deadline."""

Examine = Callable[[], Awaitable[Sequence[Outcome]]]
_log = structlog.stdlib.get_logger()


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of all checks, and when and how long they were made, in seconds."""

    at: float
    seconds: float
    outcomes: Sequence[Outcome]


class Examiner:
    """Makes the checks while their page is open, one run at a time."""

    def __init__(self, examine: Examine, clock: Clock) -> None:
        self._examine = examine
        self._clock = clock
        self._wanted = asyncio.Event()
        self._report: Report | None = None

    @property
    def is_running(self) -> bool:
        """Report whether checks are being made, or begin now."""
        return self._wanted.is_set()

    def latest(self) -> Report | None:
        """Return the last report at once, and begin to make another if it is not fresh; None before the first."""
        report = self._report
        if report is None or self._clock.now().timestamp() - report.at > FRESH_SECONDS:
            self._wanted.set()
        return report

    async def run(self) -> None:
        """Make the checks whenever they are wanted, until cancelled."""
        while True:
            await self._wanted.wait()
            began = self._clock.monotonic()
            outcomes = await self._outcomes()
            seconds = self._clock.monotonic() - began
            self._report = Report(at=self._clock.now().timestamp(), seconds=seconds, outcomes=outcomes)
            self._wanted.clear()

    async def _outcomes(self) -> Sequence[Outcome]:
        """Return the outcomes. A failure of all checks is a finding, too."""
        try:
            async with asyncio.timeout(MOST_SECONDS):
                return await self._examine()
        except TimeoutError:
            return [_failed(f"the checks were not over after {MOST_SECONDS:g} s")]
        except Exception as fault:  # noqa: BLE001 - the page shows the failure, and the next run may succeed
            _log.warning("checks.failed", exc_info=True)
            return [_failed(f"the checks ended with {type(fault).__name__}: {fault}")]


def _failed(text: str) -> Outcome:
    finding: Finding = warning("CheckFailed", "console", text, "run `flotilla doctor`; see the log of the console")
    return Outcome(check="console", title="the console can make the checks", findings=[finding])
