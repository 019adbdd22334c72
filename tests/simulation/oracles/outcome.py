"""What a run came to, in a form in which two runs can be compared: the end without names, times and addresses, and how
many writes of which sort Flotilla made.

Pods of two runs have different names, because names derive from versions, and versions count everything that happened.
So ends are compared as bags of anonymous objects.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.differences import changed_paths
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
"""What tells how a run went. Everything else is compared in the end, whoever made it."""

STATUS_SLACK = 4
"""Writes of a status that a fault may add: counts are written twice a second at most, so when matters."""

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
"""Members that differ from run to run without meaning anything."""

_WAYS = frozenset(
    {
        *("restartCount", "lastState", "revision", "imageID", "version"),
        *(keys.IN_PLACE_STATE, keys.SIDECAR_SET_IN_PLACE_STATE, keys.PULLED_AHEAD),
    }
)
"""Members that tell the way to the end: how often a container was changed, how often a revision was raised, whether the
runtime could still be asked what a pulled image is, whether an image was wanted anew before a node had forgotten it."""


_JSON = frozenset(
    {
        keys.IN_PLACE_STATE,
        keys.SIDECAR_SET_HASH,
        keys.SIDECAR_SET_HASH_WITHOUT_IMAGE,
        keys.SIDECAR_SET_IN_PLACE_STATE,
    }
)
"""Annotations that are JSON inside of a string, with times in it."""

_AS_THEY_CAME = ("ephemeralContainers", "ephemeralContainerStatuses")

_HOLLOW = frozenset({"spec", "images", "annotations"})
"""Members that are empty, or absent if there never was anything in them: images to pull of a NodeImage, the state of an
update in place."""


_POD_OWNERS = frozenset({DAEMON_SET.kind, BROADCAST_JOB.kind, JOB.kind, REPLICA_SET.kind})
"""Kinds whose pods have names that differ from run to run."""

_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""In labels, selectors, names and variables of containers."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Times are fake seconds since the first step that counts."""

    settled: float = 0.0  # when the last change was made
    end: tuple[str, ...] = ()
    writes: Mapping[str, int] = {}
    problems: tuple[str, ...] = ()
    injected: int = 0  # faults whose point was reached


def end_of(
    versions: Iterable[Version], namespace: str, *, exact: bool, uncertain: Iterable[str] = ()
) -> tuple[str, ...]:
    """What exists after the versions, anonymous and sorted; without members that are `uncertain`."""
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
    """How many writes Flotilla made, by verb and resource. Marking as deleted is the delete."""
    counts: Counter[str] = Counter()
    for version in versions:
        if ours(version.writer) and version.resource not in (LEASE, EVENT):
            counts[f"{_verb(version)} {version.resource.plural}"] += 1
    return dict(sorted(counts.items()))


def differences(reference: Outcome, run: Outcome, *, exact: bool) -> Iterator[str]:
    """How a disturbed run ended otherwise than the undisturbed one."""
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
    """Name what differs; objects of one kind are taken for each other."""
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
    """The name of a job that a list made, which has digits that depend on the uid of the list; of a workload that a
    UnitedDeployment made, which depend on its version; of a pod of a DaemonSet, a ReplicaSet or a job of some kind,
    which depends on the pods before it; or of a pod that a ConfigMap belongs to, which may have been drawn."""
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
    """A pod that ended before anybody opened its readiness gate did not need that any more."""
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
    """Ephemeral containers are listed as they came."""
    if key not in _AS_THEY_CAME:
        return value
    return sorted(cast("list[Json]", value), key=lambda one: one["name"])


def _failure(item: object) -> bool:
    """Conditions that say for ever that something went wrong once (cloneset.md §5.4)."""
    return _type_of(item) in ("FailedScale", "FailedUpdate")


def _type_of(item: object) -> str:
    """Conditions come in the order in which they were first set."""
    return str(cast("Json", item).get("type", "")) if isinstance(item, dict) else ""


def _parsed(key: str, value: object) -> object:
    """On a SidecarSet itself, its hash is a plain text."""
    inner = key in _JSON and isinstance(value, str) and value.startswith("{")
    return msgspec.json.decode(value) if inner and isinstance(value, str) else value


def _counts_versions(key: str) -> bool:
    """The versions of a SidecarSet that a pod remembers."""
    return key.startswith((keys.SIDECAR_VERSION, keys.SIDECAR_VERSION_ALT))
