"""WorkloadSpreads: no pod exceeds the limit of a subset, and no entry is lost (workloadspread.md §5 to §8)."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta
from fractions import Fraction
from math import ceil

import msgspec

from flotilla_common.api.documents import mappings, member, strings
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.workloadspread.book import AHEAD, token_of
from flotilla_common.api.kinds.workloadspread.types import DELETION_COST, MATCHED, PLACE, WORKLOAD_SPREAD
from flotilla_common.api.meta import group_of
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, POD, REPLICA_SET, Resource
from flotilla_common.control.plan import Json
from flotilla_common.model.built_in import is_active
from tests.simulation.apiserver.store import RESTORER
from tests.simulation.oracles.copies import Past, lately
from tests.simulation.oracles.united import is_topology
from tests.simulation.oracles.view import Commit, View

TARGETS = (CLONE_SET, DEPLOYMENT, REPLICA_SET, STATEFUL_SET, BUILT_IN_STATEFUL_SET)
COSTED = (CLONE_SET, DEPLOYMENT, REPLICA_SET)
NO_LIMIT = -1
IGNORED = "versionIgnored"
"""The version of pods whose versions are ignored."""

KEPT_SECONDS: Mapping[str, int] = {"creatingPods": 30, "deletingPods": 15}
"""Seconds for which a pod is expected to be created or deleted."""

Book = Mapping[str, Json]
"""Entries by subset."""


class Spreads:
    """The rule for WorkloadSpreads: their states over time, and those of their workloads and pods."""

    def __init__(self) -> None:
        self._spreads: dict[tuple[str, str], Past] = {}  # by namespace and name
        self._targets: dict[tuple[str, ...], Past] = {}  # by namespace, group, kind and name
        self._pods: dict[str, Past] = {}  # by uid
        self._seen: set[str] = set()  # by what pods are known in books

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        resource, entry = version.resource, (version.at, version.after)
        if resource in TARGETS:
            place = (version.namespace, resource.group, resource.kind, version.name)
            self._targets.setdefault(place, []).append(entry)
        elif resource == WORKLOAD_SPREAD:
            self._spreads.setdefault((version.namespace, version.name), []).append(entry)
            if commit.ours and version.before is not None and version.after is not None:
                yield from self._keeps_books(view, commit, version.before, version.after)
        elif resource == POD:
            self._pods.setdefault(version.uid, []).append(entry)
            yield from self._pod(view, commit)

    def _pod(self, view: View, commit: Commit) -> Iterator[str]:
        version, before, after = commit.version, commit.version.before, commit.version.after
        matched = matched_of(before or after or {})
        known = lately(self._spreads.get((version.namespace, matched[0]), []), view.since) if matched else []
        if before is None and after is not None:
            self._seen.update(keys_of(after))
            if matched and version.writer != RESTORER:
                yield from self._place_taken(view, commit, matched[1], known)
        elif is_topology(commit) and commit.marked_deleted:
            yield from _deleted(before or {}, matched[1] if matched else "", known)
        elif is_topology(commit) and before is not None and after is not None:
            if matched and matched != matched_of(after) and any(one is not None for one in known):
                yield f"moves a pod from subset {matched[1]} to {matched_of(after)}"
            if cost_of(before) != cost_of(after):
                yield from self._priced(view, after)

    def _place_taken(self, view: View, commit: Commit, subset: str, known: list[Json | None]) -> Iterator[str]:
        """Check that the subset had room for a new pod, by the recent specs.

        A new WorkloadSpread has no entries yet for older pods.
        """
        spreads = [one for one in known if one is not None]
        if not spreads or not all("observedGeneration" in member(one, "status") for one in spreads):
            return
        limits = {limit_of(one, subset, replicas) for one in spreads for replicas in self._replicas(view, one)} - {None}
        if not limits or NO_LIMIT in limits:
            return
        most = max(limit for limit in limits if limit is not None)
        pod = commit.version.after or {}
        count = sum(
            matched_of(one) == matched_of(pod) and version_of(one) == version_of(pod) and is_active(one)
            for past in self._pods.values()
            if (one := past[-1][1]) is not None and one["metadata"]["namespace"] == pod["metadata"]["namespace"]
        )
        if count > most:
            yield f"is pod number {count} of subset {subset}, {most} may be"

    def _replicas(self, view: View, spread: Json) -> list[int]:
        """Yield the recent replicas of the workload."""
        past = self._targets.get((spread["metadata"]["namespace"], *target_of(spread)), [])
        return [0 if one is None else one["spec"].get("replicas", 1) for one in lately(past, view.since)] or [0]

    def _priced(self, view: View, pod: Json) -> Iterator[str]:
        """Check that a cost that we write is one of the pod's subset, or that of pods in no subset."""
        matched = matched_of(pod)
        name = matched[0] if matched else ""
        spreads = [
            one
            for (namespace, own), past in self._spreads.items()
            if namespace == pod["metadata"]["namespace"] and name in ("", own)
            for one in lately(past, view.since)
            if one is not None
        ]
        if all(cost_of(pod) not in costs_of(one, matched[1] if matched else "") for one in spreads):
            yield f"says that the pod costs {cost_of(pod)}, which nothing does in its subset"

    def _keeps_books(self, view: View, commit: Commit, before: Json, after: Json) -> Iterator[str]:
        """Check that no entry is dropped before its pod has been created or deleted, or has expired."""
        if commit.version.writer.startswith("webhook") and _without_books(before) != _without_books(after):
            yield "writes more than the books of places"
        named = [
            _names(one) for one in lately(self._spreads[commit.version.namespace, commit.version.name], view.since)
        ]
        for version, book in books_of(before).items():
            new = books_of(after).get(version, {})
            for subset, entry in book.items():
                kept = new.get(subset, {})
                for kind, seconds in KEPT_SECONDS.items():
                    for key, since in member(entry, kind).items():
                        old = datetime.fromisoformat(since) + timedelta(seconds=seconds) <= view.now
                        gone = subset not in new and any(subset not in names for names in named)
                        # Who has taken a place ahead returns it, or names the pod that has got it.
                        own = key.startswith(AHEAD) and commit.version.writer.startswith("webhook")
                        settled = old or gone or own or self._is_settled(view, kind, key)
                        if key not in member(kept, kind) and not settled:
                            yield f"drops {key} from the {kind} of subset {subset}"

    def _is_settled(self, view: View, kind: str, key: str) -> bool:
        """Report whether the pod has been created, or is being deleted, as far as a controller can see."""
        if kind == "creatingPods":
            return token_of(key) in self._seen
        states = [one for past in self._pods.values() if _has_name(past, key) for one in lately(past, view.since)]
        return any(one is None or not is_active(one) for one in states) or not states


