"""Waits for the connection to the bus."""

from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import Clock


async def connected(bus: NatsBus, clock: Clock, seconds: float = 3.0) -> None:
    """Wait for the connection. Raises BusError if it takes longer than `seconds`."""
    deadline = clock.monotonic() + seconds
    while not bus.connected:
        if clock.monotonic() > deadline:
            raise BusError(f"no connection within {seconds:g}s{f' ({bus.trouble})' if bus.trouble else ''}")
        await clock.sleep(0.02)
