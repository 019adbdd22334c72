"""The resources that all parts of the agent share."""

import msgspec

from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock, Entropy
from flotilla_nodeagent.cri.runtimes import Runtimes
from flotilla_nodeagent.endpoints import Status
from flotilla_nodeagent.reporting import Reporter


class AgentContext(msgspec.Struct, frozen=True, kw_only=True):
    """The node of the agent, its connection to the bus, and its container runtimes."""

    node: str
    bus: Bus
    clock: Clock
    entropy: Entropy
    status: Status
    runtimes: Runtimes
    reporter: Reporter
