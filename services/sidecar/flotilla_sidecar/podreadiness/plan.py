"""Plans the first KruisePodReady condition of a pod that has the gate (install.md §11, common.md §6.2).

Without it the pod would never become Ready. An existing condition was set on purpose, and is never changed.
"""

from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import POD_READY
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Intent, ObjectRef, Plan, Stage
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.readiness import ensure_pod_ready


class PodSnapshot(msgspec.Struct, frozen=True):
    """One pod, the only input."""

    pod: Pod

    @property
    def subject(self) -> ObjectRef:
        """The pod, as events and the bus name it."""
        return ObjectRef.of(POD, self.pod.metadata)


def waits_for_condition(pod: Pod) -> bool:
    """Report whether the pod has the gate, lacks the condition, and is not terminating."""
    return POD_READY in pod.gates and POD_READY not in pod.conditions and pod.metadata.deletion_timestamp is None


def plan(snapshot: PodSnapshot, now: datetime) -> Plan:
    """Plan one status patch, or nothing. It merges by condition type, so it does not conflict with the kubelet's.

    Plans have no reasons: the bus would keep a message for every pod that ever existed.
    """
    if not waits_for_condition(snapshot.pod):
        return Plan()
    edit = PodEdit(snapshot.pod, Intent.REFRESH, "first readiness", phase="")
    ensure_pod_ready(edit, now)
    return Plan(stages=(Stage(chains=(edit.chain(),)),))
