"""Compares the bus with the apiserver: some objects of each resource, listed first, looked up seconds later."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from flotilla_cli.doctor.facts import Sample
from flotilla_common.api.meta import ObjectMeta, metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.mirror.table import version_number

OBJECTS = 20
"""Number of objects of each resource."""


class Listed(msgspec.Struct, frozen=True):
    """Objects as the apiserver had them. `complete`: the LIST had no further page."""

    objects: Sequence[ObjectMeta]
    version: str
    complete: bool


async def listing(api: Api, resources: Sequence[Resource]) -> Mapping[Resource, Listed]:
    """Return some objects of each resource that is served. Raises ApiError if they may not be read."""
    found = await asyncio.gather(*(_listed(api, resource) for resource in resources))
    return {resource: one for resource, one in zip(resources, found, strict=True) if one is not None}


async def compared(api: Api, bus: NatsBus, listings: Mapping[Resource, Listed]) -> Mapping[str, Sample]:
    """Return the comparison with the bus, by the resource's id. Raises BusError."""
    found = await asyncio.gather(*(_sample(bus, resource, listed) for resource, listed in listings.items()))
    later = await listing(api, list(listings))
    return {
        resource.id: msgspec.structs.replace(sample, version=later[resource].version)
        for resource, sample in zip(listings, found, strict=True)
        if resource in later
    }


async def _listed(api: Api, resource: Resource) -> Listed | None:
    try:
        page = await api.list(resource, limit=OBJECTS, metadata_only=True)
    except ApiError as error:
        if error.code == 403:
            raise
        return None  # it is not served
    return Listed([metadata_of(raw) for raw in page.items], page.resource_version, not page.next_token)


async def _sample(bus: NatsBus, resource: Resource, listed: Listed) -> Sample:
    stream = subjects.kube_stream(resource).name
    missing, stale = list[str](), list[str]()
    for meta in listed.objects:
        subject = subjects.kube(resource, meta.namespace, meta.name)
        message = await bus.get_last(stream, subject)
        if message is None:
            missing.append(_name(meta))
        elif _version(message) < version_number(meta.resource_version):
            stale.append(_name(meta))
    ghosts = await _ghosts(bus, resource, listed) if listed.complete else []
    return Sample(len(listed.objects), missing, stale, ghosts)


async def _ghosts(bus: NatsBus, resource: Resource, listed: Listed) -> list[str]:
    """Return objects that the stream has and the apiserver had not, although they are no newer than the LIST."""
    stream = subjects.kube_stream(resource).name
    known = {subjects.kube(resource, meta.namespace, meta.name) for meta in listed.objects}
    strange = await bus.stream_subjects(stream) - known - {subjects.kube_marker(resource)}
    found: list[str] = []
    for subject in sorted(strange)[:OBJECTS]:
        message = await bus.get_last(stream, subject)
        if message is None or message.headers.get(subjects.OP) == subjects.DELETED:
            continue
        if _version(message) <= version_number(listed.version):
            found.append(subject.removeprefix(f"kube.v1.{resource.id}."))
    return found


def _version(message: Message) -> int:
    return version_number(message.headers.get(subjects.RV, ""))


def _name(meta: ObjectMeta) -> str:
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
