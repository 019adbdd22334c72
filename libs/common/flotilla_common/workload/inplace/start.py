"""The two writes that start an in-place update (common.md §9.5)."""

from collections.abc import Mapping
from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Chain, Notice
from flotilla_common.gates import Gates
from flotilla_common.workload.inplace.spec import UpdateSpec


def start(
    pod: Pod,
    spec: UpdateSpec,
    *,
    revision_labels: Mapping[str, str],
    gates: Gates,
    server_version: str,
    now: datetime,
    grace_seconds: int = 0,
    lifecycle_state: str = "Updating",
    on_success: Notice | None = None,
    on_failure: Notice | None = None,
) -> Chain:
    """Make the pod NotReady, then change it.

    `revision_labels` put the pod on the target revision. `server_version` is the apiserver's gitVersion.
    `lifecycle_state` is empty for kinds without lifecycle. Plan again after `grace_seconds`.
    """
    raise NotImplementedError
