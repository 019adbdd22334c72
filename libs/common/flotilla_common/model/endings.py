"""What has an end, as pure functions of documents: pods of jobs, and ephemeral containers. Both begin, and end well."""

from datetime import datetime

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.kinds.ephemeraljob.types import JOB_UID_ENV
from flotilla_common.api.meta import rfc3339
from flotilla_common.model import kubelet

_ENDING = ("Never", "OnFailure")
_SCHEME = "model://"


def is_to_end(pod: Json) -> bool:
    """Its containers are not started again once they have succeeded."""
    return member(pod, "spec").get("restartPolicy") in _ENDING


def has_ended(pod: Json) -> bool:
    """Nothing runs in it any more."""
    return member(pod, "status").get("phase") in ("Succeeded", "Failed")


def ended(pod: Json, now: datetime) -> Json:
    """All of its containers have succeeded."""
    statuses = [one | _end(now) for one in kubelet.statuses_of(pod)]
    status = member(pod, "status") | {"phase": "Succeeded", "containerStatuses": statuses}
    return kubelet.observed(pod | {"status": status}, now)


def further(pod: Json, now: datetime) -> Json:
    """The pod with its ephemeral containers a step further. Those that run today run on."""
    status = member(pod, "status")
    statuses = mappings(status.get("ephemeralContainerStatuses"))
    known = {one["name"] for one in statuses}
    moved = [one | _end(now) if _runs_here(one) else one for one in statuses]
    for container in mappings(member(pod, "spec").get("ephemeralContainers")):
        if container["name"] not in known:
            begun = {
                "state": {"running": {"startedAt": rfc3339(now)}},
                "containerID": f"{_SCHEME}{container['name']}",
            }
            moved.append({"name": container["name"], "image": container.get("image"), **begun})
    if moved == statuses:
        return pod
    return pod | {"status": status | {"ephemeralContainerStatuses": moved}}


def has_done(pod: Json, job: str) -> bool:
    """All ephemeral containers that the job of this uid has put into the pod have ended."""
    ours = {one["name"] for one in mappings(member(pod, "spec").get("ephemeralContainers")) if _is_of(one, job)}
    statuses = mappings(member(pod, "status").get("ephemeralContainerStatuses"))
    return bool(ours) and ours <= {one["name"] for one in statuses if "terminated" in member(one, "state")}


def _runs_here(status: Json) -> bool:
    """Return whether the model has started it."""
    return "running" in member(status, "state") and str(status.get("containerID")).startswith(_SCHEME)


def _is_of(container: Json, job: str) -> bool:
    return any(one.get("name") == JOB_UID_ENV and one.get("value") == job for one in mappings(container.get("env")))


def _end(now: datetime) -> Json:
    end = {"exitCode": 0, "reason": "Completed", "finishedAt": rfc3339(now)}
    return {"ready": False, "started": False, "state": {"terminated": end}}
