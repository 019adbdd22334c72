"""The order in which the domains are asked for the cause of a pod."""

from collections.abc import Iterator

from flotilla_common.api.core import Pod
from flotilla_common.workload.causes.cause import NOTHING, Around, Cause
from flotilla_common.workload.causes.containers import containers_cause
from flotilla_common.workload.causes.ending import has_done_its_work, over_cause, terminating_cause
from flotilla_common.workload.causes.gates import (
    gate_cause,
    hook_cause,
    normal_cause,
    ready_soon_cause,
    unready_cause,
    update_cause,
)
from flotilla_common.workload.causes.nodes import node_cause
from flotilla_common.workload.causes.scheduling import scheduling_cause
from flotilla_common.workload.causes.starting import starting_cause


def cause_of(pod: Pod, around: Around = NOTHING) -> Cause | None:
    """The root cause why the pod does not serve (yet): the first that somebody has to do something about, else the
    first thing that is under way. None if nothing is known against it."""
    if has_done_its_work(pod):
        return None
    for alone in (over_cause, terminating_cause, scheduling_cause):
        if (cause := alone(pod, around)) is not None:
            return cause
    return min(_causes(pod, around), key=lambda cause: not cause.stuck, default=None) or unready_cause(pod)


def _causes(pod: Pod, around: Around) -> Iterator[Cause]:
    """Of a pod that has a node, and is to stay."""
    found = (
        hook_cause(pod, around),
        node_cause(pod, around),
        containers_cause(pod, around),
        starting_cause(pod, around),
        update_cause(pod, around),
        gate_cause(pod),
        ready_soon_cause(pod, around),
        normal_cause(pod, around),
    )
    return (cause for cause in found if cause is not None)
