"""The catalogue of faults: the effect of each at its point, the world that it needs, and the delay that it excuses.

`outage` is how long (fake seconds) after the point the fault is over; from then on everything has to converge within
ten seconds. `lag` is how far behind a controller's view may be because of it.
"""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from flotilla_common.api.kinds import catalogue
from flotilla_common.bus.jetstream import DELIVERY_HEARTBEAT_SECONDS
from flotilla_nodeagent.pulling import AWAY_PAUSE
from flotilla_nodeagent.reader import SILENCE_SECONDS as READER_SILENCE
from flotilla_nodeagent.reporting import ANSWER_SECONDS
from flotilla_watcher.resource_watch import GUARD_SECONDS, MARKER_BEATS
from tests.simulation.nodes.agent import NAME as AGENT
from tests.simulation.oracles.view import VISIBILITY_LAG
from tests.simulation.perturbation import agent_faults, service_faults, timing_faults
from tests.simulation.perturbation.agent_faults import LATE_SECONDS
from tests.simulation.perturbation.fault import Fault, Place, Point
from tests.simulation.perturbation.fault_injector import Effect, FaultInjector
from tests.simulation.perturbation.kubelet_faults import LATE_FOR_SECONDS, SLOW_FOR_SECONDS, HalfBegun, LateReports
from tests.simulation.perturbation.service_faults import (
    BLACKOUT_SECONDS,
    FAILOVER_SECONDS,
    HOLD_SECONDS,
    PAUSE_SECONDS,
    UNRULY_SECONDS,
)
from tests.simulation.perturbation.timing_faults import QUEUE_SECONDS
from tests.simulation.world import RESTART_SECONDS

HOUR = 3600.0

MARKER_SECONDS = MARKER_BEATS * GUARD_SECONDS
"""Fake seconds until the next marker."""

RESTORE_SECONDS = 2 * FAILOVER_SECONDS
"""Fake seconds until all processes have noticed that etcd was restored, and have started over; some do it twice."""

REFILL_SECONDS = 2.0
"""Fake seconds until a wiped bus is filled again: clients reconnect, and every stream is taken over."""

SILENCE_SECONDS = ANSWER_SECONDS + 1.0
"""Fake seconds until an agent's request times out, and it reports again."""

AGENT_SECONDS = RESTART_SECONDS + 5.5
"""Fake seconds until a restarted agent has read everything; it may have to ask the watcher twice."""

UNHEARD_SECONDS = READER_SILENCE + 2.0
"""Fake seconds until an agent notices that deliveries have stopped, and requests them again."""

GAP_SECONDS = UNRULY_SECONDS + DELIVERY_HEARTBEAT_SECONDS + 1.0
"""Fake seconds until a heartbeat shows an agent that it missed a delivery, and it requests it again."""

AWAY_SECONDS = AWAY_PAUSE + 1.0
"""Fake seconds until an agent tries its runtime again after an outage."""


class Setting(msgspec.Struct, frozen=True):
    """The properties of a world that a fault needs."""

    replicas: int = 1  # of the service
    watchers: int = 1  # two of them share the resources
    skew: float = 0.0  # seconds by which the second replica's wall clock is ahead


CONTROLLERS = "*"
"""The placeholder for the services of the scenario."""


