"""Listens to heartbeats: no stream keeps them, and each replica sends one every few seconds."""

from collections.abc import Callable

import msgspec

from flotilla_common.bus.heartbeat import HEARTBEAT_SECONDS, NODE_AGENT, Heartbeat
from flotilla_common.bus.interface import Bus, Follow, Message
from flotilla_common.bus.subjects import untoken

LISTEN_SECONDS = HEARTBEAT_SECONDS + 1.0
"""Seconds until each replica has sent a heartbeat."""

_decode = msgspec.json.Decoder(Heartbeat).decode


async def listen(bus: Bus, hear: Callable[[Heartbeat], object], service: str = "*") -> Follow:
    """Pass on each heartbeat, with the sender of its subject: the bus lets no user publish on another's subject.

    Heartbeats of a release with another format are left out.
    """

    def take(message: Message) -> None:
        _, _, sender, replica = message.subject.split(".", 3)
        try:
            beat = _decode(message.data)
        except msgspec.MsgspecError:
            return
        own = untoken(replica) if sender == NODE_AGENT else beat.replica
        hear(msgspec.structs.replace(beat, service=sender, replica=own))

    return await bus.subscribe(f"heartbeat.v1.{service}.*", take)
