"""Pods with the same cause, as one sentence: "web-1, web-2 and 3 more: image nginx:nope of container web: …"."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Reason, State
from flotilla_common.control.wording import first_names, named
from flotilla_common.workload.causes.cause import Around, Cause
from flotilla_common.workload.causes.finding import cause_of

LOOKED_AT = 20
"""Pods of one object that a planner looks at: causes repeat themselves, and planning thousands has to stay fast."""

MOST_GROUPS = 4
"""Causes that a planner tells."""


class Group(msgspec.Struct, frozen=True):
    """A cause, and the pods that have it."""

    cause: Cause  # with the detail of the first pod
    pods: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What is wrong with whom."""
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
    """By code and message; what somebody has to act on first, then what most pods have."""
    first: dict[tuple[str, str], Cause] = {}
    pods: dict[tuple[str, str], list[str]] = {}
    for name, cause in found:
        same = (cause.code, cause.message)
        first.setdefault(same, cause)
        pods.setdefault(same, []).append(name)
    groups = [Group(cause, tuple(pods[same])) for same, cause in first.items()]
    return sorted(groups, key=lambda group: (not group.cause.stuck, -len(group.pods)))


def explain_pods(draft: Draft, pods: Iterable[Pod], around: Around, *, namespaced: bool = False) -> Sequence[Group]:
    """Give the causes of the first of these pods as reasons. What a step of the pass has said of the same pods with the
    same code says less, and goes. `namespaced`: the pods may be of several namespaces, which are told."""
    looked = list(islice(pods, LOOKED_AT))
    found = [(_name(pod, namespaced), cause) for pod in looked if (cause := cause_of(pod, around)) is not None]
    groups = grouped(found)[:MOST_GROUPS]
    for group in groups:
        new = group.reason
        draft.reasons = [one for one in draft.reasons if one.code != new.code or not {*one.objects} <= {*new.objects}]
        draft.reasons.append(new)
    return groups


def root_cause(groups: Sequence[Group], failures: Mapping[str, str]) -> str:
    """Return the one sentence for a rollout that takes too long: what the apiserver refused in the last pass, else what
    most pods have that somebody has to act on; empty if all is under way."""
    stuck = (group.sentence for group in groups if group.cause.stuck)
    return next(iter(failures.values()), "") or next(stuck, "")


def _name(pod: Pod, namespaced: bool) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}" if namespaced else pod.metadata.name
