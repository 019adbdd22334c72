"""Listening for heartbeats: as long as it takes until every replica has said something once."""

from collections.abc import Callable, Sequence

import msgspec

from flotilla_cli.doctor.facts import Heard
from flotilla_common.bus.heartbeat import HEARTBEAT_SECONDS, NODE_AGENT, Heartbeat
from flotilla_common.bus.interface import Bus, Message
from flotilla_common.bus.subjects import untoken
from flotilla_common.clock import Clock

LISTEN_SECONDS = HEARTBEAT_SECONDS + 1.0
PATIENCE_SECONDS = HEARTBEAT_SECONDS + 3.0
"""For those that are expected and were not heard: one heartbeat may be late, or lost."""

_decode = msgspec.json.Decoder(Heartbeat).decode


def _signed(beat: Heartbeat, subject: str) -> Heartbeat:
    """With the sender that the subject names: the bus lets nobody speak on another's, whatever he writes."""
    _, _, service, replica = subject.split(".", 3)
    own = untoken(replica) if service == NODE_AGENT else beat.replica
    return msgspec.structs.replace(beat, service=service, replica=own)


async def heard(bus: Bus, clock: Clock, complete: Callable[[set[str]], bool]) -> Sequence[Heard]:
    """The replicas that speak. `complete` is told which services were heard, and says whether that is all."""
    found: dict[str, Heard] = {}

    def take(message: Message) -> None:
        try:
            beat = _decode(message.data)
        except msgspec.MsgspecError:
            return  # of a release that says it in another way
        beat = _signed(beat, message.subject)
        ahead = None if beat.at is None else (beat.at - clock.now()).total_seconds()
        found[message.subject] = Heard(beat, ahead)

    listening = await bus.subscribe("heartbeat.v1.>", take)
    began = clock.monotonic()
    while (spent := clock.monotonic() - began) < PATIENCE_SECONDS:
        if spent >= LISTEN_SECONDS and complete({one.beat.service for one in found.values()}):
            break
        await clock.sleep(0.1)
    await listening.stop()
    return list(found.values())
