"""The cluster of the site: objects, published as the watcher does, and the rights of its users."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import affiliation_of, outline
from flotilla_common.bus.heartbeat import VERSION
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Reason
from flotilla_common.installed import published
from flotilla_console.model.resources import NOT_ON_BUS, RESOURCES
from tests.integration.browser.site.apiserver import SiteApi
from tests.integration.browser.site.bus import SiteBus
from tests.testkit.documents import Json

EPOCH = subjects.epoch(subjects.FIRST_LINE, "site")
PUBLISHED = tuple(dict.fromkeys((*published(), *(one for one in RESOURCES if one not in NOT_ON_BUS))))
BEAT_SECONDS = 1.0
SERVICES = ("watcher", "cloneset", "statefulset", "daemonset", "jobs", "sidecar", "topology", "policy", "webhook")


class World:
    """Objects at the apiserver and on the bus."""

    def __init__(self, clock: Clock) -> None:
        self.api, self.bus = SiteApi(), SiteBus()
        self.alive = True
        """False: neither watcher nor services are alive."""
        self._clock = clock
        self._version = 1000

    async def fill(self, objects: Mapping[Resource, Sequence[Json]]) -> None:
        """Publish complete LISTs."""
        for stream in subjects.RECORDS:
            await self.bus.ensure_stream(stream)
        for resource in PUBLISHED:
            await self.bus.ensure_stream(subjects.kube_stream(resource))
            await self._mark(resource, subjects.LISTING)
        for resource, documents in objects.items():
            for document in documents:
                await self.put(resource, document, subjects.ADDED)
        await self._mark_all()

    async def put(self, resource: Resource, document: Json, op: str = subjects.MODIFIED) -> None:
        """Publish the next version of an object."""
        self._version += 1
        document = document | {"metadata": document["metadata"] | {"resourceVersion": str(self._version)}}
        self.api.store(resource, document)
        if resource in NOT_ON_BUS:
            self.api.send(resource, op, document)
        else:
            body = msgspec.json.encode(document)
            await self.bus.publish(_subject(resource, document, body), body, self._headers(document, op))

    async def remove(self, resource: Resource, document: Json) -> None:
        """Publish that an object is gone."""
        self._version += 1
        body = msgspec.json.encode(document)
        gone = document | {"metadata": document["metadata"] | {"resourceVersion": str(self._version)}}
        await self.bus.publish(_subject(resource, document, body), body, self._headers(gone, subjects.DELETED))

    async def explain(self, resource: Resource, document: Json, *reasons: Reason, **more: object) -> None:
        """Publish the last plan of an object."""
        meta = document["metadata"]
        why = {
            **{name: meta.get(name, "") for name in ("namespace", "name", "uid")},
            "kind": resource.kind,
            "generation": meta.get("generation", 1),
            "at": self._clock.now(),
            "service": "cloneset",
            "replica": "cloneset-0",
            "reasons": reasons,
            **more,
        }
        subject = subjects.why(resource, meta.get("namespace", ""), meta["name"])
        await self.bus.publish(subject, msgspec.json.encode(why))

    async def live(self) -> None:
        """Send heartbeats and markers, as long as the watcher is alive, until cancelled."""
        while True:
            if self.alive and self.bus.connected:
                for service in SERVICES:
                    self._beat(service)
                await self._mark_all()
            await asyncio.sleep(BEAT_SECONDS)

    def _beat(self, service: str) -> None:
        replica = f"{service}-0"
        beat = {"service": service, "replica": replica, "version": VERSION, "at": self._clock.now(), "holder": replica}
        self.bus.say(subjects.heartbeat(service, replica), msgspec.json.encode(beat))

    async def _mark_all(self) -> None:
        for resource in PUBLISHED:
            await self._mark(resource, subjects.SYNCED)

    async def _mark(self, resource: Resource, state: str) -> None:
        marker = subjects.Marker(epoch=EPOCH, state=state, rv=str(self._version), layout=subjects.LAYOUT)
        await self.bus.publish(subjects.kube_marker(resource), msgspec.json.encode(marker), {subjects.EPOCH: EPOCH})

    def _headers(self, document: Json, op: str) -> dict[str, str]:
        meta = document["metadata"]
        return {
            subjects.OP: op,
            subjects.RV: meta["resourceVersion"],
            subjects.UID: cast("str", meta.get("uid", "")),
            subjects.EPOCH: EPOCH,
        }


def _subject(resource: Resource, document: Json, body: bytes) -> str:
    namespace, name = document["metadata"].get("namespace", ""), document["metadata"]["name"]
    if resource == POD:
        return subjects.pod(namespace, name, affiliation_of(outline(body)))
    return subjects.kube(resource, namespace, name)
