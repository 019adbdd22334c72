"""The other end of the node channel: a watcher and a jobs service in one, for one agent, in simulated time.

It delivers copies of objects, accepts reports as a correct service would (the last one wins, final states stay), and
can be down: then it sends nothing and does not answer.
"""

import asyncio
from contextvars import copy_context
from typing import Any

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import RUNTIME_CONTAINERS_META
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    COMPLETED,
    RECREATE_REQUEST,
    ContainerRecreateRequest,
    ContainerSnapshot,
)
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, NodeImage
from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbe
from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message
from flotilla_common.node import reports
from flotilla_common.node.sealing import seal

NODE = "node-1"
STREAMS = {one.plural: one for one in (POD, NODE_IMAGE, RECREATE_REQUEST, NODE_POD_PROBE)}
LATENCY = 0.01


class Delivery:
    """The delivery to one reader."""

    def __init__(self, plural: str, inbox: str) -> None:
        self.plural = plural
        self.inbox = inbox
        self.number = 0


class Hub:
    """Everything beyond the agent's bus connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.up = True
        self.objects: dict[tuple[str, str, str], Any] = {}  # plural, namespace, name
        self.version = 0
        self.sequence = 0
        self.deliveries: list[Delivery] = []
        self.inboxes: dict[str, Any] = {}
        self.reports: list[tuple[float, str, str, Any]] = []
        self.events: list[reports.EventReport] = []
        self.secrets: list[reports.PullSecret] = []
        self.lose_answers = 0
        self.refuse: set[str] = set()  # kinds
        self.epoch = "e1"

    def put(self, resource: Resource, obj: Any) -> Any:
        """Store an object at a new version, and publish it to the agent."""
        self.version += 1
        meta = msgspec.structs.replace(obj.metadata, resource_version=str(self.version))
        obj = msgspec.structs.replace(obj, metadata=meta)
        self.objects[resource.plural, meta.namespace, meta.name] = obj
        self._publish(resource, obj, subjects.MODIFIED)
        return obj

    def delete(self, resource: Resource, namespace: str, name: str) -> None:
        obj = self.objects.pop((resource.plural, namespace, name))
        self._publish(resource, obj, subjects.DELETED)

    def request(self, name: str, namespace: str = "ns") -> ContainerRecreateRequest:
        return self.objects["containerrecreaterequests", namespace, name]

    def image(self) -> NodeImage:
        return self.objects["nodeimages", "", NODE]

    def probes(self) -> NodePodProbe:
        return self.objects["nodepodprobes", "", NODE]

    def pod(self, name: str, namespace: str = "ns") -> Pod:
        return self.objects["pods", namespace, name]

    def said(self, kind: str) -> list[Any]:
        """Return the accepted reports of one kind."""
        return [report for _, one, _, report in self.reports if one == kind]

    def wipe(self) -> None:
        """Lose the stream and publish everything again."""
        self.epoch += "'"
        self.deliveries.clear()

    async def beat(self) -> None:
        """Send heartbeats forever."""
        while True:
            await asyncio.sleep(5)
            if self.up:
                for delivery in self.deliveries:
                    self._send(delivery.inbox, b"", {"Status": "100", "Nats-Last-Consumer": str(delivery.number)}, "")

    def _publish(self, resource: Resource, obj: Any, op: str) -> None:
        self.sequence += 1
        for delivery in self.deliveries:
            if delivery.plural == resource.plural:
                self._deliver(delivery, resource, obj, op)

    def _deliver(self, delivery: Delivery, resource: Resource, obj: Any, op: str) -> None:
        meta = obj.metadata
        subject = subjects.node_object(NODE, resource, meta.namespace, meta.name)
        headers = {subjects.OP: op, subjects.UID: meta.uid, subjects.EPOCH: self.epoch, subjects.RV: "1"}
        self._numbered(delivery, subject, msgspec.json.encode(obj), headers)

    def _numbered(self, delivery: Delivery, subject: str, data: bytes, headers: dict[str, str]) -> None:
        delivery.number += 1
        reply = f"$JS.ACK.s.c.1.{self.sequence}.{delivery.number}.0.0"
        if self.up:
            message = Message(subject=subject, data=data, headers=headers, reply=reply)
            self.loop.call_later(LATENCY, self._hand_over, delivery.inbox, message)

    def _send(self, inbox: str, data: bytes, headers: dict[str, str], reply: str) -> None:
        message = Message(subject=inbox, data=data, headers=headers, reply=reply)
        self.loop.call_later(LATENCY, self._hand_over, inbox, message)

    def _hand_over(self, inbox: str, message: Message) -> None:
        if inbox in self.inboxes and self.up:
            context, receive = self.inboxes[inbox]
            self.loop.call_soon(receive, message, context=context)

    async def answer(self, subject: str, data: bytes) -> bytes:
        """Return the services' reply to a request."""
        _, _, _, kind, _, _ = subject.split(".", 5)
        node, namespace, name = subjects.reporter(subject)
        assert node == NODE
        reply = getattr(self, f"_{kind}")(namespace, name, data)
        return msgspec.json.encode(reply)

    def _follow(self, namespace: str, name: str, data: bytes) -> reports.FollowAnswer:
        request = msgspec.json.decode(data, type=reports.FollowRequest)
        delivery = Delivery(request.plural, request.inbox)
        self.deliveries = [one for one in self.deliveries if one.plural != request.plural] + [delivery]
        resource = STREAMS[request.plural]
        for (plural, _, _), obj in self.objects.items():
            if plural == request.plural:
                self._deliver(delivery, resource, obj, subjects.ADDED)
        marker = subjects.Marker(epoch=self.epoch, state=subjects.SYNCED, rv=str(self.version))
        self._numbered(delivery, subjects.node_marker(resource), msgspec.json.encode(marker), {})
        return reports.FollowAnswer(accepted=True, created=self.epoch)

    def _take(self, kind: str, key: str, report: Any) -> reports.Answer | None:
        if kind in self.refuse:
            return reports.Answer(why="refused")
        self.reports.append((self.loop.time(), kind, key, report))
        return None

    def _containerrecreaterequests(self, namespace: str, name: str, data: bytes) -> reports.Answer:
        report = msgspec.json.decode(data, type=reports.RecreateReport)
        request = self.objects.get(("containerrecreaterequests", namespace, name))
        if request is None or request.metadata.uid != report.uid:
            return reports.Answer(why="gone")
        if refused := self._take("containerrecreaterequests", name, report):
            return refused
        status = request.status
        changes: dict[str, Any] = {}
        if report.phase and status.phase != COMPLETED:
            changes |= {"phase": report.phase, "message": report.message}
        if report.states is not None:
            changes["container_recreate_states"] = report.states
        status = msgspec.structs.replace(status, **changes)
        request = self.put(RECREATE_REQUEST, msgspec.structs.replace(request, status=status))
        return reports.Answer(accepted=True, resource_version=request.metadata.resource_version)

    def _nodeimages(self, namespace: str, name: str, data: bytes) -> reports.Answer:
        report = msgspec.json.decode(data, type=reports.NodeImageReport)
        image = self.objects.get(("nodeimages", "", name))
        if image is None or image.metadata.uid != report.uid:
            return reports.Answer(why="gone")
        if refused := self._take("nodeimages", name, report):
            return refused
        image = self.put(NODE_IMAGE, msgspec.structs.replace(image, status=report.status))
        return reports.Answer(accepted=True, resource_version=image.metadata.resource_version)

    def _nodepodprobes(self, namespace: str, name: str, data: bytes) -> reports.Answer:
        report = msgspec.json.decode(data, type=reports.NodePodProbeReport)
        found = self.objects.get(("nodepodprobes", "", name))
        if found is None or found.metadata.uid != report.uid:
            return reports.Answer(why="gone")
        if refused := self._take("nodepodprobes", name, report):
            return refused
        found = self.put(NODE_POD_PROBE, msgspec.structs.replace(found, status=report.status))
        return reports.Answer(accepted=True, resource_version=found.metadata.resource_version)

    def _pods(self, namespace: str, name: str, data: bytes) -> reports.Answer:
        report = msgspec.json.decode(data, type=reports.PodReport)
        pod = self.objects.get(("pods", namespace, name))
        if pod is None or pod.metadata.uid != report.uid:
            return reports.Answer(why="gone")
        if refused := self._take("pods", name, report):
            return refused
        annotations = pod.metadata.annotations | {RUNTIME_CONTAINERS_META: report.runtime_containers_meta}
        meta = msgspec.structs.replace(pod.metadata, annotations=annotations)
        pod = self.put(POD, msgspec.structs.replace(pod, metadata=meta))
        return reports.Answer(accepted=True, resource_version=pod.metadata.resource_version)

    def _events(self, namespace: str, name: str, data: bytes) -> reports.Answer:
        self.events.append(msgspec.json.decode(data, type=reports.EventReport))
        return reports.Answer(accepted=True)

    def _secrets(self, namespace: str, name: str, data: bytes) -> reports.SecretsAnswer:
        request = msgspec.json.decode(data, type=reports.SecretsRequest)
        asked = {(one.namespace, one.name) for one in request.references}
        given = [one for one in self.secrets if (one.namespace, one.name) in asked]
        return reports.SecretsAnswer(accepted=True, sealed=seal(request.public_key, given))

    def snapshot(self, name: str, container: str, container_id: str, *, ready: bool = True) -> None:
        """Write the container's state into the pod's recreate request, as the manager does after a restart."""
        request = self.objects.get(("containerrecreaterequests", "ns", name))
        if request is None or request.status.phase != "Recreating":
            return
        new = ContainerSnapshot(name=container, ready=ready, container_id=container_id)
        others = [one for one in request.status.container_status_snapshot if one.name != container]
        if new in request.status.container_status_snapshot:
            return
        status = msgspec.structs.replace(request.status, container_status_snapshot=[*others, new])
        self.put(RECREATE_REQUEST, msgspec.structs.replace(request, status=status))


