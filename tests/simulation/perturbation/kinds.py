"""The catalogue of faults: what each does at its point, what world it needs, and how much it excuses.

`outage` is how long (fake seconds) after the point the fault is over; from then on everything has to come right within
ten seconds. `blind` is how far behind a controller's view may be because of it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import Context
from typing import TypeVar

import msgspec

from flotilla_common.bus.nats import ACK_SECONDS
from flotilla_common.bus.subjects import kube_stream
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_nodeagent.channel.reporting import ANSWER_SECONDS
from flotilla_nodeagent.cri.errors import Unavailable
from flotilla_nodeagent.images.pull import AWAY_PAUSE
from flotilla_watcher.app import RESOURCES
from tests.simulation.apiserver.wire import ONE_WAY, Request
from tests.simulation.bus.faults import FINE, Fate, Passage, Way
from tests.simulation.nodes.agent import NAME as AGENT
from tests.simulation.oracles.scene import SIGHT
from tests.simulation.perturbation.fault import Fault, Place, Point
from tests.simulation.perturbation.saboteur import Saboteur, Strike
from tests.simulation.world import World

T = TypeVar("T")
HOUR = 3600.0

CENTRAL = ("clonesets", "pods", "nodeimages", "imagepulljobs")
"""Resources that are held back from every write on; the others from every step on."""

RESTART_SECONDS = 0.5
"""How soon a crashed process is started again."""

FAILOVER_SECONDS = 5.5
"""Restart, the rest of the old lease (3 s), the next look at it, the take-over LIST."""

PAUSE_SECONDS = 8.0
"""Longer than a lease: somebody else has the shard when the paused process wakes up."""

STRAGGLE_SECONDS = 1.0
"""How much later than the failover a straggling request arrives."""

HOLD_SECONDS = 4.0
"""How long watch events are kept back: longer than everything else takes to go on."""

UNRULY_SECONDS = 0.01
"""How long the bus mistreats messages: a few of them."""

REFILL_SECONDS = ACK_SECONDS + 2.0
"""Until a wiped bus is filled again: an answer that was under way is waited for, then the stream is taken over anew."""

SILENCE_SECONDS = ANSWER_SECONDS + 1.0
"""How long an agent waits for an answer, and then until it reports again."""

AGENT_SECONDS = RESTART_SECONDS + 5.5
"""Until an agent that was started again has read everything; the watcher may have to be asked twice."""

AWAY_SECONDS = AWAY_PAUSE + 1.0
"""Until an agent looks again for a runtime that was away."""

LATE_SECONDS = 12.0
"""How late a report comes that is late."""

BLACKOUT_SECONDS = 11.0
"""How long the bus is away: longer than services wait before they list and watch by themselves."""


class Setting(msgspec.Struct, frozen=True):
    """What a world must be like for a fault."""

    replicas: int = 1  # of the service
    skew: float = 0.0  # seconds by which the second replica's wall clock is ahead


CONTROLLERS = "*"
"""Stands for the services of the scenario."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the catalogue."""

    strike: Callable[[Fault], Strike]
    place: Place
    setting: Setting = Setting()
    outage: float = 0.5
    blind: float = SIGHT
    services: Sequence[str] = (CONTROLLERS,)  # whose points these are; "" for the bus and the scenario
    per_resource: bool = False  # once for every resource whose events matter
    ends_channel: bool = False  # node agents can do nothing from then on
    swept: bool = True  # at every point of every scenario; others are for tests of their own, and for exploration
    drawn: bool = True  # by the exploration


