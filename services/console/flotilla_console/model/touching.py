"""The objects of others that act on a workload or on its pods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mappings, member, strings, text, typed
from flotilla_common.api.keys import SIDECAR_SET_INJECTED
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.kinds.sidecarset.pods import injected
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from flotilla_common.api.meta import LabelSelector, group_of
from flotilla_common.api.resources import Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.workload.budget import related_budget
from flotilla_console.model.kinds.fields import number, word
from flotilla_console.model.objects import Stored, read
from flotilla_console.model.resources import AUTOSCALER, DISRUPTION_BUDGET, ROLLOUT
from flotilla_console.model.sight import Sight
from flotilla_console.model.workload import Workload


class Touch(msgspec.Struct, frozen=True, kw_only=True):
    """An object that acts on a workload."""

    resource: Resource
    namespace: str
    name: str
    how: str
    state: str = ""
    workload: Workload | None = None
    """The object as a workload; None for a kind without a page."""


class _Subject(msgspec.Struct, frozen=True):
    """The workload, and what others know it by."""

    workload: Workload
    labels: Mapping[str, str]  # of its pod template
    pods: frozenset[str]
    sidecars: frozenset[str]
    budgets: frozenset[str]

    def is_target(self, reference: Json) -> bool:
        """Report whether a reference names the workload."""
        group = group_of(text(reference.get("apiVersion")))
        identity = (group, text(reference.get("kind")), text(reference.get("name")))
        return identity == (self.workload.group, self.workload.kind.resource.kind, self.workload.name)

    def is_selected(self, selector: Json) -> bool:
        """Report whether a selector selects the workload's pods; an empty one, or one that is invalid, does not."""
        if not selector:
            return False
        try:
            return Selector.compile(typed(selector, LabelSelector)).matches(self.labels)
        except ValueError:
            return False


def touching(sight: Sight, workload: Workload, pods: Sequence[Pod]) -> list[Touch]:
    """Return the objects that act on the workload, or on its pods, and that may be seen."""
    if workload.kind.has_pods:
        return list(_touching(sight, _subject(sight, workload, pods)))
    return []


def _subject(sight: Sight, workload: Workload, pods: Sequence[Pod]) -> _Subject:
    stored = sight.object(workload.kind.resource, workload.namespace, workload.name) or {}
    annotated = [pod.metadata for pod in pods if pod.metadata.annotations]
    lists = {meta.annotations.get(SIDECAR_SET_INJECTED, "") for meta in annotated}  # the same for most pods
    return _Subject(
        workload,
        strings(member(stored, "spec", "template", "metadata").get("labels")),
        frozenset(pod.metadata.name for pod in pods),
        frozenset(name for names in lists for name in injected({SIDECAR_SET_INJECTED: names})),
        frozenset(filter(None, map(related_budget, annotated))),
    )


def _touching(sight: Sight, subject: _Subject) -> Iterator[Touch]:
    yield from _sidecars(sight, subject)
    yield from _budgets(sight, subject)
    yield from _targeting(sight, subject)
    yield from _operations(sight, subject)


def _sidecars(sight: Sight, subject: _Subject) -> Iterator[Touch]:
    for stored in sight.stored(SIDECAR_SET):
        if stored.metadata.name in subject.sidecars:
            yield _touch(sight, SIDECAR_SET, stored, "its sidecars are in pods of this workload")


def _budgets(sight: Sight, subject: _Subject) -> Iterator[Touch]:
    for stored in _beside(sight, POD_UNAVAILABLE_BUDGET, subject):
        spec, status = read(stored.spec), read(stored.status)
        if (
            stored.metadata.name in subject.budgets
            or subject.is_target(member(spec, "targetRef"))
            or subject.is_selected(member(spec, "selector"))
        ):
            how = f"{number(status, 'unavailableAllowed')} more may become unavailable"
            yield _touch(sight, POD_UNAVAILABLE_BUDGET, stored, how)
    for stored in _beside(sight, DISRUPTION_BUDGET, subject):
        if subject.is_selected(member(read(stored.spec), "selector")):
            how = f"{number(read(stored.status), 'disruptionsAllowed')} more may be evicted"
            yield _touch(sight, DISRUPTION_BUDGET, stored, how)


