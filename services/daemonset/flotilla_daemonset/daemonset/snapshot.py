"""The input of planning one DaemonSet, gathered beforehand and frozen.

Deleted pods leave their names and failures behind on their nodes (daemonset.md §4.6). These records are kept in memory
only and may be lost at any time: then a node's next pod may get the name of a former one, and the next failed pod is
deleted at once.
"""

from collections.abc import Collection, Container, Mapping
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.core import ControllerRevision, Node, Pod
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.api.meta import later
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import ObjectRef
from flotilla_common.gates import Gates
from flotilla_common.workload import gathering

FIRST_DELAY, LONGEST_DELAY = timedelta(seconds=1), timedelta(minutes=15)
RESET_AFTER = timedelta(minutes=30)
"""The time without failures after which a node's backoff is reset."""


class Options(gathering.Options, frozen=True, kw_only=True):
    """Settings of the service that change decisions."""

    assign_by_scheduler: bool = True  # False: pods are created with their node, past the scheduler


class PreviousPod(msgspec.Struct, frozen=True, kw_only=True):
    """The last deleted pod of a node, and the node's backoff."""

    name: str = ""
    failed_at: datetime | None = None  # when the last failed pod was deleted
    delay: timedelta = timedelta()  # how long after that the next failed pod has to stay
    generation: int = 0  # of the DaemonSet at that time: a change resets the backoff

    def backoff_until(self, now: datetime, generation: int) -> datetime | None:
        """Return until when a failed pod on the node is left alone; None if it may be deleted now."""
        if self.failed_at is None or self.generation != generation:
            return None
        until = later(self.failed_at, self.delay)
        return until if now < until else None

    def next_delay(self, now: datetime, generation: int) -> timedelta:
        """Return how long the pod after the next failed one has to stay."""
        if self.failed_at is None or self.generation != generation:
            return FIRST_DELAY
        if now >= later(self.failed_at, self.delay + RESET_AFTER):
            return FIRST_DELAY
        return min(self.delay * 2, LONGEST_DELAY)


def record_deletion(daemonset: DaemonSet, pod: Pod, before: PreviousPod | None, now: datetime) -> PreviousPod:
    """Return the record of a deleted pod of the DaemonSet, given the record of the previous pod on its node."""
    before, name = before or PreviousPod(), pod.metadata.name
    if pod.status.phase != "Failed":
        return msgspec.structs.replace(before, name=name)
    generation = daemonset.status.observed_generation
    return PreviousPod(name=name, failed_at=now, delay=before.next_delay(now, generation), generation=generation)


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
