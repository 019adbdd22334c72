"""Workloads that keep pods: CloneSets, StatefulSets and DaemonSets of both groups, Deployments, UnitedDeployments."""

from collections.abc import Iterator

import msgspec

from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.numbers import strict_value
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, Resource
from flotilla_common.workload.revision_codec import belongs
from flotilla_console.model.kinds.fields import conditions, flag, images_of, number, word
from flotilla_console.model.kinds.kind import ConsoleKind
from flotilla_console.model.reading import Numbers, Reading, Verdict

BUILT_IN_DAEMON_SET = Resource("apps", "v1", "daemonsets", "DaemonSet")

_STUCK = {("ReplicaFailure", "True"), ("FailedCreate", "True"), ("FailedUpdate", "True")}
_OVERDUE = "ProgressDeadlineExceeded"


def replicas(spec: Json, status: Json) -> Reading:
    """Read a CloneSet, StatefulSet or Deployment."""
    desired = number(spec, "replicas", default=1)
    rolling = member(spec, "updateStrategy", "rollingUpdate")
    kept = _kept(rolling.get("partition"), desired)
    expected = number(status, "expectedUpdatedReplicas", default=max(desired - kept, 0))
    return Reading(
        numbers=Numbers(
            desired=desired,
            total=number(status, "replicas"),
            ready=number(status, "readyReplicas"),
            updated=number(status, "updatedReplicas"),
            expected=expected,
        ),
        observed=number(status, "observedGeneration"),
        update_revision=text(status.get("updateRevision")),
        current_revision=text(status.get("currentRevision")),
        partition=word(rolling, "partition"),
        paused=flag(rolling, "paused") or flag(spec, "paused"),
        on_delete=_strategy(spec) == "OnDelete",
        strategy=_strategy(spec),
        images=images_of(member(spec, "template")),
        selector=_selector(spec),
        trouble=_trouble(status),
        details=tuple(_limits(spec, rolling)),
    )


def daemons(spec: Json, status: Json) -> Reading:
    """Read a DaemonSet, whose numbers are nodes."""
    desired = number(status, "desiredNumberScheduled")
    rolling = member(spec, "updateStrategy", "rollingUpdate")
    return Reading(
        numbers=Numbers(
            desired=desired,
            total=number(status, "currentNumberScheduled"),
            ready=number(status, "numberReady"),
            updated=number(status, "updatedNumberScheduled"),
            expected=max(desired - _kept(rolling.get("partition"), desired), 0),
        ),
        noun="node",
        observed=number(status, "observedGeneration"),
        update_revision=text(status.get("updateRevision")),
        partition=word(rolling, "partition"),
        paused=flag(rolling, "paused"),
        on_delete=_strategy(spec) == "OnDelete",
        strategy=_strategy(spec),
        images=images_of(member(spec, "template")),
        selector=_selector(spec),
        trouble=_trouble(status),
        details=(*_limits(spec, rolling), *_strays(status)),
    )


def united(spec: Json, status: Json) -> Reading:
    """Read a UnitedDeployment, whose pods are those of the workloads of its subsets."""
    desired = number(spec, "replicas", default=1)
    of_subsets = {text(one.get("name")): one for one in mappings(status.get("subsetStatuses"))}
    kept = sum(number(one, "partition") for one in of_subsets.values())
    return Reading(
        numbers=Numbers(
            desired=desired,
            total=number(status, "replicas"),
            ready=number(status, "readyReplicas"),
            updated=number(status, "updatedReplicas"),
            expected=max(desired - kept, 0),
        ),
        observed=number(status, "observedGeneration"),
        update_revision=text(status.get("updatedRevision")),
        current_revision=text(status.get("currentRevision")),
        partition=str(kept) if kept else "",
        strategy=_strategy(spec),
        images=tuple(dict.fromkeys(image for one in _templates(spec) for image in images_of(one))),
        selector=_selector(spec),
        trouble=_trouble(status),
        details=tuple(
            (f"Subset {name}", f"{number(one, 'readyReplicas')} of {number(one, 'replicas')} pods ready")
            for name, one in of_subsets.items()
        ),
    )


def _templates(spec: Json) -> Iterator[Json]:
    """Yield the pod template of the workloads of a UnitedDeployment; one of its members is set."""
    for template in mapping(spec.get("template")).values():
        yield member(mapping(template), "spec", "template")


def _strategy(spec: Json) -> str:
    """Return the type of the update strategy; Deployments call it `strategy`."""
    return text(member(spec, "updateStrategy").get("type")) or text(member(spec, "strategy").get("type"))


def _selector(spec: Json) -> bytes:
    return msgspec.json.encode(member(spec, "selector"))


def _kept(partition: object, desired: int) -> int:
    """Return the pods that a partition keeps on old revisions; 0 for one that cannot be read."""
    try:
        return strict_value(partition, desired, round_up=True) if isinstance(partition, int | str) else 0
    except ValueError:
        return 0


def _trouble(status: Json) -> Verdict | None:
    for kind, value, reason, message in conditions(status):
        if (kind, value) in _STUCK or (kind, value, reason) == ("Progressing", "False", _OVERDUE):
            return Verdict(state="blocked", code=reason or kind, text=message or reason or kind)
    return None


_LIMITS = {"maxUnavailable": "maxUnavailable", "maxSurge": "maxSurge", "podUpdatePolicy": "Pod update policy"}


def _limits(spec: Json, rolling: Json) -> Iterator[tuple[str, str]]:
    limits = {**member(spec, "strategy", "rollingUpdate"), **rolling}
    for name, label in _LIMITS.items():
        if value := word(limits, name):
            yield label, value
    if seconds := number(spec, "minReadySeconds") or number(rolling, "minReadySeconds"):
        yield "minReadySeconds", str(seconds)


def _strays(status: Json) -> Iterator[tuple[str, str]]:
    if strays := number(status, "numberMisscheduled"):
        yield "Misscheduled", f"{strays} {'nodes have' if strays > 1 else 'node has'} a pod that would not be made now"


KINDS = (
    ConsoleKind(resource=CLONE_SET, read=replicas, belongs=belongs, has_pods=True, has_revisions=True),
    ConsoleKind(resource=STATEFUL_SET, read=replicas, has_pods=True, has_revisions=True),
    ConsoleKind(resource=DAEMON_SET, read=daemons, belongs=belongs, has_pods=True, has_revisions=True),
    ConsoleKind(resource=UNITED_DEPLOYMENT, read=united, belongs=belongs, has_pods=True),
    ConsoleKind(resource=DEPLOYMENT, read=replicas, has_pods=True),
    ConsoleKind(resource=BUILT_IN_STATEFUL_SET, read=replicas, has_pods=True, has_revisions=True),
    ConsoleKind(resource=BUILT_IN_DAEMON_SET, read=daemons, belongs=belongs, has_pods=True, has_revisions=True),
)
