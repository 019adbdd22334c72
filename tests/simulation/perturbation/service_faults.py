"""The effects of faults at their points: on the network, the apiserver and the bus of the services.

Each class is an `Effect` for one entry of the catalogue (`catalogue.py`).
"""

from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TypeVar

from flotilla_common.bus.subjects import kube_stream
from flotilla_common.installed import published
from flotilla_common.kube.interface import ApiError, Unreachable
from tests.simulation.apiserver.wire import ONE_WAY, Request
from tests.simulation.bus.faults import UNDISTURBED, Hop, Treatment, Way
from tests.simulation.perturbation.fault import Fault
from tests.simulation.perturbation.fault_injector import FaultInjector
from tests.simulation.world import RESTART_SECONDS, World

T = TypeVar("T")

FAILOVER_SECONDS = 5.5
"""Fake seconds for a restart, the rest of the old lease (3 s), the next look at it, and the resync."""

PAUSE_SECONDS = 8.0
"""Longer than a lease: another replica holds the shard when the paused process resumes."""

STRAGGLE_SECONDS = 1.0
"""Fake seconds after the failover at which a straggling request arrives."""

HOLD_SECONDS = 4.0
"""Fake seconds for which watch events are held back: longer than everything else takes to converge."""

UNRULY_SECONDS = 0.01
"""Fake seconds for which the bus disturbs messages: a few messages."""

BLACKOUT_SECONDS = 11.0
"""Fake seconds for which the bus is down: longer than services wait before they list and watch by themselves."""


class NoEffect:
    """The base of effects: it disturbs nothing; kinds override what they disturb."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        del injector, request
        return await serve()

    def event(self, injector: FaultInjector, request: Request) -> None:
        del injector, request

    def moment(self, injector: FaultInjector) -> None:
        del injector

    async def call(self, injector: FaultInjector, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        del injector, agent
        return await serve()

    def report(self, injector: FaultInjector, agent: str) -> Treatment:
        del injector, agent
        return UNDISTURBED


class Crash(NoEffect):
    """A crash of the process as its request is sent, or as the reply comes back. It is restarted soon."""

    before = False

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        if self.before:
            self.end(injector, request.writer)
            raise Unreachable("the sender is dead", sent=False)
        await injector.world.clock.sleep(ONE_WAY)
        reply = await serve()
        self.end(injector, request.writer)
        return reply

    def end(self, injector: FaultInjector, writer: str) -> None:
        """Kill the process, and restart it later."""
        world, process = injector.world, injector.world.processes[writer]
        process.crash()
        world.loop.call_later(RESTART_SECONDS, lambda: process.alive or process.start(), context=Context())


class CrashBefore(Crash):
    before = True


class LateWebhook(NoEffect):
    """A replica of the webhook that receives no events for seconds, so that its own decisions stay unconfirmed."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        injector.hold(request.writer, "", HOLD_SECONDS)
        await injector.world.clock.sleep(ONE_WAY)
        return await serve()


class OldView(Crash):
    """A crash after a write, and a restart from a bus that does not have the write yet."""

    def end(self, injector: FaultInjector, writer: str) -> None:
        injector.hold("watcher-0", "", FAILOVER_SECONDS + HOLD_SECONDS)
        super().end(injector, writer)


class Straggle(Crash):
    """A crash of a process whose last request arrives long after its successor has started work."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        self.end(injector, request.writer)
        await injector.world.clock.sleep(FAILOVER_SECONDS + STRAGGLE_SECONDS)
        return await serve()


class Pause(NoEffect):
    """A pause of the process (SIGSTOP) as its request is sent, until long after its lease expired."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        process = injector.world.processes[request.writer]
        process.pause()
        injector.world.loop.call_later(PAUSE_SECONDS, process.resume)
        await injector.world.clock.sleep(ONE_WAY)
        return await serve()


