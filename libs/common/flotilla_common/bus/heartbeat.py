"""The heartbeat of a process: `heartbeat.v1.<service>.<replica>`, every five seconds, not stored.

Services and node agents send it, `flotilla doctor` reads it. Fields that a service does not send read as empty, so that
heartbeats of other releases can be read.
"""

from datetime import datetime
from importlib.metadata import version

from flotilla_common.api.documents import Json
from flotilla_common.api.meta import Model

HEARTBEAT_SECONDS = 5.0
"""Interval between two heartbeats of a replica."""

VERSION = version("flotilla-common")
"""The running release."""

NODE_AGENT = "nodeagent"
"""The service name in heartbeats of node agents; their replica is the node."""


class Heartbeat(Model):
    """The content of one heartbeat."""

    service: str
    replica: str
    version: str = ""
    at: datetime | None = None  # by the sender's clock
    waiting: dict[str, str] = {}  # parts that are not ready, and why, as in /readyz
    holder: str = ""  # the identity under which it holds leases
    gates: str | None = None  # feature gates that differ from the defaults; None: not reported
    kinds: str = ""  # CUSTOM_RESOURCE_ENABLE
    shards: list[int] = []  # shards that it serves
    resources: list[str] = []  # resources that it publishes
    idle: dict[str, str] = {}  # why it publishes fewer pods than its setting says, by resource
    lag: float = 0.0  # seconds since its tables were surely up to date, for the table that is furthest behind
    direct: list[str] = []  # resources that it watches directly, because the bus is away
    undecodable: dict[str, int] = {}  # number of objects that it cannot decode, by resource
    certificate_end: datetime | None = None  # expiry of its serving certificate
    checks_callers: bool | None = None  # whether it accepts requests of the apiserver only; None: not reported
    planning: Json = {}  # inputs of plans besides objects, by the plural of the kind