class Passive:
    """A strike that does nothing; kinds override what they are about."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault

    async def write(self, saboteur: Saboteur, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        del saboteur, request
        return await serve()

    def event(self, saboteur: Saboteur, request: Request) -> None:
        del saboteur, request

    def moment(self, saboteur: Saboteur) -> None:
        del saboteur

    async def call(self, saboteur: Saboteur, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        del saboteur, agent
        return await serve()

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        del saboteur, agent
        return FINE


class Crash(Passive):
    """The process dies as its request leaves, or as the reply comes back. It is started again soon."""

    before = False

    async def write(self, saboteur: Saboteur, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        if self.before:
            self.end(saboteur, request.writer)
            raise Unreachable("the sender is dead", sent=False)
        await saboteur.world.clock.sleep(ONE_WAY)
        reply = await serve()
        self.end(saboteur, request.writer)
        return reply

    def end(self, saboteur: Saboteur, writer: str) -> None:
        """kill -9, and a restart."""
        world, process = saboteur.world, saboteur.world.processes[writer]
        process.crash()
        world.loop.call_later(RESTART_SECONDS, lambda: process.alive or process.start(), context=Context())


class CrashBefore(Crash):
    before = True


class OldView(Crash):
    """The process dies after its write and starts again from a bus that has not heard of it yet."""

    def end(self, saboteur: Saboteur, writer: str) -> None:
        saboteur.hold("watcher-0", "", FAILOVER_SECONDS + HOLD_SECONDS)
        super().end(saboteur, writer)


class Straggle(Crash):
    """The process dies, and its last request arrives only when its successor has been at work for a while."""

    async def write(self, saboteur: Saboteur, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        self.end(saboteur, request.writer)
        await saboteur.world.clock.sleep(FAILOVER_SECONDS + STRAGGLE_SECONDS)
        return await serve()


class Pause(Passive):
    """The process stands still (SIGSTOP) as its request leaves, until long after its lease ran out."""

    async def write(self, saboteur: Saboteur, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        process = saboteur.world.processes[request.writer]
        process.pause()
        saboteur.world.loop.call_later(PAUSE_SECONDS, process.resume)
        await saboteur.world.clock.sleep(ONE_WAY)
        return await serve()


class Lose(Passive):
    """The connection breaks: before the request arrives, or (`served`) before the reply does."""

    served = False

    async def write(self, saboteur: Saboteur, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        await saboteur.world.clock.sleep(ONE_WAY)
        if self.served:
            await serve()
        await saboteur.world.clock.sleep(ONE_WAY)
        raise Unreachable(f"{request.verb} {request.resource.plural}: connection reset by peer")


class LoseReply(Lose):
    served = True


class Refuse(Passive):
    """The apiserver answers with an error, without having done anything or (`served`) after it did."""

    code, reason, retry_after, served = 409, "Conflict", 0.0, False

    async def write(self, saboteur: Saboteur, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        await saboteur.world.clock.sleep(ONE_WAY)
        if self.served:
            await serve()
        await saboteur.world.clock.sleep(ONE_WAY)
        raise ApiError(self.code, self.reason, f"simulated: {self.reason}", self.retry_after)


class Throttle(Refuse):
    code, reason, retry_after = 429, "TooManyRequests", 1.0


class Fail(Refuse):
    code, reason = 500, "InternalError"


class TimeOut(Refuse):
    code, reason, served = 504, "Timeout", True


class Hold(Passive):
    """The watcher's events of one resource stay back while everything else goes on."""

    async def write(self, saboteur: Saboteur, request: Request, serve: Callable[[], Awaitable[T]]) -> T:
        saboteur.hold("watcher-0", self.fault.resource, HOLD_SECONDS)
        await saboteur.world.clock.sleep(ONE_WAY)
        reply = await serve()
        await saboteur.world.clock.sleep(ONE_WAY)
        return reply

    def moment(self, saboteur: Saboteur) -> None:
        saboteur.hold("watcher-0", self.fault.resource, HOLD_SECONDS)


class Expire(Passive):
    """The watch's history is gone: 410 instead of an event."""

    def event(self, saboteur: Saboteur, request: Request) -> None:
        raise ApiError(410, "Expired", "simulated: too old resource version")


class Cut(Passive):
    """The watch breaks off before an event."""

    def event(self, saboteur: Saboteur, request: Request) -> None:
        raise Unreachable("simulated: connection reset by peer")


class Stall(Passive):
    """The service's follow of one stream stands still, and its heartbeats go on: nobody tells it."""

    def moment(self, saboteur: Saboteur) -> None:
        resource = next(one for one in RESOURCES if one.plural == self.fault.resource)
        for leader in leaders(saboteur.world):
            saboteur.world.bus.stall(leader, kube_stream(resource).name)


class Repeat(Passive):
    """From its point on, for a moment, the bus delivers everything twice, late, or not at all."""

    unruly = Fate(times=2)

    def fate(self, passage: Passage) -> Fate:
        """Of deliveries only: publishes are acknowledged."""
        return self.unruly if passage.way is Way.DELIVER else FINE

    def moment(self, saboteur: Saboteur) -> None:
        bus, usual = saboteur.world.bus, saboteur.world.bus.faults
        bus.faults = self
        saboteur.world.loop.call_later(UNRULY_SECONDS, setattr, bus, "faults", usual)


class Delay(Repeat):
    unruly = Fate(delay=2.0)


class LoseMessages(Repeat):
    unruly = Fate(times=0)


class Wipe(Passive):
    """The bus loses everything."""

    def moment(self, saboteur: Saboteur) -> None:
        saboteur.world.bus.wipe()


