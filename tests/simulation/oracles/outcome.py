"""The outcome of a run, in a form in which two runs can be compared.

It has the final objects without names, times and addresses, and how many writes of which sort Flotilla made. Pods of
two runs have different names, because names derive from versions, and versions count all changes. So final states are
compared as bags of anonymous objects.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.changes import changed_paths
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.kinds.workloadspread.types import PLACE
from flotilla_common.api.resources import CONFIG_MAP, EVENT, JOB, LEASE, NODE, POD, REPLICA_SET, REVISION
from flotilla_common.control.plan import Json
from tests.simulation.history import Version
from tests.simulation.oracles.paths import at
from tests.simulation.oracles.view import instance_of, ours

NOT_COMPARED = (LEASE, EVENT, NODE)
"""Kinds that show how a run went. All others are compared in the final state, whoever created them."""

STATUS_SLACK = 4
"""Writes of a status that a fault may add: counts are written twice a second at most, so timing matters."""

_CHANCE = frozenset(
    {
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "lastTransitionTime",
        "lastUpdateTime",
        "lastProbeTime",
        "startTime",
        "startedAt",
        "finishedAt",
        "podIP",
        "podIPs",
        "hostIP",
        "hostIPs",
        "nodeName",
        "volumeName",
        "containerID",
        "updateTimestamp",
        "timestamp",
        "createdAt",
        "completionTime",
        "ttlSecondsAfterFinished",
        "managedFields",
        "observedGeneration",
        "generation",
        PLACE,
        keys.INSTANCE_ID_LABEL,
        keys.STATE_TIME_ANNOTATION,
        keys.RUNTIME_CONTAINERS_META,
        keys.DISTRIBUTED_AT,
    }
)
"""Members that differ from run to run without a meaning."""

_WAYS = frozenset(
    {
        *("restartCount", "lastState", "revision", "imageID", "version"),
        *(keys.IN_PLACE_STATE, keys.SIDECAR_SET_IN_PLACE_STATE, keys.PULLED_AHEAD),
    }
)
"""Members that show the way to the final state.

Examples: how often a container was changed or a revision was raised, whether the runtime could still be asked for a
pulled image, whether an image was wanted again before a node had dropped it.
"""


_JSON = frozenset(
    {
        keys.IN_PLACE_STATE,
        keys.SIDECAR_SET_HASH,
        keys.SIDECAR_SET_HASH_WITHOUT_IMAGE,
        keys.SIDECAR_SET_IN_PLACE_STATE,
    }
)
"""Annotations that contain JSON with times in it."""

_AS_THEY_CAME = ("ephemeralContainers", "ephemeralContainerStatuses")

_HOLLOW = frozenset({"spec", "images", "annotations"})
"""Members that are either empty or absent: images to pull of a NodeImage, the state of an in-place update."""


_POD_OWNERS = frozenset({DAEMON_SET.kind, BROADCAST_JOB.kind, JOB.kind, REPLICA_SET.kind})
"""Kinds whose pods have names that differ from run to run."""

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""Matches uids in labels, selectors, names and variables of containers."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one run. Times are fake seconds since the first step that counts."""

    settled: float = 0.0  # when the last change was made
    end: tuple[str, ...] = ()
    writes: Mapping[str, int] = {}
    problems: tuple[str, ...] = ()
    injected: int = 0  # faults whose point was reached


