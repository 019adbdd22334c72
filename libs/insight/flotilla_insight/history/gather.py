"""Reads the records about one object from the bus."""

import contextlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from flotilla_common.api.core import Pod as LivePod
from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.streams import shards_of
from flotilla_insight.bus.streams import list_streams
from flotilla_insight.history.generations import WEBHOOK, ObjectRecords, Pod, Writer, is_user_write
from flotilla_insight.published import Act, Why, decoded


async def gather(bus: NatsBus, resource: Resource, namespace: str, name: str) -> ObjectRecords:
    """Return all records about an object of our kinds. Raises BusError."""
    found: dict[int, Act] = {}  # by the sequence of the message: some subjects overlap
    whys: list[Why] = []

    def take_act(message: Message) -> None:
        act = decoded(message.data, Act)
        if act is not None and concerns(act, resource, namespace, name):
            found[message.sequence] = act

    def take_why(message: Message) -> None:
        why = decoded(message.data, Why)
        if why is not None:
            whys.append(why)

    for subject in act_subjects(resource, namespace, name):
        await bus.history(subjects.ACT_STREAM.name, subject, take_act)
    decided = subjects.decisions(resource, namespace, name)
    await bus.history(subjects.DECISIONS_STREAM.name, decided, take_why)
    record = records_of(resource, namespace, name, found.values(), whys)
    made = {act.name for act in record.writes if act.kind == POD.kind and act.action == "create"}
    return msgspec.structs.replace(
        record, begins=await _begins(bus), pods=await _pods(bus, namespace, made) if made else {}
    )


def records_of(
    resource: Resource, namespace: str, name: str, acts: Iterable[Act], decisions: Iterable[Why]
) -> ObjectRecords:
    """Sort writes that concern an object by what they are to it."""
    own = (resource.kind, namespace, name)
    ordered = sorted(acts, key=lambda act: act.at)
    about = [act for act in ordered if not _is_use(act, own, namespace)]
    return ObjectRecords(
        kind=resource.kind,
        namespace=namespace,
        name=name,
        user_writes=tuple(filter(is_user_write, about)),
        decisions=tuple(decisions),
        writes=tuple(act for act in about if not is_user_write(act)),
        uses=tuple(act for act in ordered if _is_use(act, own, namespace)),
    )


def concerns(act: Act, resource: Resource, namespace: str, name: str) -> bool:
    """Report whether a write is about the object, or on its behalf."""
    return (resource.kind, namespace, name) in (_about(act), _owner(act, namespace))


async def gather_pod(bus: NatsBus, namespace: str, name: str) -> ObjectRecords:
    """Return all records about a pod. Raises BusError."""
    acts: list[Act] = []

    def take(message: Message) -> None:
        act = decoded(message.data, Act)
        if act is not None:
            acts.append(act)

    place = f"{subjects.token(namespace)}.{subjects.token(name)}"
    await bus.history(subjects.ACT_STREAM.name, f"act.v1.*.pods.{place}", take)
    return ObjectRecords(
        kind=POD.kind,
        namespace=namespace,
        name=name,
        begins=await _begins(bus),
        writes=tuple(acts),
        pods=await _pods(bus, namespace, {name}),
    )


def writers_of(document: Json) -> tuple[Writer, ...]:
    """Return the owners of fields of a live object."""
    entries = mappings(member(document, "metadata").get("managedFields"))
    return tuple(
        Writer(
            manager=text(entry.get("manager")),
            operation=text(entry.get("operation")),
            subresource=text(entry.get("subresource")),
            at=datetime.fromisoformat(text(entry["time"])) if entry.get("time") else None,
        )
        for entry in entries
        if entry.get("subresource") != "status"
    )


def act_subjects(resource: Resource, namespace: str, name: str) -> list[str]:
    """Return the subjects of records that may be about the object.

    These are writes of the object by anyone, writes by the kind's own service in its namespace, and users' requests
    about pods there, which a budget decides.
    """
    service = catalogue.kind_of(resource).service
    about = f"act.v1.*.{resource.plural}.{subjects.token(namespace)}.{subjects.token(name)}"
    if not namespace:
        return [about, f"act.v1.{service}.>"]
    place = f"{subjects.token(namespace)}.*"
    return [about, f"act.v1.{service}.*.{place}", f"act.v1.{WEBHOOK}.pods.{place}"]


def _is_use(act: Act, own: tuple[str, str, str], namespace: str) -> bool:
    """Report whether it is a request that the object decided, or a write of it by another controller."""
    return (_about(act) != own) if is_user_write(act) else _owner(act, namespace) != own


def _about(act: Act) -> tuple[str, str, str]:
    return (act.kind, act.namespace, act.name)


def _owner(act: Act, namespace: str) -> tuple[str, str, str]:
    return (act.owner.kind, act.owner.namespace if namespace else "", act.owner.name)


async def _begins(bus: NatsBus) -> datetime | None:
    """Return the time since which both records are complete."""
    records = (subjects.ACT_STREAM.name, subjects.DECISIONS_STREAM.name)
    return max((stream.begins for stream in await list_streams(bus) if stream.name in records), default=None)


async def _pods(bus: NatsBus, namespace: str, names: set[str]) -> dict[str, Pod]:
    found: dict[str, Pod] = {}

    def take(message: Message) -> None:
        if message.headers.get(subjects.OP) == subjects.MOVED:
            return  # the pod itself is on another subject
        with contextlib.suppress(msgspec.MsgspecError):
            pod = msgspec.json.decode(message.data, type=LivePod) if message.data else None
            if pod is not None and pod.metadata.name in names:
                found[pod.metadata.name] = _steps(pod)

    for shard in await shards_of(bus, POD):
        where = subjects.kube_namespace(shard, namespace) if namespace else subjects.kube_filter(shard)
        await bus.history(subjects.kube_stream(shard).name, where, take)
    return found


def _steps(pod: LivePod) -> Pod:
    def since(condition: str) -> datetime | None:
        held: Any = pod.conditions.get(condition)
        return held.last_transition_time if held is not None and held.status == "True" else None

    return Pod(created=pod.metadata.creation_timestamp, scheduled=since("PodScheduled"), ready=since("Ready"))
