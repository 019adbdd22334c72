"""What every pass does for every active pod: grace, batches, readiness, lifecycle (common.md §9.6, §8.4)."""

from collections.abc import Mapping
from datetime import datetime

from flotilla_common.api.cloneset import Lifecycle
from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Chain, Frozen
from flotilla_common.gates import Gates


class Refresh(Frozen):
    """The outcome for one pod."""

    chain: Chain = ()
    wait_seconds: int = 0  # plan again after this many seconds; 0 is no wish
    lifecycle_written: bool = False  # a lifecycle state or a back-filled label: the update step waits for the next pass


IDLE = Refresh()


def refresh(
    pod: Pod,
    *,
    lifecycle: Lifecycle | None,
    on_target: bool,
    wanted: bool,
    gates: Gates,
    server_version: str,
    now: datetime,
    backfill: Mapping[str, str] | None = None,
) -> Refresh:
    """Bring one active pod forward.

    `on_target`: its revision label is the update revision's. `wanted`: it waits for an update, so a half-started one is
    not undone. `backfill`: labels to set along when they are missing.
    """
    raise NotImplementedError