_TARGETING = {
    WORKLOAD_SPREAD: ("targetRef", "it spreads the pods over its subsets"),
    PERSISTENT_POD_STATE: ("targetRef", "it keeps pods at their places"),
}


def _targeting(sight: Sight, subject: _Subject) -> Iterator[Touch]:
    for stored in _beside(sight, AUTOSCALER, subject):
        spec = read(stored.spec)
        if subject.is_target(member(spec, "scaleTargetRef")):
            least, most = word(spec, "minReplicas") or "1", word(spec, "maxReplicas")
            wanted = number(read(stored.status), "desiredReplicas")
            yield _touch(sight, AUTOSCALER, stored, f"it scales between {least} and {most}, and wants {wanted} now")
    for stored in _beside(sight, ROLLOUT, subject):
        spec = read(stored.spec)
        if subject.is_target(member(spec, "workloadRef")):
            yield _touch(sight, ROLLOUT, stored, _rolls_out(spec, read(stored.status)))
    for resource, (reference, how) in _TARGETING.items():
        for stored in _beside(sight, resource, subject):
            if subject.is_target(member(read(stored.spec), reference)):
                yield _touch(sight, resource, stored, how)
    for stored in _beside(sight, POD_PROBE_MARKER, subject):
        if subject.is_selected(member(read(stored.spec), "selector")):
            yield _touch(sight, POD_PROBE_MARKER, stored, "it probes containers of the pods")


def _rolls_out(spec: Json, status: Json) -> str:
    """Return how far a Rollout of OpenKruise is: it holds the workload's partition at each of its steps."""
    strategy = member(spec, "strategy")
    way = "blueGreen" if member(strategy, "blueGreen") else "canary"
    steps, at = len(mappings(member(strategy, way).get("steps"))), member(status, f"{way}Status")
    if not (index := number(at, "currentStepIndex")):
        return f"it rolls updates out in {steps} steps"
    state, message = text(at.get("currentStepState")), text(status.get("message"))
    return f"it rolls out: step {index} of {steps} {state}".rstrip() + (f": {message}" if message else "")


def _operations(sight: Sight, subject: _Subject) -> Iterator[Touch]:
    for stored in _beside(sight, RECREATE_REQUEST, subject):
        spec, status = read(stored.spec), read(stored.status)
        if text(spec.get("podName")) in subject.pods and text(status.get("phase")) != "Completed":
            yield _touch(sight, RECREATE_REQUEST, stored, f"it restarts containers of {text(spec.get('podName'))}")
    for stored in _beside(sight, EPHEMERAL_JOB, subject):
        spec, status = read(stored.spec), read(stored.status)
        if subject.is_selected(member(spec, "selector")) and not status.get("completionTime"):
            yield _touch(sight, EPHEMERAL_JOB, stored, "it adds ephemeral containers to the pods")
    for stored in _beside(sight, IMAGE_PULL_JOB, subject):
        spec, status = read(stored.spec), read(stored.status)
        owned = any(one.uid == subject.workload.metadata.uid for one in stored.metadata.owner_references)
        selected = subject.is_selected(member(spec, "podSelector"))
        if (owned or selected) and not status.get("completionTime"):
            yield _touch(sight, IMAGE_PULL_JOB, stored, f"it pulls {text(spec.get('image'))} on nodes")


def _beside(sight: Sight, resource: Resource, subject: _Subject) -> Iterable[Stored]:
    return sight.stored_in(resource, subject.workload.namespace)


def _touch(sight: Sight, resource: Resource, stored: Stored, how: str) -> Touch:
    found = sight.workload(resource.group, resource.plural, *stored.metadata.key)
    state = "" if found is None else found.verdict.text or found.verdict.state
    namespace, name = stored.metadata.key
    return Touch(resource=resource, namespace=namespace, name=name, how=how, state=state, workload=found)