class Lose(NoEffect):
    """A broken connection: before the request arrives, or (`served`) before the reply does."""

    served = False

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        await injector.world.clock.sleep(ONE_WAY)
        if self.served:
            await serve()
        await injector.world.clock.sleep(ONE_WAY)
        raise Unreachable(f"{request.verb} {request.resource.plural}: connection reset by peer")


class LoseReply(Lose):
    served = True


class Refuse(NoEffect):
    """An error of the apiserver, without an effect of the request or (`served`) after it."""

    code, reason, retry_after, served = 409, "Conflict", 0.0, False

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        await injector.world.clock.sleep(ONE_WAY)
        if self.served:
            await serve()
        await injector.world.clock.sleep(ONE_WAY)
        raise ApiError(self.code, self.reason, f"simulated: {self.reason}", self.retry_after)


class Throttle(Refuse):
    code, reason, retry_after = 429, "TooManyRequests", 1.0


class Fail(Refuse):
    code, reason = 500, "InternalError"


class TimeOut(Refuse):
    code, reason, served = 504, "Timeout", True


class Hold(NoEffect):
    """A delay of the watcher's events of one resource while everything else goes on."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        injector.hold("watcher-0", self.fault.resource, HOLD_SECONDS)
        await injector.world.clock.sleep(ONE_WAY)
        reply = await serve()
        await injector.world.clock.sleep(ONE_WAY)
        return reply

    def moment(self, injector: FaultInjector) -> None:
        injector.hold("watcher-0", self.fault.resource, HOLD_SECONDS)


class Expire(NoEffect):
    """An expired watch: 410 instead of an event."""

    def event(self, injector: FaultInjector, request: Request) -> None:
        raise ApiError(410, "Expired", "simulated: too old resource version")


class Cut(NoEffect):
    """A watch that breaks off before an event."""

    def event(self, injector: FaultInjector, request: Request) -> None:
        raise Unreachable("simulated: connection reset by peer")


class Stall(NoEffect):
    """A follow of one stream that stalls while its heartbeats go on, so that the service cannot notice it."""

    def moment(self, injector: FaultInjector) -> None:
        resource = next(one for one in published() if one.plural == self.fault.resource)
        for leader in leaders(injector.world):
            injector.world.bus.stall(leader, kube_stream(resource).name)


class Repeat(NoEffect):
    """A bus that for a moment delivers everything twice, late, or not at all."""

    unruly = Treatment(times=2)

    def treatment(self, hop: Hop) -> Treatment:
        """Disturb deliveries only: publishes are acknowledged."""
        return self.unruly if hop.way is Way.DELIVER else UNDISTURBED

    def moment(self, injector: FaultInjector) -> None:
        bus, usual = injector.world.bus, injector.world.bus.faults
        bus.faults = self
        injector.world.loop.call_later(UNRULY_SECONDS, setattr, bus, "faults", usual)


class Delay(Repeat):
    unruly = Treatment(delay=2.0)


class LoseMessages(Repeat):
    unruly = Treatment(times=0)


class Wipe(NoEffect):
    """The loss of everything on the bus."""

    def moment(self, injector: FaultInjector) -> None:
        injector.world.bus.wipe()


class CrashWatcher(Crash):
    """A crash of the watcher when the bus has stored its message."""

    def moment(self, injector: FaultInjector) -> None:
        self.end(injector, "watcher-0")


class CrashLeader(Crash):
    """A crash of the leaders before a user's action."""

    def moment(self, injector: FaultInjector) -> None:
        for leader in leaders(injector.world):
            self.end(injector, leader)


class KillBus(NoEffect):
    """A crash of the bus, permanent or (`back`) for a while."""

    back = False

    def moment(self, injector: FaultInjector) -> None:
        world = injector.world
        world.bus.kill()
        if self.back:
            world.loop.call_later(BLACKOUT_SECONDS, world.bus.revive)


class BlackOut(KillBus):
    back = True


def leaders(world: World) -> list[str]:
    """Return the first replica of each service of the scenario."""
    return [name for name in world.processes if name.endswith("-0") and name != "watcher-0"]