def end_of(
    versions: Iterable[Version], namespace: str, *, exact: bool, uncertain: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the final objects after the versions, anonymous and sorted, without members that are `uncertain`."""
    dropped = _CHANCE.union(uncertain) if exact else _CHANCE.union(_WAYS, uncertain)
    objects: dict[object, tuple[Version, Json]] = {}
    for version in versions:
        if version.resource in NOT_COMPARED or version.namespace not in (namespace, ""):
            continue
        if version.after is None:
            objects.pop(version.key, None)
        else:
            objects[version.key] = (version, version.after)
    named = sorted({made_up for _, document in objects.values() if (made_up := _made_up(document))}, key=len)
    return tuple(sorted(_anonymous(version, document, dropped, named) for version, document in objects.values()))


def writes_of(versions: Iterable[Version]) -> dict[str, int]:
    """Count the writes of Flotilla by verb and resource. Marking as deleted is the delete."""
    counts: Counter[str] = Counter()
    for version in versions:
        if ours(version.writer) and version.resource not in (LEASE, EVENT):
            counts[f"{_verb(version)} {version.resource.plural}"] += 1
    return dict(sorted(counts.items()))


def differences(reference: Outcome, run: Outcome, *, exact: bool) -> Iterator[str]:
    """Yield the differences between the outcomes of a disturbed and an undisturbed run."""
    missing, surplus = Counter(reference.end), Counter(run.end)
    yield from _otherwise(sorted((missing - surplus).elements()), sorted((surplus - missing).elements()))
    if not exact:
        return
    statuses = {f"update {kind.resource.plural}" for kind in catalogue.KINDS}
    for what in sorted({*reference.writes, *run.writes}):
        wanted, made = reference.writes.get(what, 0), run.writes.get(what, 0)
        slack = STATUS_SLACK if what in statuses else 0
        if not wanted - slack <= made <= wanted + slack:
            yield f"{what}: {made} times instead of {wanted}"


def _otherwise(missing: list[str], surplus: list[str]) -> Iterator[str]:
    """Name the differences; objects of one kind are interchangeable."""
    for text in missing:
        kind = text.partition(" ")[0]
        twin = next((other for other in surplus if other.partition(" ")[0] == kind), None)
        if twin is None:
            yield f"missing in the end: {text}"
            continue
        surplus.remove(twin)
        old, new = (msgspec.json.decode(one.partition(" ")[2], type=Json) for one in (text, twin))
        paths = changed_paths(old, new)
        yield f"a {kind} ends otherwise: {', '.join(f'{path}: {at(old, path)} → {at(new, path)}' for path in paths)}"
    yield from (f"surplus in the end: {text}" for text in surplus)


def _verb(version: Version) -> str:
    before, after = version.before, version.after
    alive = before is not None and "deletionTimestamp" not in before["metadata"]
    return "delete" if alive and (after is None or "deletionTimestamp" in after["metadata"]) else version.verb


def _made_up(document: Json) -> str:
    """Return the object's name if it is generated, so that it differs from run to run.

    Generated names have jobs of a list (digits from the uid of the list), workloads of a UnitedDeployment (from its
    version), pods of a DaemonSet, a ReplicaSet or a job (from earlier pods), and pods that a ConfigMap belongs to (may
    be random).
    """
    owners = {one["kind"]: one["name"] for one in document["metadata"].get("ownerReferences", ())}
    if not _POD_OWNERS.isdisjoint(owners) and document["kind"] == POD.kind:
        return document["metadata"]["name"]
    if POD.kind in owners and document["kind"] == CONFIG_MAP.kind:
        return owners[POD.kind] if "-" in owners[POD.kind] else ""
    by_parent = {IMAGE_LIST_PULL_JOB.kind, UNITED_DEPLOYMENT.kind} & owners.keys() and document["kind"] != REVISION.kind
    return document["metadata"]["name"] if by_parent else ""


def _anonymous(version: Version, document: Json, dropped: frozenset[str], named: Sequence[str]) -> str:
    scrubbed = _scrub(_without_readiness(document), dropped)
    text = msgspec.json.encode(scrubbed, order="sorted").decode()
    text = _UID.sub("*", text)
    instance = instance_of(document)
    if instance:
        text = text.replace(instance, "*")
    for name in reversed(named):  # the longer ones may begin with others
        text = text.replace(name, f"{name.rpartition('-')[0]}-*")
    return f"{version.resource.kind} {text}"


def _without_readiness(document: Json) -> Json:
    """Drop the readiness of a pod that ended before its readiness gate was opened: it was not needed any more."""
    status: Json = document.get("status", {})
    if document["kind"] != POD.kind or status.get("phase") not in ("Succeeded", "Failed"):
        return document
    conditions = [one for one in status.get("conditions", ()) if _type_of(one) != keys.POD_READY]
    return document | {"status": status | {"conditions": conditions}}


def _scrub(value: object, dropped: frozenset[str]) -> object:
    if isinstance(value, dict):
        document = cast("Json", value)
        members = ((key, item) for key, item in document.items() if key not in dropped and not _counts_versions(key))
        kept = {key: _scrub(_ordered(key, _parsed(key, item)), dropped) for key, item in members}
        return {key: item for key, item in kept.items() if item or key not in _HOLLOW}
    if isinstance(value, list):
        items = [_scrub(item, dropped) for item in cast("list[object]", value) if not _failure(item)]
        return sorted(items, key=_type_of)
    return value


def _ordered(key: str, value: object) -> object:
    """Sort a list, unless its order has a meaning: ephemeral containers are listed in order of creation."""
    if key not in _AS_THEY_CAME:
        return value
    return sorted(cast("list[Json]", value), key=lambda one: one["name"])


def _failure(item: object) -> bool:
    """Report whether a condition records a past failure permanently (cloneset.md §5.4)."""
    return _type_of(item) in ("FailedScale", "FailedUpdate")


def _type_of(item: object) -> str:
    """Return the key for sorting conditions, which are listed in the order in which they were first set."""
    return str(cast("Json", item).get("type", "")) if isinstance(item, dict) else ""


def _parsed(key: str, value: object) -> object:
    """Parse JSON inside a string. On a SidecarSet itself, its hash is a plain text."""
    inner = key in _JSON and isinstance(value, str) and value.startswith("{")
    return msgspec.json.decode(value) if inner and isinstance(value, str) else value


def _counts_versions(key: str) -> bool:
    """Report whether the member holds versions of SidecarSets that a pod records."""
    return key.startswith((keys.SIDECAR_VERSION, keys.SIDECAR_VERSION_ALT))
