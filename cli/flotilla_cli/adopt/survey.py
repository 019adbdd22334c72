"""What a take-over finds: objects by kind, and what of them is under way and will go on with Flotilla.

A dry run prints it. Objects are read in the version in which they are stored, which needs nobody to convert them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from flotilla_cli.adopt.found import Found, is_served, resource_of
from flotilla_common.api.documents import Json, member, sequence, text
from flotilla_common.api.resources import Resource
from flotilla_common.kube.interface import Api, ApiError

_PAGE = 500


class Line(msgspec.Struct, frozen=True):
    """One kind: how many objects there are, and what is said of those that are under way. None: unreadable now."""

    kind: str
    served: bool
    count: int | None
    under_way: Sequence[str] = ()


async def survey(api: Api, found: Found) -> list[Line]:
    """Look at all objects of all kinds; served ones first. Raises Unreachable."""
    lines: list[Line] = []
    for place, definition in found.definitions.items():
        resource = resource_of(definition)
        if is_served(definition):
            lines.append(await _read(api, resource))
        else:
            lines.append(Line(resource.kind, served=False, count=found.counts.get(place.name, 0)))
    return sorted(lines, key=lambda line: (not line.served, line.kind))


def report(lines: Sequence[Line]) -> Iterator[str]:
    """The survey as people read it."""
    yield from _table("Flotilla goes on with", [line for line in lines if line.served])
    left = [line for line in lines if not line.served and line.count]
    if left:
        yield from _table("stays as it is, and no controller looks after it", left)
    if going := [text for line in lines for text in line.under_way]:
        yield "under way, and goes on where it stands:"
        yield from (f"  {text}" for text in going)


def _table(title: str, lines: Sequence[Line]) -> Iterator[str]:
    yield f"{title}:"
    for line in lines:
        yield f"  {line.kind:<26}{'cannot be read now' if line.count is None else line.count:>6}"


async def _read(api: Api, resource: Resource) -> Line:
    count, going, token = 0, list[str](), ""
    while True:
        try:
            page = await api.list(resource, limit=_PAGE, token=token)
        except ApiError:  # stored in an older version, and nobody converts between a take-over and Flotilla's start
            return Line(resource.kind, served=True, count=None)
        count += len(page.items)
        going += filter(None, (under_way(resource.kind, msgspec.json.decode(raw)) for raw in page.items))
        token = page.next_token
        if not token:
            return Line(resource.kind, served=True, count=count, under_way=going)


def under_way(kind: str, live: Json) -> str:
    """What is said of an object that is not where it shall be; empty for one that rests."""
    say = _SAYINGS.get(kind)
    saying = say(member(live, "spec"), member(live, "status")) if say else ""
    meta = member(live, "metadata")
    name = "/".join(filter(None, (text(meta.get("namespace")), text(meta.get("name")))))
    return f"{kind} {name}: {saying}" if saying else ""


def _workload(spec: Json, status: Json) -> str:
    wanted, there, ready = spec.get("replicas", 1), status.get("replicas", 0), status.get("readyReplicas", 0)
    updated, served = status.get("updatedReplicas", 0), status.get("updatedReadyReplicas", 0)
    said = [
        f"{updated} of {wanted} pods updated" if updated < wanted else "",
        f"{served} of {updated} updated ones ready" if served < updated else "",
        f"{there} pods, {wanted} wanted" if there != wanted else "",
        f"{ready} of {there} ready" if ready < there and served == updated else "",
    ]
    return _with_limits(said, member(spec, "updateStrategy"))


def _daemons(spec: Json, status: Json) -> str:
    """By nodes, as its status counts."""
    names = ("desiredNumberScheduled", "currentNumberScheduled", "updatedNumberScheduled", "numberReady")
    wanted, there, updated, ready = (status.get(name, 0) for name in names)
    strays = status.get("numberMisscheduled", 0)
    said = [
        f"{updated} of {wanted} nodes updated" if updated < wanted else "",
        f"{there} of {wanted} nodes have their pod" if there < wanted else "",
        f"{ready} of {there} ready" if ready < there else "",
        f"{strays} misscheduled" if strays else "",
    ]
    return _with_limits(said, member(spec, "updateStrategy"))


def _with_limits(said: Sequence[str], strategy: Json) -> str:
    """What is said of a workload that is under way, and what holds it; both versions of a strategy."""
    if not any(said):
        return ""
    partition = strategy.get("partition") or member(strategy, "rollingUpdate").get("partition")
    paused = strategy.get("paused") or member(strategy, "rollingUpdate").get("paused")
    held = [f"partition {partition}" if partition else "", "paused" if paused else ""]
    return ", ".join(filter(None, (*said, *held)))


def _pull_job(spec: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    desired, active = status.get("desired", 0), status.get("active", 0)
    return f"{spec.get('image')} on {status.get('succeeded', 0)} of {desired} nodes, {active} pulling"


def _list_job(spec: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    return f"{status.get('completed', 0)} of {status.get('desired', 0)} images done"


def _broadcast_job(spec: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    desired, succeeded, active = (status.get(name, 0) for name in ("desired", "succeeded", "active"))
    said = [f"{succeeded} of {desired} nodes done, {active} pods at work", "paused" if spec.get("paused") else ""]
    return ", ".join(filter(None, said))


def _cron_job(spec: Json, status: Json) -> str:
    """An idle one waits for its next run, which is started by whoever is there then."""
    active = len(sequence(status.get("active")))
    return f"{active} {'runs' if active > 1 else 'run'} active" if active else ""


def _ephemeral_job(spec: Json, status: Json) -> str:
    if status.get("completionTime"):
        return ""
    match, done = status.get("match", 0), status.get("succeeded", 0) + status.get("failed", 0)
    return f"{done} of {match} pods done"


def _request(spec: Json, status: Json) -> str:
    phase = text(status.get("phase"))
    return "" if phase == "Completed" else f"pod {spec.get('podName')}, {phase or 'not begun'}"


def _node_image(spec: Json, status: Json) -> str:
    pulling = status.get("pulling", 0)
    return f"{pulling} of {status.get('desired', 0)} images being pulled" if pulling else ""


def _distribution(spec: Json, status: Json) -> str:
    desired, succeeded = status.get("desired", 0), status.get("succeeded", 0)
    return f"{succeeded} of {desired} namespaces have their copy" if succeeded < desired else ""


def _sidecars(spec: Json, status: Json) -> str:
    strategy = member(spec, "updateStrategy")
    matched, updated = status.get("matchedPods", 0), status.get("updatedPods", 0)
    if updated >= matched or strategy.get("type") == "NotUpdate":
        return ""
    partition = strategy.get("partition")
    held = [f"partition {partition}" if partition else "", "paused" if strategy.get("paused") else ""]
    return ", ".join(filter(None, (f"{updated} of {matched} pods have the newest sidecars", *held)))


_SAYINGS: Mapping[str, Callable[[Json, Json], str]] = {
    "AdvancedCronJob": _cron_job,
    "BroadcastJob": _broadcast_job,
    "CloneSet": _workload,
    "ContainerRecreateRequest": _request,
    "DaemonSet": _daemons,
    "EphemeralJob": _ephemeral_job,
    "ImageListPullJob": _list_job,
    "ImagePullJob": _pull_job,
    "NodeImage": _node_image,
    "ResourceDistribution": _distribution,
    "SidecarSet": _sidecars,
    "StatefulSet": _workload,
}