def matched_of(pod: Json) -> tuple[str, str] | None:
    """Return the WorkloadSpread and the subset in the pod's annotation."""
    text = strings(pod.get("metadata", {}).get("annotations")).get(MATCHED)
    if not text:
        return None
    told = msgspec.json.decode(text, type=Json)
    return str(told["name"]), str(told["subset"])


def keys_of(pod: Json) -> Iterator[str]:
    """Yield the keys that the pod may have in the entries."""
    annotations = strings(pod["metadata"].get("annotations"))
    text = annotations.get(MATCHED)
    yield str((msgspec.json.decode(text, type=Json) if text else {}).get("uid") or pod["metadata"]["name"])
    yield annotations.get(PLACE, "")


def cost_of(pod: Json) -> str:
    """Return the deletion cost of the pod."""
    return strings(pod["metadata"].get("annotations")).get(DELETION_COST, "")


def version_of(pod: Json) -> str:
    """Return the version under which the pod is counted: pods of ReplicaSets have several."""
    owners = mappings(pod["metadata"].get("ownerReferences"))
    tracked = any(one["kind"] == REPLICA_SET.kind for one in owners)
    return strings(pod["metadata"].get("labels")).get("pod-template-hash", IGNORED) if tracked else IGNORED


def target_of(spread: Json) -> tuple[str, str, str]:
    """Return group, kind and name of the workload."""
    reference: Json = spread["spec"]["targetRef"]
    return group_of(reference["apiVersion"]), reference["kind"], reference["name"]


def resource_of(spread: Json) -> Resource | None:
    """Return the kind of the workload, if it is simulated."""
    group, kind, _ = target_of(spread)
    return next((one for one in TARGETS if (one.group, one.kind) == (group, kind)), None)


def limit_of(spread: Json, subset: str, replicas: int) -> int | None:
    """Return the limit of the subset; None if there is no such subset."""
    found = next((one for one in mappings(spread["spec"]["subsets"]) if one["name"] == subset), None)
    if found is None:
        return None
    most = found.get("maxReplicas", NO_LIMIT)
    return ceil(Fraction(int(most[:-1]) * replicas, 100)) if isinstance(most, str) else int(most)


def costs_of(spread: Json, subset: str) -> Collection[str]:
    """Return the costs that pods of the subset may have: as usual or surplus, newest or older version; or of none."""
    names = _names(spread)
    count, found = len(names), [str(-100 * (len(names) + 1))]
    if subset not in names:
        return found
    index = names.index(subset)
    return [str(cost) for place in (index, count - 1 - index) for cost in (100 * (count - place), -100 * (place + 1))]


def books_of(spread: Json) -> Mapping[str, Book]:
    """Return the entries by version."""
    books = member(spread, "status", "versionedSubsetStatuses")
    return {version: {one["name"]: one for one in mappings(book)} for version, book in books.items()}


def _deleted(pod: Json, subset: str, known: list[Json | None]) -> Iterator[str]:
    """Check that a pod that we delete finds no node, and that its subset is marked: the successor goes elsewhere."""
    spreads = [one for one in known if one is not None]
    if not subset or not spreads:
        return
    conditions = mappings(member(pod, "status").get("conditions"))
    if not any((one["type"], one.get("reason")) == ("PodScheduled", "Unschedulable") for one in conditions):
        yield f"deletes a pod of subset {subset} that is not without a node"
    entries = mappings(member(spreads[-1], "status").get("subsetStatuses"))
    if subset not in [one["name"] for one in entries if _is_marked(mappings(one.get("conditions")))]:
        yield f"deletes a pod of subset {subset} before it is marked"


def _is_marked(conditions: list[Json]) -> bool:
    return any((one["type"], one["status"]) == ("Schedulable", "False") for one in conditions)


def _names(spread: Json | None) -> list[str]:
    return [one["name"] for one in mappings(member(spread or {}, "spec").get("subsets"))]


def _without_books(spread: Json) -> Json:
    status = {key: value for key, value in member(spread, "status").items() if key != "versionedSubsetStatuses"}
    return {"spec": spread["spec"], "status": status}


def _has_name(past: Past, name: str) -> bool:
    return any(one is not None and one["metadata"]["name"] == name for _, one in past)