class FaultKind(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the catalogue."""

    effect: Callable[[Fault], Effect]
    place: Place
    setting: Setting = Setting()
    outage: float = 0.5
    lag: float = VISIBILITY_LAG
    services: Sequence[str] = (CONTROLLERS,)  # whose points these are; "" for the bus and the scenario
    per_resource: bool = False  # once for every resource whose events matter
    per_copied: bool = False  # once for every one of these that nodes get copies of
    with_agents: bool = False  # concerns nobody else
    ends_channel: bool = False  # node agents can do nothing from then on
    redone: bool = False  # what was done is done again: not for exact scenarios, and not where there are agents
    swept: bool = True  # at every point of every scenario; others are for tests of their own, and for exploration
    drawn: bool = True  # by the exploration


BOTH = (CONTROLLERS, "watcher")
WEBHOOK = ("webhook",)
WRITERS = (CONTROLLERS, *WEBHOOK)
NO_WRITER = ("",)
AGENTS = (AGENT,)

LATE = HOLD_SECONDS + VISIBILITY_LAG

FAULT_KINDS: Mapping[str, FaultKind] = {
    "crash-before": FaultKind(
        effect=service_faults.CrashBefore, place=Place.WRITE, outage=FAILOVER_SECONDS, services=BOTH, lag=6
    ),
    "crash-after": FaultKind(
        effect=service_faults.Crash, place=Place.WRITE, outage=FAILOVER_SECONDS, services=BOTH, lag=6
    ),
    "request-lost": FaultKind(effect=service_faults.Lose, place=Place.WRITE, services=WRITERS),
    "reply-lost": FaultKind(effect=service_faults.LoseReply, place=Place.WRITE, services=(*BOTH, *WEBHOOK), lag=2),
    "conflict": FaultKind(effect=service_faults.Refuse, place=Place.WRITE, services=(*BOTH, *WEBHOOK), lag=4),
    # All writes wait for a second, those of the same pass included, then the key does.
    "throttled": FaultKind(
        effect=service_faults.Throttle,
        place=Place.WRITE,
        services=WRITERS,
        outage=2.5,
        lag=service_faults.Throttle.retry_after + VISIBILITY_LAG,
    ),
    "error": FaultKind(effect=service_faults.Fail, place=Place.WRITE, services=WRITERS),
    "timeout": FaultKind(effect=service_faults.TimeOut, place=Place.WRITE, services=WRITERS),
    "webhook-late": FaultKind(
        effect=service_faults.LateWebhook,
        place=Place.WRITE,
        services=WEBHOOK,
        outage=HOLD_SECONDS,
        lag=LATE,
        drawn=False,
    ),
    "old-view": FaultKind(
        effect=service_faults.OldView,
        place=Place.WRITE,
        outage=FAILOVER_SECONDS + HOLD_SECONDS,
        lag=FAILOVER_SECONDS + LATE,
    ),
    "paused": FaultKind(
        effect=service_faults.Pause, place=Place.WRITE, setting=Setting(replicas=2), outage=PAUSE_SECONDS
    ),
    "skewed": FaultKind(
        effect=service_faults.CrashLeader,
        place=Place.STEP,
        setting=Setting(2, skew=HOUR),
        outage=FAILOVER_SECONDS,
        lag=6,
        services=NO_WRITER,
    ),
    "held": FaultKind(effect=service_faults.Hold, place=Place.WRITE, outage=HOLD_SECONDS, lag=LATE, per_resource=True),
    "held-from": FaultKind(
        effect=service_faults.Hold,
        place=Place.STEP,
        outage=HOLD_SECONDS,
        lag=LATE,
        services=NO_WRITER,
        per_resource=True,
    ),
    "expired": FaultKind(
        effect=service_faults.Expire, place=Place.EVENT, outage=1, lag=1, services=("watcher", *WEBHOOK)
    ),
    "cut": FaultKind(effect=service_faults.Cut, place=Place.EVENT, outage=1, lag=1, services=("watcher",), swept=False),
    "wiped": FaultKind(
        effect=service_faults.Wipe,
        place=Place.MESSAGE,
        outage=REFILL_SECONDS,
        lag=REFILL_SECONDS + 1,
        services=NO_WRITER,
    ),
    "watcher-crash": FaultKind(
        effect=service_faults.CrashWatcher,
        place=Place.MESSAGE,
        outage=FAILOVER_SECONDS,
        lag=FAILOVER_SECONDS + 1,
        services=NO_WRITER,
    ),
    "slipped-in": FaultKind(
        effect=timing_faults.SlipIn,
        place=Place.STEP,
        outage=MARKER_SECONDS + FAILOVER_SECONDS + 2,
        lag=FAILOVER_SECONDS + 2,
        services=NO_WRITER,
        per_resource=True,
        drawn=False,
    ),
    "queued": FaultKind(
        effect=timing_faults.Queue,
        place=Place.WRITE,
        setting=Setting(replicas=2),
        outage=QUEUE_SECONDS + 2,
        lag=6,
        drawn=False,
    ),
    "restored": FaultKind(
        effect=timing_faults.Restore,
        place=Place.WRITE,
        outage=RESTORE_SECONDS,
        lag=RESTORE_SECONDS,
        redone=True,
        drawn=False,
    ),
    "straggler": FaultKind(
        effect=service_faults.Straggle, place=Place.WRITE, outage=FAILOVER_SECONDS + 2, lag=6, swept=False, drawn=False
    ),
    "stalled": FaultKind(
        effect=service_faults.Stall, place=Place.STEP, outage=15, lag=16, services=NO_WRITER, per_resource=True
    ),
    "repeated": FaultKind(effect=service_faults.Repeat, place=Place.MESSAGE, lag=1, services=NO_WRITER, swept=False),
    "delayed": FaultKind(
        effect=service_faults.Delay, place=Place.MESSAGE, outage=3, lag=3, services=NO_WRITER, swept=False
    ),
    "messages-lost": FaultKind(
        effect=service_faults.LoseMessages, place=Place.MESSAGE, outage=15, lag=16, services=NO_WRITER, swept=False
    ),
    "agent-crash-before": FaultKind(
        effect=agent_faults.CrashAgentBefore, place=Place.CALL, outage=AGENT_SECONDS, services=AGENTS, drawn=False
    ),
    "agent-crash-after": FaultKind(
        effect=agent_faults.CrashAgent, place=Place.CALL, outage=AGENT_SECONDS, services=AGENTS, drawn=False
    ),
    "runtime-away": FaultKind(
        effect=agent_faults.LoseRuntime, place=Place.CALL, outage=AWAY_SECONDS, services=AGENTS, drawn=False
    ),
    "agent-crash-reporting": FaultKind(
        effect=agent_faults.CrashReporting, place=Place.REPORT, outage=AGENT_SECONDS, services=AGENTS, drawn=False
    ),
    "report-lost": FaultKind(
        effect=agent_faults.LoseReport, place=Place.REPORT, outage=SILENCE_SECONDS, services=AGENTS, drawn=False
    ),
    "answer-lost": FaultKind(
        effect=agent_faults.LoseAnswer, place=Place.REPORT, outage=SILENCE_SECONDS, services=AGENTS, drawn=False
    ),
    "report-twice": FaultKind(effect=agent_faults.RepeatReport, place=Place.REPORT, services=AGENTS, drawn=False),
    "report-late": FaultKind(
        effect=agent_faults.DelayReport,
        place=Place.REPORT,
        outage=LATE_SECONDS + SILENCE_SECONDS,
        services=AGENTS,
        drawn=False,
    ),
    "agent-paused": FaultKind(
        effect=agent_faults.PauseAgent,
        place=Place.REPORT,
        outage=PAUSE_SECONDS + AGENT_SECONDS,
        services=AGENTS,
        drawn=False,
    ),
    "copies-lost": FaultKind(
        effect=agent_faults.LoseCopies,
        place=Place.MESSAGE,
        outage=GAP_SECONDS,
        lag=GAP_SECONDS + 1,
        services=NO_WRITER,
        with_agents=True,
        drawn=False,
    ),
    "watcher-gone": FaultKind(
        effect=agent_faults.LoseWatcher,
        place=Place.CALL,
        setting=Setting(watchers=2),
        outage=FAILOVER_SECONDS,
        lag=FAILOVER_SECONDS + 1,
        services=AGENTS,
        per_copied=True,
        drawn=False,
    ),
    "watcher-gone-wiped": FaultKind(
        effect=agent_faults.LoseWatcherAndBus,
        place=Place.CALL,
        setting=Setting(watchers=2),
        outage=FAILOVER_SECONDS + UNHEARD_SECONDS,
        lag=FAILOVER_SECONDS + UNHEARD_SECONDS,
        services=AGENTS,
        per_copied=True,
        drawn=False,
    ),
    "half-begun": FaultKind(effect=HalfBegun, place=Place.WRITE, outage=SLOW_FOR_SECONDS, lag=6),
    "kubelet-late": FaultKind(effect=LateReports, place=Place.WRITE, outage=LATE_FOR_SECONDS),
    "bus-dead": FaultKind(
        effect=service_faults.KillBus, place=Place.STEP, outage=10, lag=11, services=NO_WRITER, ends_channel=True
    ),
    "bus-away": FaultKind(
        effect=service_faults.BlackOut,
        place=Place.STEP,
        outage=BLACKOUT_SECONDS + 3,
        lag=BLACKOUT_SECONDS + 3,
        services=NO_WRITER,
    ),
}
"""Every kind of fault by name."""


def copied() -> Sequence[str]:
    """Return the kinds whose objects are copied to node agents, by plural."""
    return [kind.resource.plural for kind in catalogue.KINDS if kind.node_route is not None]


def _concerns(kind: FaultKind, service: str, services: Sequence[str]) -> bool:
    return service in kind.services or (CONTROLLERS in kind.services and service in services)


def arm(injector: FaultInjector, fault: Fault) -> None:
    """Arm the injector with the fault."""
    kind = FAULT_KINDS[fault.kind]
    injector.arm(kind.place, fault.writer, fault.number, kind.effect(fault))


def outage(faults: Sequence[Fault]) -> float:
    """Return the fake seconds after the last point when all faults are over."""
    return sum(FAULT_KINDS[fault.kind].outage for fault in faults)


def visibility_lag(faults: Sequence[Fault]) -> float:
    """Return how far behind a controller's view may be, in fake seconds."""
    return max(sum(FAULT_KINDS[fault.kind].lag for fault in faults), VISIBILITY_LAG)


def setting_of(faults: Sequence[Fault]) -> Setting:
    """Return the world that the faults need."""
    return max(
        (FAULT_KINDS[fault.kind].setting for fault in faults),
        key=lambda one: (one.replicas, one.watchers),
        default=Setting(),
    )


def faults_at(
    points: Sequence[Point],
    setting: Setting,
    services: Sequence[str] = ("cloneset",),
    agents: int = 0,
    *,
    exact: bool = True,
) -> list[Fault]:
    """Yield every fault at every point of an undisturbed run in worlds of this setting.

    `services`: those of the scenario, beside the watcher and this many node agents; `exact`: its writes are compared.
    """
    watched = sorted(
        {point.resource for point in points if point.place is Place.EVENT and point.writer.startswith("watcher")}
    )
    return [
        Fault(name, point.writer, point.number, resource)
        for name, kind in FAULT_KINDS.items()
        if kind.setting == setting and kind.swept and not (kind.ends_channel if agents else kind.with_agents)
        if not (kind.redone and (exact or agents))
        for point in points
        if point.place is kind.place and _concerns(kind, point.writer.rpartition("-")[0], services)
        for resource in _resources(kind, watched)
    ]


def _resources(kind: FaultKind, watched: Sequence[str]) -> Sequence[str]:
    if kind.per_resource:
        return watched
    return [one for one in copied() if one in watched] if kind.per_copied else [""]
