"""Everything that planning one DaemonSet needs to know, gathered before and frozen (DESIGN: plans are values)."""

from collections.abc import Collection, Container, Mapping

import msgspec

from flotilla_common.api.core import ControllerRevision, Node, Pod
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.control.controller import Key
from flotilla_common.control.subject import Subject
from flotilla_common.gates import Gates
from flotilla_common.workload import gathering
from flotilla_daemonset.daemonset.former import Former


class Options(gathering.Options, frozen=True, kw_only=True):
    """Settings of the service that change decisions."""

    assign_by_scheduler: bool = True  # False: pods are created with their node, past the scheduler


class DaemonSetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One DaemonSet and its surroundings at one moment."""

    daemonset: DaemonSet
    nodes: Collection[Node] = ()  # of the cluster
    pods: Collection[Pod] = ()  # those of the namespace with an owner reference to it, in any state
    orphans: Collection[Pod] = ()  # pods of the namespace that nobody controls
    taken_names: Container[str] = ()  # names of all pods of the namespace, whoever they belong to
    former: Mapping[str, Former] = {}  # by node: what is remembered of the pod that was there last
    revisions: Collection[ControllerRevision] = ()  # its own, nobody's, and those that have a name like its own
    pull_jobs: Collection[ImagePullJob] | None = None  # those that it controls; None: images are not pulled ahead
    budgets: Mapping[Key, PodUnavailableBudget] = {}  # those that its pods name, by namespace and name
    gates: Gates = Gates()
    options: Options = Options()
    failures: Mapping[str, str] = {}  # error text of the previous pass by phase: create, delete, update

    @property
    def subject(self) -> Subject:
        """The DaemonSet, as events and the bus name it."""
        return Subject.of(DAEMON_SET, self.daemonset.metadata)
