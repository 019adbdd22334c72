"""Collects heartbeats until every replica has sent one."""

from collections.abc import Callable, Sequence

from flotilla_cli.doctor.facts import Heard
from flotilla_cli.published import LISTEN_SECONDS, listen
from flotilla_common.bus.heartbeat import Heartbeat
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock

PATIENCE_SECONDS = LISTEN_SECONDS + 2.0
"""Limit for expected services without a heartbeat: one may be late, or lost."""


async def heard(bus: Bus, clock: Clock, complete: Callable[[set[str]], bool]) -> Sequence[Heard]:
    """Return the replicas with heartbeats. `complete` reports whether the services so far are all."""
    found: dict[tuple[str, str], Heard] = {}

    def take(beat: Heartbeat) -> None:
        ahead = None if beat.at is None else (beat.at - clock.now()).total_seconds()
        found[beat.service, beat.replica] = Heard(beat, ahead)

    listening = await listen(bus, take)
    began = clock.monotonic()
    while (spent := clock.monotonic() - began) < PATIENCE_SECONDS:
        if spent >= LISTEN_SECONDS and complete({service for service, _ in found}):
            break
        await clock.sleep(0.1)
    await listening.stop()
    return list(found.values())
