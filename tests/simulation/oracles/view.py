"""The cluster as an ideal observer sees it: a history replayed version by version.

`View.take` applies one version and returns the `Commit`; rules check the commit against the view right after it. A
controller cannot know yet what users and nodes did a moment ago: `recent_terms` and `recent_losses` grant it that
moment (`lag` seconds), and no more.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import CLAIM, LEASE, POD, REVISION, Resource
from flotilla_common.control.plan import Json
from flotilla_common.workload.predicates import is_serving
from tests.simulation.history import Version
from tests.simulation.oracles.terms import Numbered, Reader, Terms
from tests.simulation.scenarios import every_reader

VISIBILITY_LAG = 0.05
"""Fake seconds until a change has surely reached a controller: four messages of a millisecond, and its own writes."""


KUBELET = "kubelet"
"""The writer of what kubelets report."""


def ours(writer: str) -> bool:
    """Report whether the writer is a process of Flotilla ("cloneset-0"), not a user or a part of Kubernetes."""
    return writer.rpartition("-")[2].isdigit()


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """One committed version, with the pod and the workload that it is about."""

    version: Version
    workload: "Workload | None" = None
    before: Pod | None = None
    pod: Pod | None = None  # the pod after the change

    @property
    def ours(self) -> bool:
        return ours(self.version.writer)

    @property
    def makes_a_pod(self) -> bool:
        """Report whether a process of ours creates a pod."""
        return self.ours and self.before is None and self.pod is not None

    @property
    def marked_deleted(self) -> bool:
        """Report whether the object was alive before this commit and is terminating or gone after it."""
        before, after = self.version.before, self.version.after
        was = before is not None and "deletionTimestamp" not in before["metadata"]
        return was and (after is None or "deletionTimestamp" in after["metadata"])


class Workload:
    """One workload object over time, with the pods that it controls."""

    def __init__(self, version: Version, read: Reader) -> None:
        self._read = read
        self.resource = version.resource
        self.namespace = version.namespace
        self.name = version.name
        self.uid = version.uid
        self.pods: dict[str, Pod] = {}
        self.ended: float | None = None  # when its deletion began
        self._terms: list[tuple[float, Terms]] = []
        self._losses: list[float] = []  # when others took a pod of it out of service

    @property
    def terms(self) -> Terms:
        """Return the current terms."""
        return self._terms[-1][1]

    def change(self, at: float, document: Json | None) -> None:
        """Record a change or the deletion of the object."""
        if document is not None:
            self._terms.append((at, self._read(document)))
        if self.ended is None and (document is None or self.terms.terminating):
            self.ended = at

    def lose(self, at: float) -> None:
        """Record that another client than its controller took a pod out of service."""
        self._losses.append(at)

    def recent_terms(self, since: float) -> Iterator[Terms]:
        """Yield all terms since a time."""
        for index, (_, terms) in enumerate(self._terms):
            if index + 1 == len(self._terms) or self._terms[index + 1][0] >= since:
                yield terms

    def recent_numbered(self, since: float) -> list[Numbered]:
        """Return the terms of numbered pods since a time; empty for other workloads."""
        return [terms.numbered for terms in self.recent_terms(since) if terms.numbered is not None]

    def recent_losses(self, since: float) -> int:
        """Return how many pods others took out of service since a time."""
        return sum(at >= since for at in self._losses)

    def active(self) -> Iterator[Pod]:
        """Yield active pods: alive, and within the selector."""
        return (pod for pod in self.pods.values() if self.counts(pod))

    def counts(self, pod: Pod | None) -> bool:
        """Report whether the pod is one of the workload's active pods."""
        return pod is not None and pod.active and self.terms.selector.matches(pod.metadata.labels)

    def available(self, pod: Pod | None, now: datetime) -> bool:
        """Report whether the pod is available, as cloneset.md §4.3 defines it."""
        if pod is None or not self.counts(pod) or not is_serving(pod) or pod.state not in ("", "Normal"):
            return False
        rest = timedelta(seconds=self.terms.min_ready_seconds)
        return not rest or (pod.ready_since is not None and pod.ready_since + rest < now)