class AgentBus:
    """The agent's connection to the hub. Sent requests arrive, also when their sender has died."""

    def __init__(self, hub: Hub, outside: Any) -> None:
        self._hub = hub
        self._outside = outside

    @property
    def connected(self) -> bool:
        return self._hub.up

    def publish_soon(self, subject: str, data: bytes) -> None:
        """Drop heartbeats: nothing subscribes to them."""

    async def subscribe(self, subject: str, on_message: Any) -> "Subscription":
        self._hub.inboxes[subject] = (copy_context(), on_message)
        return Subscription(self._hub, subject)

    async def request(self, subject: str, data: bytes, timeout: float) -> bytes:
        hub = self._hub
        if not hub.up:
            raise BusError("not connected")
        reply: asyncio.Future[bytes] = hub.loop.create_future()

        async def travel() -> None:
            await asyncio.sleep(LATENCY)
            if not hub.up:
                return
            answer = await hub.answer(subject, data)
            if hub.lose_answers:
                hub.lose_answers -= 1
                return
            await asyncio.sleep(LATENCY)
            if hub.up and not reply.done():
                reply.set_result(answer)

        hub.loop.create_task(travel(), context=self._outside.copy())
        try:
            async with asyncio.timeout(timeout):
                return await reply
        except TimeoutError as error:
            raise BusError("no reply in time") from error


class Subscription:
    healthy = True

    def __init__(self, hub: Hub, subject: str) -> None:
        self._hub = hub
        self._subject = subject

    async def stop(self) -> None:
        self._hub.inboxes.pop(self._subject, None)
