"""What a process says of itself while it lives: `heartbeat.v1.<service>.<replica>`, every five seconds, kept nowhere.

Services and node agents write it, `flotilla doctor` reads it. What a service does not say reads as empty, so that those
of another release can be read, too.
"""

from datetime import datetime
from importlib.metadata import version

from flotilla_common.api.documents import Json
from flotilla_common.api.meta import Model

HEARTBEAT_SECONDS = 5.0
"""How often a replica says that it lives."""

VERSION = version("flotilla-common")
"""The release that runs."""

NODE_AGENT = "nodeagent"
"""The service that node agents say they are; the replica is the node."""


class Heartbeat(Model):
    """One heartbeat."""

    service: str
    replica: str
    version: str = ""
    at: datetime | None = None  # by the sender's clock
    waiting: dict[str, str] = {}  # what /readyz shows: parts that are not ready, and why
    holder: str = ""  # under which name it holds leases
    gates: str | None = None  # those that differ from the defaults; None: it does not say
    kinds: str = ""  # CUSTOM_RESOURCE_ENABLE
    shards: list[int] = []  # that it serves
    resources: list[str] = []  # that it publishes
    lag: float = 0.0  # seconds since its tables were surely up to date, of the one that is furthest behind
    direct: list[str] = []  # resources that it watches by itself, because the bus is away
    undecodable: dict[str, int] = {}  # objects that are set aside, by resource
    certificate_end: datetime | None = None  # of the certificate that it serves with
    checks_callers: bool | None = None  # it answers the apiserver only; None: it does not say
    planning: Json = {}  # what decides about plans besides objects, by the plural of the kind