class View:
    """All objects at one moment of a history."""

    def __init__(self, epoch: datetime, lag: float = VISIBILITY_LAG) -> None:
        """Create an empty view. `epoch`: the wall time of fake second 0. `lag`: how far controllers may be behind."""
        self.workloads: dict[str, Workload] = {}
        self.claims: dict[str, Json] = {}
        self.revisions: dict[str, Json] = {}
        self.leases: dict[str, tuple[Json, float]] = {}  # by name: spec, when it was last written
        self.at = 0.0
        self.lag = lag
        self._epoch = epoch
        self._readers = every_reader()

    @property
    def now(self) -> datetime:
        return self._epoch + timedelta(seconds=self.at)

    @property
    def since(self) -> float:
        """Return the time before which every controller must have seen what happened."""
        return self.at - self.lag

    def take(self, version: Version) -> Commit:
        """Apply one version."""
        self.at = version.at
        if version.resource in self._readers:
            return self._workload(version)
        if version.resource == POD:
            return self._pod(version)
        for resource, table in ((CLAIM, self.claims), (REVISION, self.revisions)):
            if version.resource == resource:
                _put(table, version)
        if version.resource == LEASE and version.after is not None:
            self.leases[version.name] = (version.after["spec"], version.at)
        workload = self.owner(version.before or version.after)
        if workload is None and version.resource == CLAIM:
            workload = self._set_of(version)
        return Commit(version=version, workload=workload)

    def owner(self, document: Json | None) -> Workload | None:
        """Return the workload that controls the object."""
        references: list[Json] = (document or {}).get("metadata", {}).get("ownerReferences", [])
        uids = [str(reference["uid"]) for reference in references if reference.get("controller")]
        return self.workloads.get(uids[0]) if uids else None

    def revisions_of(self, workload: Workload) -> list[Json]:
        """Return the workload's revisions, oldest first."""
        own = [revision for revision in self.revisions.values() if self.owner(revision) is workload]
        return sorted(own, key=lambda revision: int(revision.get("revision", 0)))

    def _set_of(self, claim: Version) -> Workload | None:
        """Return the workload of a claim by its name (claims have no controller): a living one, or the last one."""
        named = [
            one for one in self.workloads.values() if one.namespace == claim.namespace and _claims(one, claim.name)
        ]
        return next((one for one in named if one.ended is None), named[-1] if named else None)

    def _workload(self, version: Version) -> Commit:
        workload = self.workloads.get(version.uid)
        if workload is None:
            workload = self.workloads[version.uid] = Workload(version, self._readers[version.resource])
        workload.change(version.at, version.after)
        return Commit(version=version, workload=workload)

    def _pod(self, version: Version) -> Commit:
        after = msgspec.convert(version.after, type=Pod) if version.after is not None else None
        held = self._holder(version.uid)
        before = held.pods.pop(version.uid) if held else _convert(version.before)
        controller = controller_of(after.metadata) if after is not None else None
        workload = self.workloads.get(controller.uid) if controller is not None else None
        if workload is not None and after is not None:
            workload.pods[version.uid] = after
        commit = Commit(version=version, workload=workload or held, before=before, pod=after)
        if held is not None and not commit.ours and not follows_our_gates(commit) and lost(self, held, commit):
            held.lose(version.at)
        return commit

    def _holder(self, uid: str) -> Workload | None:
        return next((workload for workload in self.workloads.values() if uid in workload.pods), None)


def of_kind(
    resource: Resource, rule: Callable[[View, Commit], Iterator[str]]
) -> Callable[[View, Commit], Iterator[str]]:
    """Restrict a rule to workloads of one kind."""

    def checked(view: View, commit: Commit) -> Iterator[str]:
        if commit.workload is not None and commit.workload.resource == resource:
            yield from rule(view, commit)

    return checked


def lost(view: View, workload: Workload, commit: Commit) -> bool:
    """Report whether the commit took a pod of the workload out of service."""
    kept = commit.pod is not None and commit.pod.metadata.uid in workload.pods
    return workload.available(commit.before, view.now) and not (kept and workload.available(commit.pod, view.now))


def follows_our_gates(commit: Commit) -> bool:
    """Report whether a kubelet only follows readiness gates that we alone open and close: the containers are ready."""
    before, pod = commit.before, commit.pod
    if before is None or pod is None or commit.version.writer != KUBELET or not before.ready or pod.ready:
        return False
    containers = pod.conditions.get("ContainersReady")
    ours = set(pod.gates) <= {keys.IN_PLACE_READY, keys.POD_READY}
    return ours and containers is not None and containers.status == "True"


def instance_of(document: Json | Pod) -> str:
    """Return the id that ties a pod and its claims together."""
    if isinstance(document, Pod):
        return document.metadata.labels.get(keys.INSTANCE_ID_LABEL, "")
    return str(document["metadata"].get("labels", {}).get(keys.INSTANCE_ID_LABEL, ""))


def _claims(workload: Workload, name: str) -> bool:
    """Report whether the claim is of a template that the workload has, or had."""
    return any(numbered.of_claim(name) >= 0 for numbered in workload.recent_numbered(0.0))


def _convert(document: Json | None) -> Pod | None:
    return msgspec.convert(document, type=Pod) if document is not None else None


def _put(table: dict[str, Json], version: Version) -> None:
    if version.after is None:
        table.pop(version.uid, None)
    else:
        table[version.uid] = version.after
