"""Models ephemeral containers as a kubelet runs them: they are started once, and never again."""

from collections.abc import Mapping
from datetime import datetime

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.api.kinds.ephemeraljob.types import JOB_UID_ENV
from flotilla_common.model import kubelet

_PART = "ephemeralContainerStatuses"


def statuses_of(pod: Json) -> dict[str, Json]:
    """Return the reported statuses of ephemeral containers, by name."""
    return kubelet.statuses_of(pod, _PART)


def started(pod: Json, obstacles: Mapping[str, str], now: datetime) -> Json:
    """Return the pod with the named containers started, or waiting for the named obstacle."""
    told = statuses_of(pod)
    for one in mappings(member(pod, "spec").get("ephemeralContainers")):
        if (why := obstacles.get(one["name"])) is not None:
            told[one["name"]] = kubelet.waiting(one, why) if why else kubelet.running(pod, one, {}, now)
    return _reported(pod, told)


def ended(pod: Json, codes: Mapping[str, int], now: datetime) -> Json:
    """Return the pod with the named containers ended with these exit codes."""
    told = statuses_of(pod)
    return _reported(pod, told | {name: kubelet.terminated(told[name], now, code) for name, code in codes.items()})


def has_done(pod: Json, job: str) -> bool:
    """Report whether all ephemeral containers that the job of this uid has added to the pod have ended."""
    ours = {one["name"] for one in mappings(member(pod, "spec").get("ephemeralContainers")) if _is_of(one, job)}
    over = {name for name, one in statuses_of(pod).items() if "terminated" in member(one, "state")}
    return bool(ours) and ours <= over


def _reported(pod: Json, told: Mapping[str, Json]) -> Json:
    return pod | {"status": member(pod, "status") | {_PART: list(told.values())}}


def _is_of(container: Json, job: str) -> bool:
    return any(one.get("name") == JOB_UID_ENV and one.get("value") == job for one in mappings(container.get("env")))
