"""What has become of the pods of a BroadcastJob (broadcastjob.md §5.1)."""

from collections.abc import Iterable, Sequence

import msgspec

from flotilla_common.api.core import Pod

ON_FAILURE = "OnFailure"


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The pods, sorted out."""

    active: Sequence[Pod]
    succeeded: int
    failed: Sequence[Pod]  # those that restarted too often included, although they may go on


def count(pods: Iterable[Pod], restart_limit: int) -> Counts:
    """Sort the pods out. One on its way out counts only if it has ended before."""
    active: list[Pod] = []
    failed: list[Pod] = []
    succeeded = 0
    for pod in pods:
        if pod.status.phase == "Succeeded":
            succeeded += 1
        elif pod.status.phase == "Failed":
            failed.append(pod)
        elif pod.metadata.deletion_timestamp is None:
            (failed if _gave_up(pod, restart_limit) else active).append(pod)
    return Counts(active=active, succeeded=succeeded, failed=failed)


def _gave_up(pod: Pod, restart_limit: int) -> bool:
    if pod.spec.restart_policy != ON_FAILURE:
        return False
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return sum(status.restart_count for status in statuses) > restart_limit
