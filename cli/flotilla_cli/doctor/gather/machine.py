"""What this machine knows: the local set's processes, and which nodes have credentials for the bus."""

from collections.abc import Sequence
from pathlib import Path

from flotilla_cli.cluster import status
from flotilla_cli.cluster.bus_users import BusUsers
from flotilla_cli.cluster.local_set import LocalSet
from flotilla_cli.cluster.status import Health
from flotilla_common.clock import Clock


async def processes(found: LocalSet | None, clock: Clock) -> Sequence[Health]:
    """Those that the set should have; none where it is not a local set."""
    return await status.check(Path(found.kubeconfig).parent, clock) if found else []


def enrolled(nats_creds: str) -> frozenset[str]:
    """The nodes that were given credentials by the bus whose people's credentials lie here."""
    folder = Path(nats_creds)
    return frozenset(BusUsers(folder.parent.parent).nodes()) if nats_creds and folder.is_dir() else frozenset()
