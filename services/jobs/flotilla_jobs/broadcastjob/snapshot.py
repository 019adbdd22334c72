"""The input of a BroadcastJob's plan."""

from collections.abc import Collection, Container, Mapping

import msgspec

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, BroadcastJob
from flotilla_common.control.plan import ObjectRef
from flotilla_common.gates import Gates


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the service that planning depends on."""

    system_namespace: str = "kruise-system"  # Flotilla's own namespace: its pods get no KruisePodReady gate
    assign_by_scheduler: bool = True  # False: pods are created with their node, bypassing the scheduler


class BroadcastJobSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One job and its surroundings at one moment."""

    job: BroadcastJob
    nodes: Collection[Node] = ()  # of the cluster
    pods: Collection[Pod] = ()  # controlled by the job, in any state
    taken_names: Container[str] = ()  # names of all pods of the namespace, of any owner
    former_names: Mapping[str, str] = {}  # by node: the name of the last deleted pod
    gates: Gates = Gates()
    options: Options = Options()
    failures: Mapping[str, str] = {}  # error text of the previous pass by phase: create, delete
    notes: Mapping[str, str] = {}  # notes of the previous pass: events that were sent, pods that were ended

    @property
    def subject(self) -> ObjectRef:
        """The job as the subject of events and bus records."""
        return ObjectRef.of(BROADCAST_JOB, self.job.metadata)
