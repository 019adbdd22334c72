"""Classifies the pods of a DaemonSet: ownership, revision, availability and order (daemonset.md §4.4, §4.5, §4.8)."""

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import SPECIFIED_DELETE_LABEL
from flotilla_common.api.meta import controller_of, later
from flotilla_common.api.selectors import Selector
from flotilla_common.workload.lifecycle import PREPARING_DELETE
from flotilla_common.workload.predicates import is_serving

GENERATION_ANNOTATION = "deprecated.daemonset.template.generation"
"""On a DaemonSet converted from an old built-in one: the generation of its template."""

GENERATION_LABEL = "pod-template-generation"
"""The same on its pods."""

_OWN = "daemonset_owner"
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_MOMENT = 0.001  # a pod is available *after* minReadySeconds, not at their end


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """The pods by ownership."""

    own: list[Pod]  # including adopted pods
    strays: list[Pod]  # to be released
    orphans: list[Pod]  # to be adopted


def classify(pods: Iterable[Pod], orphans: Iterable[Pod], uid: str, selector: Selector) -> Membership:
    """Classify pods that refer to the DaemonSet, and pods without a controller."""
    members = Membership(own=[], strays=[], orphans=[])
    question = (uid, str(selector))
    for pod in pods:
        if pod.memo.get(_OWN) == question:  # nearly always
            members.own.append(pod)
        elif (controller := controller_of(pod.metadata)) is not None and controller.uid == uid:
            if selector.matches(pod.metadata.labels):
                pod.memo[_OWN] = question
                members.own.append(pod)
            else:
                members.strays.append(pod)
    for pod in orphans:
        if pod.metadata.deletion_timestamp is None and selector.matches(pod.metadata.labels):
            members.orphans.append(pod)
            members.own.append(pod)
    return members


class Criteria(msgspec.Struct, frozen=True, kw_only=True):
    """The conditions under which a pod is updated and available."""

    hashes: frozenset[str]  # of the revisions that hold the template
    generation: str  # the annotation of a converted DaemonSet; empty without it
    min_ready_seconds: int
    now: datetime

    def is_updated(self, pod: Pod) -> bool:
        """Report whether the pod is of the current template."""
        # A hash overrides an old generation, which would freeze updates.
        if pod.revision or not self.generation:
            return pod.revision in self.hashes
        return pod.metadata.labels.get(GENERATION_LABEL) == self.generation

    def is_available(self, pod: Pod) -> bool:
        """Report whether the pod serves, and has been ready for longer than minReadySeconds."""
        if not self.min_ready_seconds:
            return is_serving(pod)
        at = self.available_at(pod)
        return at is not None and at <= self.now

    def available_at(self, pod: Pod) -> datetime | None:
        """Return when the pod becomes available if it stays ready; None if it does not serve."""
        if not is_serving(pod) or pod.ready_since is None:
            return None
        return later(later(pod.ready_since, self.min_ready_seconds), _MOMENT)


def is_terminating(pod: Pod) -> bool:
    """Report whether the pod is being deleted."""
    return pod.metadata.deletion_timestamp is not None


def is_running(pod: Pod) -> bool:
    """Report whether the pod stays: not terminating, not failed, not PreparingDelete."""
    return not is_terminating(pod) and pod.status.phase != "Failed" and pod.state != PREPARING_DELETE


def is_specified(pod: Pod) -> bool:
    """Report whether the pod carries the specified-delete label."""
    return SPECIFIED_DELETE_LABEL in pod.metadata.labels


def in_order(pods: list[Pod]) -> list[Pod]:
    """Sort the pods: scheduled pods first, then older ones, then by name."""
    return pods if len(pods) < 2 else sorted(pods, key=_order)


def _order(pod: Pod) -> tuple[bool, datetime, str]:
    return not pod.spec.node_name, pod.metadata.creation_timestamp or _EARLIEST, pod.metadata.name
