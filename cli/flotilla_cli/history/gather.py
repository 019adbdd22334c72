"""Reads from the bus what is kept about one object."""

import contextlib
from datetime import datetime
from typing import Any

import msgspec

from flotilla_cli.buslook.streams import list_streams
from flotilla_cli.history.chapters import Pod, Record, Writer, is_wish
from flotilla_cli.published import Act, Why, decoded
from flotilla_common.api.core import Pod as LivePod
from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.bus.nats import NatsBus


async def gather(bus: NatsBus, resource: Resource, namespace: str, name: str) -> Record:
    """Everything about an object of our kinds. Raises BusError."""
    acts: list[Act] = []
    whys: list[Why] = []
    own = (resource.kind, namespace, name)

    def take_act(message: Message) -> None:
        act = decoded(message.data, Act)
        if act is not None and own in ((act.kind, act.namespace, act.name), _owner(act, namespace)):
            acts.append(act)

    def take_why(message: Message) -> None:
        why = decoded(message.data, Why)
        if why is not None:
            whys.append(why)

    for subject in _acts(resource, namespace, name):
        await bus.history(subjects.ACT_STREAM.name, subject, take_act)
    decided = subjects.decisions(resource, namespace, name)
    await bus.history(subjects.DECISIONS_STREAM.name, decided, take_why)
    made = {act.name for act in acts if act.kind == POD.kind and act.action == "create"}
    return Record(
        kind=resource.kind,
        namespace=namespace,
        name=name,
        begins=await _begins(bus),
        wishes=tuple(sorted(filter(is_wish, acts), key=lambda act: act.at)),
        decisions=tuple(whys),
        writes=tuple(sorted((act for act in acts if not is_wish(act)), key=lambda act: act.at)),
        pods=await _pods(bus, namespace, made) if made else {},
    )


async def gather_pod(bus: NatsBus, namespace: str, name: str) -> Record:
    """Everything about a pod. Raises BusError."""
    acts: list[Act] = []

    def take(message: Message) -> None:
        act = decoded(message.data, Act)
        if act is not None:
            acts.append(act)

    place = f"{subjects.token(namespace)}.{subjects.token(name)}"
    await bus.history(subjects.ACT_STREAM.name, f"act.v1.*.pods.{place}", take)
    return Record(
        kind=POD.kind,
        namespace=namespace,
        name=name,
        begins=await _begins(bus),
        writes=tuple(acts),
        pods=await _pods(bus, namespace, {name}),
    )


def writers_of(document: Json) -> tuple[Writer, ...]:
    """Who owns fields of a live object."""
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


def _acts(resource: Resource, namespace: str, name: str) -> list[str]:
    """What users and the kind's own service wrote: on the object, and where it works."""
    service = catalogue.kind_of(resource).service
    place = f"{subjects.token(namespace)}.*" if namespace else ">"
    everything = f"act.v1.{service}.*.{place}" if namespace else f"act.v1.{service}.>"
    return [subjects.act("webhook", resource, namespace, name), everything]


def _owner(act: Act, namespace: str) -> tuple[str, str, str]:
    return (act.owner.kind, act.owner.namespace if namespace else "", act.owner.name)


async def _begins(bus: NatsBus) -> datetime | None:
    """Since when both records hold everything."""
    records = (subjects.ACT_STREAM.name, subjects.DECISIONS_STREAM.name)
    return max((stream.begins for stream in await list_streams(bus) if stream.name in records), default=None)


async def _pods(bus: NatsBus, namespace: str, names: set[str]) -> dict[str, Pod]:
    found: dict[str, Pod] = {}

    def take(message: Message) -> None:
        with contextlib.suppress(msgspec.MsgspecError):
            pod = msgspec.json.decode(message.data, type=LivePod) if message.data else None
            if pod is not None and pod.metadata.name in names:
                found[pod.metadata.name] = _steps(pod)

    where = f"kube.v1.{POD.id}.{subjects.token(namespace)}.*" if namespace else subjects.kube_filter(POD)
    await bus.history(subjects.kube_stream(POD).name, where, take)
    return found


def _steps(pod: LivePod) -> Pod:
    def since(condition: str) -> datetime | None:
        held: Any = pod.conditions.get(condition)
        return held.last_transition_time if held is not None and held.status == "True" else None

    return Pod(created=pod.metadata.creation_timestamp, scheduled=since("PodScheduled"), ready=since("Ready"))
