"""Finds causes of pods, and groups pods by cause: "web-1, web-2 and 3 more: image nginx:nope of container web: …"."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.control.plan import Reason, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import first_names, named
from flotilla_common.workload.causes.cause import NOTHING, Cause, PodContext
from flotilla_common.workload.causes.containers import containers_cause
from flotilla_common.workload.causes.ending import has_done_its_work, over_cause, terminating_cause
from flotilla_common.workload.causes.nodes import node_cause
from flotilla_common.workload.causes.readiness import (
    gate_cause,
    hook_cause,
    normal_cause,
    ready_soon_cause,
    unready_cause,
    update_cause,
)
from flotilla_common.workload.causes.starting import scheduling_cause, starting_cause

LOOKED_AT = 20
"""Pods of one object that a planner examines: causes repeat, and planning thousands must stay fast."""

MOST_GROUPS = 4
"""Most causes that a planner reports."""


def cause_of(pod: Pod, around: PodContext = NOTHING) -> Cause | None:
    """Return the root cause why the pod does not serve (yet), or None if no problem is known.

    It is the first cause that a person has to act on, or else the first thing that is in progress.
    """
    if has_done_its_work(pod):
        return None
    for alone in (over_cause, terminating_cause, scheduling_cause):
        if (cause := alone(pod, around)) is not None:
            return cause
    return min(_causes(pod, around), key=lambda cause: not cause.stuck, default=None) or unready_cause(pod)


def _causes(pod: Pod, around: PodContext) -> Iterator[Cause]:
    """Yield the causes of a pod that has a node and is not finished or deleted."""
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


class Group(msgspec.Struct, frozen=True):
    """A cause, and the pods that have it."""

    cause: Cause  # with the detail of the first pod
    pods: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The pods and their cause."""
        cause = self.cause
        whose = f"{self.pods[0]}: " if len(self.pods) > 1 else ""
        return f"{named(self.pods)}: {cause.message}{f' ({whose}{cause.detail})' if cause.detail else ''}"

    @property
    def reason(self) -> Reason:
        """The cause as a reason of the pods' owner."""
        stuck = self.cause.stuck
        state = State.STUCK if stuck else State.WAITING
        return Reason(state, self.cause.code, self.sentence, first_names(self.pods), symptom=stuck)


def grouped(found: Iterable[tuple[str, Cause]]) -> list[Group]:
    """Group causes by code and message; causes that need action first, then the most frequent."""
    first: dict[tuple[str, str], Cause] = {}
    pods: dict[tuple[str, str], list[str]] = {}
    for name, cause in found:
        same = (cause.code, cause.message)
        first.setdefault(same, cause)
        pods.setdefault(same, []).append(name)
    groups = [Group(cause, tuple(pods[same])) for same, cause in first.items()]
    return sorted(groups, key=lambda group: (not group.cause.stuck, -len(group.pods)))


def explain_pods(
    builder: PlanBuilder, pods: Iterable[Pod], around: PodContext, *, namespaced: bool = False
) -> Sequence[Group]:
    """Add the causes of the first of these pods as reasons, and return them.

    They replace less specific reasons of the same pass about the same pods with the same code. `namespaced` includes
    the pods' namespaces, if they may be in several.
    """
    looked = list(islice(pods, LOOKED_AT))
    found = [(_name(pod, namespaced), cause) for pod in looked if (cause := cause_of(pod, around)) is not None]
    groups = grouped(found)[:MOST_GROUPS]
    for group in groups:
        new = group.reason
        builder.reasons = [
            one for one in builder.reasons if one.code != new.code or not {*one.objects} <= {*new.objects}
        ]
        builder.reasons.append(new)
    return groups


def root_cause(groups: Sequence[Group], failures: Mapping[str, str]) -> str:
    """Return the one sentence for a rollout that takes too long; empty if everything is in progress.

    It is the apiserver's refusal in the last pass, or else the most frequent cause that needs action.
    """
    stuck = (group.sentence for group in groups if group.cause.stuck)
    return next(iter(failures.values()), "") or next(stuck, "")


def _name(pod: Pod, namespaced: bool) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}" if namespaced else pod.metadata.name
