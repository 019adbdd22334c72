"""What all parts of the agent work with."""

import msgspec

from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock, Entropy
from flotilla_nodeagent.channel.reporting import Reporter
from flotilla_nodeagent.cri.runtimes import Runtimes
from flotilla_nodeagent.endpoints import Status


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """The node that the agent is on, its way to the bus, and its container runtimes."""

    node: str
    bus: Bus
    clock: Clock
    entropy: Entropy
    status: Status
    runtimes: Runtimes
    reporter: Reporter