class CrashWatcher(Crash):
    """The watcher dies when the bus has a message of it."""

    def moment(self, saboteur: Saboteur) -> None:
        self.end(saboteur, "watcher-0")


class CrashLeader(Crash):
    """The leaders die before a user's action."""

    def moment(self, saboteur: Saboteur) -> None:
        for leader in leaders(saboteur.world):
            self.end(saboteur, leader)


class KillBus(Passive):
    """The bus dies, for ever or (`back`) for a while."""

    back = False

    def moment(self, saboteur: Saboteur) -> None:
        world = saboteur.world
        world.bus.kill()
        if self.back:
            world.loop.call_later(BLACKOUT_SECONDS, world.bus.revive)


class BlackOut(KillBus):
    back = True


class CrashAgent(Crash):
    """A node agent dies when its runtime has done what it was asked for. It is started again soon."""

    async def call(self, saboteur: Saboteur, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        if not self.before:
            await serve()
        self.end(saboteur, agent)
        return await asyncio.get_running_loop().create_future()  # the dead hear no answer


class CrashAgentBefore(CrashAgent):
    before = True


class LoseRuntime(Passive):
    """The runtime goes down with what it was asked for, and is there again a moment later."""

    async def call(self, saboteur: Saboteur, agent: str, serve: Callable[[], Awaitable[T]]) -> T:
        await serve()
        raise Unavailable("simulated: connection lost")


class CrashReporting(Crash):
    """A node agent dies as its report leaves."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        saboteur.world.loop.call_soon(self.end, saboteur, agent, context=Context())
        return FINE


class LoseReport(Passive):
    """Nobody hears a report."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        return Fate(times=0)


class RepeatReport(Passive):
    """A report arrives twice."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        return Fate(times=2)


class DelayReport(Passive):
    """A report arrives when its sender has long given up waiting for an answer."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        return Fate(delay=LATE_SECONDS)


class LoseAnswer(Passive):
    """A report is taken, and its sender does not learn of it."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        saboteur.deafen(agent)
        return FINE


class PauseAgent(Passive):
    """A node agent stands still (SIGSTOP) once its report has left."""

    def report(self, saboteur: Saboteur, agent: str) -> Fate:
        process = saboteur.world.processes[agent]
        process.pause()
        saboteur.world.loop.call_later(PAUSE_SECONDS, process.resume, context=Context())
        return FINE


BOTH = (CONTROLLERS, "watcher")
NOBODY = ("",)
AGENTS = (AGENT,)
LATE = HOLD_SECONDS + SIGHT

KINDS: Mapping[str, Kind] = {
    "crash-before": Kind(strike=CrashBefore, place=Place.WRITE, outage=FAILOVER_SECONDS, services=BOTH, blind=6),
    "crash-after": Kind(strike=Crash, place=Place.WRITE, outage=FAILOVER_SECONDS, services=BOTH, blind=6),
    "request-lost": Kind(strike=Lose, place=Place.WRITE),
    "reply-lost": Kind(strike=LoseReply, place=Place.WRITE, services=BOTH, blind=2),
    "conflict": Kind(strike=Refuse, place=Place.WRITE, services=BOTH, blind=4),
    "throttled": Kind(strike=Throttle, place=Place.WRITE, outage=1.5),
    "error": Kind(strike=Fail, place=Place.WRITE),
    "timeout": Kind(strike=TimeOut, place=Place.WRITE),
    "old-view": Kind(
        strike=OldView,
        place=Place.WRITE,
        outage=FAILOVER_SECONDS + HOLD_SECONDS,
        blind=FAILOVER_SECONDS + LATE,
    ),
    "paused": Kind(strike=Pause, place=Place.WRITE, setting=Setting(2), outage=PAUSE_SECONDS),
    "skewed": Kind(
        strike=CrashLeader,
        place=Place.STEP,
        setting=Setting(2, HOUR),
        outage=FAILOVER_SECONDS,
        blind=6,
        services=NOBODY,
    ),
    "held": Kind(strike=Hold, place=Place.WRITE, outage=HOLD_SECONDS, blind=LATE, per_resource=True),
    "held-from": Kind(
        strike=Hold, place=Place.STEP, outage=HOLD_SECONDS, blind=LATE, services=NOBODY, per_resource=True
    ),
    "expired": Kind(strike=Expire, place=Place.EVENT, outage=1, blind=1, services=("watcher",)),
    "cut": Kind(strike=Cut, place=Place.EVENT, outage=1, blind=1, services=("watcher",), swept=False),
    "wiped": Kind(strike=Wipe, place=Place.MESSAGE, outage=REFILL_SECONDS, blind=REFILL_SECONDS + 1, services=NOBODY),
    "watcher-crash": Kind(
        strike=CrashWatcher, place=Place.MESSAGE, outage=FAILOVER_SECONDS, blind=FAILOVER_SECONDS + 1, services=NOBODY
    ),
    "straggler": Kind(
        strike=Straggle, place=Place.WRITE, outage=FAILOVER_SECONDS + 2, blind=6, swept=False, drawn=False
    ),
    "stalled": Kind(strike=Stall, place=Place.STEP, outage=15, blind=16, services=NOBODY, per_resource=True),
    "repeated": Kind(strike=Repeat, place=Place.MESSAGE, blind=1, services=NOBODY, swept=False),
    "delayed": Kind(strike=Delay, place=Place.MESSAGE, outage=3, blind=3, services=NOBODY, swept=False),
    "messages-lost": Kind(strike=LoseMessages, place=Place.MESSAGE, outage=15, blind=16, services=NOBODY, swept=False),
    "agent-crash-before": Kind(strike=CrashAgentBefore, place=Place.CALL, outage=AGENT_SECONDS, services=AGENTS),
    "agent-crash-after": Kind(strike=CrashAgent, place=Place.CALL, outage=AGENT_SECONDS, services=AGENTS),
    "runtime-away": Kind(strike=LoseRuntime, place=Place.CALL, outage=AWAY_SECONDS, services=AGENTS),
    "agent-crash-reporting": Kind(strike=CrashReporting, place=Place.REPORT, outage=AGENT_SECONDS, services=AGENTS),
    "report-lost": Kind(strike=LoseReport, place=Place.REPORT, outage=SILENCE_SECONDS, services=AGENTS),
    "answer-lost": Kind(strike=LoseAnswer, place=Place.REPORT, outage=SILENCE_SECONDS, services=AGENTS),
    "report-twice": Kind(strike=RepeatReport, place=Place.REPORT, services=AGENTS),
    "report-late": Kind(strike=DelayReport, place=Place.REPORT, outage=LATE_SECONDS + SILENCE_SECONDS, services=AGENTS),
    "agent-paused": Kind(strike=PauseAgent, place=Place.REPORT, outage=PAUSE_SECONDS + AGENT_SECONDS, services=AGENTS),
    "bus-dead": Kind(strike=KillBus, place=Place.STEP, outage=10, blind=11, services=NOBODY, ends_channel=True),
    "bus-away": Kind(
        strike=BlackOut, place=Place.STEP, outage=BLACKOUT_SECONDS + 3, blind=BLACKOUT_SECONDS + 3, services=NOBODY
    ),
}
"""Every kind of fault by name."""


def _concerns(kind: Kind, service: str, services: Sequence[str]) -> bool:
    return service in kind.services or (CONTROLLERS in kind.services and service in services)


def arm(saboteur: Saboteur, fault: Fault) -> None:
    """Have the fault committed."""
    kind = KINDS[fault.kind]
    saboteur.arm(kind.place, fault.writer, fault.number, kind.strike(fault))


def outage(faults: Sequence[Fault]) -> float:
    """Fake seconds after the last of the points at which all of it is over."""
    return sum(KINDS[fault.kind].outage for fault in faults)


def blindness(faults: Sequence[Fault]) -> float:
    """How far behind a controller's view may be, in fake seconds."""
    return max(sum(KINDS[fault.kind].blind for fault in faults), SIGHT)


def setting_of(faults: Sequence[Fault]) -> Setting:
    """The world that the faults need."""
    return max((KINDS[fault.kind].setting for fault in faults), key=lambda one: one.replicas, default=Setting())


def leaders(world: World) -> list[str]:
    """The first replica of each service of the scenario."""
    return [name for name in world.processes if name.endswith("-0") and name != "watcher-0"]


def faults_at(points: Sequence[Point], setting: Setting, services: Sequence[str] = ("cloneset",)) -> list[Fault]:
    """Every fault at every point of an undisturbed run in worlds of this setting. `services`: those of the scenario,
    beside the watcher and the node agents."""
    agents = any(point.place is Place.REPORT for point in points)
    watched = sorted({point.resource for point in points if point.place is Place.EVENT and point.writer == "watcher-0"})
    central = [resource for resource in watched if resource in CENTRAL]
    return [
        Fault(name, point.writer, point.number, resource)
        for name, kind in KINDS.items()
        if kind.setting == setting and kind.swept and not (kind.ends_channel and agents)
        for point in points
        if point.place is kind.place and _concerns(kind, point.writer.rpartition("-")[0], services)
        for resource in ((central if kind.place is Place.WRITE else watched) if kind.per_resource else [""])
    ]
