"""What faults do at their points: the network, the apiserver and the bus of the services.

Each class is a `Strike` for one entry of the catalogue (`catalogue.py`).
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
"""Restart, the rest of the old lease (3 s), the next look at it, the resync."""

PAUSE_SECONDS = 8.0
"""Longer than a lease: somebody else has the shard when the paused process wakes up."""

STRAGGLE_SECONDS = 1.0
"""How much later than the failover a straggling request arrives."""

HOLD_SECONDS = 4.0
"""How long watch events are kept back: longer than everything else takes to go on."""

UNRULY_SECONDS = 0.01
"""How long the bus mistreats messages: a few of them."""

BLACKOUT_SECONDS = 11.0
"""How long the bus is away: longer than services wait before they list and watch by themselves."""


class NoEffect:
    """A strike that does nothing; kinds override what they are about."""

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
    """The process dies as its request leaves, or as the reply comes back. It is started again soon."""

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
        """kill -9, and a restart."""
        world, process = injector.world, injector.world.processes[writer]
        process.crash()
        world.loop.call_later(RESTART_SECONDS, lambda: process.alive or process.start(), context=Context())


class CrashBefore(Crash):
    before = True


class LateWebhook(NoEffect):
    """The replica of the webhook does not hear for seconds what becomes of what it remembers."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        injector.hold(request.writer, "", HOLD_SECONDS)
        await injector.world.clock.sleep(ONE_WAY)
        return await serve()


class OldView(Crash):
    """The process dies after its write and starts again from a bus that has not heard of it yet."""

    def end(self, injector: FaultInjector, writer: str) -> None:
        injector.hold("watcher-0", "", FAILOVER_SECONDS + HOLD_SECONDS)
        super().end(injector, writer)


class Straggle(Crash):
    """The process dies, and its last request arrives only when its successor has been at work for a while."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        self.end(injector, request.writer)
        await injector.world.clock.sleep(FAILOVER_SECONDS + STRAGGLE_SECONDS)
        return await serve()


class Pause(NoEffect):
    """The process stands still (SIGSTOP) as its request leaves, until long after its lease ran out."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        process = injector.world.processes[request.writer]
        process.pause()
        injector.world.loop.call_later(PAUSE_SECONDS, process.resume)
        await injector.world.clock.sleep(ONE_WAY)
        return await serve()


class Lose(NoEffect):
    """The connection breaks: before the request arrives, or (`served`) before the reply does."""

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
    """The apiserver answers with an error, without having done anything or (`served`) after it did."""

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
    """The watcher's events of one resource stay back while everything else goes on."""

    async def write(self, injector: FaultInjector, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        injector.hold("watcher-0", self.fault.resource, HOLD_SECONDS)
        await injector.world.clock.sleep(ONE_WAY)
        reply = await serve()
        await injector.world.clock.sleep(ONE_WAY)
        return reply

    def moment(self, injector: FaultInjector) -> None:
        injector.hold("watcher-0", self.fault.resource, HOLD_SECONDS)


class Expire(NoEffect):
    """The watch's history is gone: 410 instead of an event."""

    def event(self, injector: FaultInjector, request: Request) -> None:
        raise ApiError(410, "Expired", "simulated: too old resource version")


class Cut(NoEffect):
    """The watch breaks off before an event."""

    def event(self, injector: FaultInjector, request: Request) -> None:
        raise Unreachable("simulated: connection reset by peer")


class Stall(NoEffect):
    """The service's follow of one stream stands still, and its heartbeats go on: nobody tells it."""

    def moment(self, injector: FaultInjector) -> None:
        resource = next(one for one in published() if one.plural == self.fault.resource)
        for leader in leaders(injector.world):
            injector.world.bus.stall(leader, kube_stream(resource).name)


class Repeat(NoEffect):
    """From its point on, for a moment, the bus delivers everything twice, late, or not at all."""

    unruly = Treatment(times=2)

    def treatment(self, hop: Hop) -> Treatment:
        """Of deliveries only: publishes are acknowledged."""
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
    """The bus loses everything."""

    def moment(self, injector: FaultInjector) -> None:
        injector.world.bus.wipe()


class CrashWatcher(Crash):
    """The watcher dies when the bus has a message of it."""

    def moment(self, injector: FaultInjector) -> None:
        self.end(injector, "watcher-0")


class CrashLeader(Crash):
    """The leaders die before a user's action."""

    def moment(self, injector: FaultInjector) -> None:
        for leader in leaders(injector.world):
            self.end(injector, leader)


class KillBus(NoEffect):
    """The bus dies, for ever or (`back`) for a while."""

    back = False

    def moment(self, injector: FaultInjector) -> None:
        world = injector.world
        world.bus.kill()
        if self.back:
            world.loop.call_later(BLACKOUT_SECONDS, world.bus.revive)


class BlackOut(KillBus):
    back = True


def leaders(world: World) -> list[str]:
    """The first replica of each service of the scenario."""
    return [name for name in world.processes if name.endswith("-0") and name != "watcher-0"]
