"""The settings that the running services plan with, as their heartbeats tell them."""

from collections.abc import Mapping

import msgspec

from flotilla_cli.connection import connected, open_bus
from flotilla_common.api.documents import Json, mapping
from flotilla_common.bus.interface import BusError, Message
from flotilla_common.clock import Clock
from flotilla_common.control.offline import Planning

HEARTBEAT_SECONDS = 6.0
"""Services show a heartbeat every 5 seconds."""

LOOK_SECONDS = 0.05


async def settings_of(url: str, kubeconfig: str, plurals: set[str], clock: Clock) -> tuple[Mapping[str, Planning], str]:
    """What is known, by the plural of the kind; and what is not, in words. Waits for a heartbeat at most."""
    if not url:
        return {}, "no bus is known, so the defaults of all settings are planned with"
    found: dict[str, Planning] = {}
    try:
        async with open_bus(url, kubeconfig) as bus:
            await connected(bus, clock)
            await bus.subscribe("heartbeat.v1.*.*", lambda message: found.update(_told(message)))
            deadline = clock.monotonic() + HEARTBEAT_SECONDS
            while not plurals <= found.keys() and clock.monotonic() < deadline:
                await clock.sleep(LOOK_SECONDS)
    except BusError as error:
        return found, f"the bus does not answer ({error}), so the defaults of all settings are planned with"
    silent = sorted(plurals - found.keys())
    words = f"no service told its settings for {', '.join(silent)}: the defaults are planned with"
    return found, words if silent else ""


def _told(message: Message) -> Mapping[str, Planning]:
    try:
        body: Json = mapping(msgspec.json.decode(message.data))
        return {plural: msgspec.convert(one, Planning) for plural, one in mapping(body.get("planning")).items()}
    except msgspec.MsgspecError:
        return {}
