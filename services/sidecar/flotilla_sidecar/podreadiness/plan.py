"""The first KruisePodReady condition of a pod that declares the gate (install.md §11, common.md §6.2).

Without it the pod would never become Ready. A condition that exists is somebody's decision, and is never touched.
"""

from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import POD_READY
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Intent, Plan, Stage
from flotilla_common.control.subject import Subject
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.readiness import ensure_pod_ready


class PodSnapshot(msgspec.Struct, frozen=True):
    """One pod; nothing else matters."""

    pod: Pod

    @property
    def subject(self) -> Subject:
        """The pod, as events and the bus name it."""
        return Subject.of(POD, self.pod.metadata)


def waits_for_condition(pod: Pod) -> bool:
    """The pod declares the gate, has no such condition, and is not on its way out."""
    return POD_READY in pod.gates and POD_READY not in pod.conditions and pod.metadata.deletion_timestamp is None


def plan(snapshot: PodSnapshot, now: datetime) -> Plan:
    """One status patch, or nothing. It is a merge by condition type, so it does not conflict with the kubelet's.

    It gives no reasons: the bus would keep a message for every pod that ever was.
    """
    if not waits_for_condition(snapshot.pod):
        return Plan()
    edit = PodEdit(snapshot.pod, Intent.REFRESH, "first readiness", phase="")
    ensure_pod_ready(edit, now)
    return Plan(stages=(Stage(chains=(edit.chain(),)),))
