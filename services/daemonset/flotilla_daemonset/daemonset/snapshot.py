"""The input of planning one DaemonSet, gathered beforehand and frozen."""

from collections.abc import Collection, Container, Mapping

import msgspec

from flotilla_common.api.core import ControllerRevision, Node, Pod
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.control.keystate import Key
from flotilla_common.control.objectref import ObjectRef
from flotilla_common.gates import Gates
from flotilla_common.workload import gathering
from flotilla_daemonset.daemonset.previous_pod import PreviousPod


class Options(gathering.Options, frozen=True, kw_only=True):
    """Settings of the service that change decisions."""

    assign_by_scheduler: bool = True  # False: pods are created with their node, past the scheduler


class DaemonSetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One DaemonSet and its surroundings at one moment."""

    daemonset: DaemonSet
    nodes: Collection[Node] = ()  # of the whole cluster
    pods: Collection[Pod] = ()  # pods of the namespace with an owner reference to the DaemonSet, in any state
    orphans: Collection[Pod] = ()  # pods of the namespace without a controller
    taken_names: Container[str] = ()  # names of all pods of the namespace, with any owner
    previous_pods: Mapping[str, PreviousPod] = {}  # by node: the record of its last deleted pod
    revisions: Collection[ControllerRevision] = ()  # its own, ones without an owner, and ones of the same name prefix
    pull_jobs: Collection[ImagePullJob] | None = None  # jobs that it controls; None: images are not pulled ahead
    budgets: Mapping[Key, PodUnavailableBudget] = {}  # budgets that its pods name, by namespace and name
    gates: Gates = Gates()
    options: Options = Options()
    failures: Mapping[str, str] = {}  # error text of the previous pass by phase: create, delete, update

    @property
    def subject(self) -> ObjectRef:
        """The DaemonSet, as events and the bus name it."""
        return ObjectRef.of(DAEMON_SET, self.daemonset.metadata)
