"""The first readiness condition of pods, without which they would never become Ready (common.md §6.2).

It is written right behind the create, before a node knows of the pod: so the kubelet finds it, and need not write its
own status a second time. A pod whose condition got lost on the way gets it from a later pass.
"""

from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import POD_READY
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.control.draft import MAX_CHAINS_PER_PASS, Draft
from flotilla_common.control.plan import Create, Intent, Patch, PatchType
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.readiness import ensure_pod_ready
from flotilla_jobs.broadcastjob.context import PlanContext

_CAUSE = "first readiness"


def first_readiness(create: Create, now: datetime) -> Patch:
    """The write that follows the create of a pod with the gate."""
    condition = {"type": POD_READY, "status": "True", "lastTransitionTime": rfc3339(now)}
    return Patch(
        resource=POD,
        namespace=create.namespace,
        name=create.name,
        intent=Intent.REFRESH,
        cause=_CAUSE,
        body={"status": {"conditions": [condition]}},
        patch_type=PatchType.STRATEGIC,
        subresource="status",
    )


def plan_readiness(context: PlanContext, draft: Draft) -> None:
    """For pods that declare the gate and have no such condition."""
    waiting = [pod for pod in context.counts.active if _waits(pod)][:MAX_CHAINS_PER_PASS]
    edits = [PodEdit(pod, Intent.REFRESH, _CAUSE, phase="") for pod in waiting]
    for edit in edits:
        ensure_pod_ready(edit, context.now)
    draft.stage([edit.chain() for edit in edits], stop_on_failure=False)


def _waits(pod: Pod) -> bool:
    return POD_READY in pod.gates and POD_READY not in pod.conditions
