"""EphemeralJobs: containers are injected once per pod and within `parallelism`; the status (ephemeraljob.md §5, §6)."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.documents import mapping, mappings, member
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.resources import POD
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Json
from tests.simulation.oracles.node_history import Timeline
from tests.simulation.oracles.view import Commit, View

MARK = "KRUISE_EJOB_ID"
"""The variable that names the job of a container."""

TTL = 1800


class Ephemerals:
    """The rule for EphemeralJobs: the states of pods and jobs over time."""

    def __init__(self) -> None:
        self._jobs: dict[str, Timeline[Json | None]] = {}  # by uid
        self._pods: dict[str, Timeline[Json | None]] = {}

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        if version.resource == EPHEMERAL_JOB:
            self._jobs.setdefault(version.uid, Timeline()).record(view.at, version.after)
            if commit.ours:
                yield from _says(view, commit)
        elif version.resource == POD:
            if commit.ours and version.after is not None:
                for uid in _added(version.before, version.after):
                    yield from self._injects(view, version.uid, uid)
                    if uid in _owners(version.before):
                        yield "gets containers of one job twice"
            self._pods.setdefault(version.uid, Timeline()).record(view.at, version.after)

    def _injects(self, view: View, pod: str, uid: str) -> Iterator[str]:
        """Check the injection of containers of the job with that uid into a pod."""
        jobs = list(self._jobs[uid].lately(view.since)) if uid in self._jobs else []
        known = [job for job in jobs if job is not None and "deletionTimestamp" not in job["metadata"]]
        if not known:
            yield "gets containers of a job that does not exist"
            return
        pods = [one for one in self._pods[pod].lately(view.since) if one is not None]
        if not any(_matches(job, one) for job in known for one in pods):
            yield "gets containers of a job that does not choose it"
        if all(job["spec"].get("paused") for job in known):
            yield "gets containers of a job that is paused"
        if all("completionTime" in member(job, "status") for job in known):
            yield "gets containers of a job that is over"
        yield from self._numbers(uid, known)

    def _numbers(self, uid: str, known: list[Json]) -> Iterator[str]:
        """Check how many pods have containers of the job, with this one."""
        there = [told.now for told in self._pods.values() if told.now is not None]
        taken = [one for one in there if uid in _owners(one) and any(_matches(job, one) for job in known)]
        busy, most = sum(_works(one, uid) for one in taken) + 1, max(map(_parallelism, known))
        if busy > most:
            yield f"is the {busy}th pod at work, {most} may be"
        chosen, replicas = len(taken) + 1, max(job["spec"].get("replicas", len(there)) for job in known)
        if chosen > replicas:
            yield f"is the {chosen}th pod of the job, which wants {replicas}"


def _says(view: View, commit: Commit) -> Iterator[str]:
    """Check our write or deletion of a job."""
    before, after = commit.version.before or {}, commit.version.after
    status = member(before, "status")
    if commit.marked_deleted:
        if not _has_passed(view, status, before["spec"].get("ttlSecondsAfterFinished", TTL)):
            yield "deletes a job before its time has come"
    elif after is not None and "completionTime" in status and status != member(after, "status"):
        yield "changes the status of a job that is over"


def _has_passed(view: View, status: Json, seconds: int) -> bool:
    over = status.get("completionTime")
    return over is not None and datetime.fromisoformat(over) + timedelta(seconds=seconds) <= view.now


def _matches(job: Json, pod: Json) -> bool:
    """Report whether the job selects the pod."""
    metadata = pod["metadata"]
    alive = "deletionTimestamp" not in metadata and member(pod, "status").get("phase") not in ("Succeeded", "Failed")
    selector = Selector.compile(msgspec.convert(job["spec"]["selector"], type=LabelSelector))
    same = metadata["namespace"] == job["metadata"]["namespace"]
    return alive and same and selector.matches(mapping(metadata.get("labels")))


def _parallelism(job: Json) -> int:
    return int(job["spec"].get("parallelism", 1))


def _marks(pod: Json | None) -> Mapping[str, str]:
    """Return the uid of the job of each container in the pod, empty for none."""
    found = mappings(member(pod or {}, "spec").get("ephemeralContainers"))
    return {one["name"]: next((e["value"] for e in mappings(one.get("env")) if e["name"] == MARK), "") for one in found}


def _owners(pod: Json | None) -> set[str]:
    return set(_marks(pod).values())


def _added(before: Json | None, after: Json) -> set[str]:
    """Return the jobs whose containers are new."""
    old = _marks(before)
    return {uid for name, uid in _marks(after).items() if name not in old}


def _works(pod: Json, uid: str) -> bool:
    """Report whether containers of the job are active: not all have ended, and none has failed."""
    told = {one["name"]: member(one, "state", "terminated") for one in _statuses(pod)}
    ends = [told.get(name, {}).get("exitCode") for name, owner in _marks(pod).items() if owner == uid]
    return None in ends and not any(ends)


def _statuses(pod: Json) -> list[Json]:
    return mappings(member(pod, "status").get("ephemeralContainerStatuses"))
