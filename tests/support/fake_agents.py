"""Node agents without nodes: they read the node channel and report pulls as a test defines.

with FakeAgents(nats_server, ["node-0"]) as agents:
    agents.answers["node-0", "nginx:1.25"] = FAIL
"""

import asyncio
import contextlib
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

import msgspec

from flotilla_common.api.images import reference_of
from flotilla_common.api.kinds.nodeimage.types import (
    FAILED,
    NODE_IMAGE,
    PULLING,
    SUCCEEDED,
    ImageStatus,
    ImageTag,
    NodeImage,
    NodeImageStatus,
    SecretReference,
    TagStatus,
)
from flotilla_common.bus import subjects
from flotilla_common.bus.interface import BusError, Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import SystemClock, SystemEntropy
from flotilla_common.node.reports import (
    NODE_IMAGES,
    SECRETS,
    Answer,
    NodeImageReport,
    PullSecret,
    SecretsAnswer,
    SecretsRequest,
)
from flotilla_common.node.sealing import Opener
from flotilla_dev.cluster.nats import NatsServer
from flotilla_nodeagent.reader import Reader
from tests.support.broker import people

FAIL, HANG, SILENT = "fail", "hang", "silent"
PULL_SECONDS = 0.1


class _Agent:
    """The agent of one node: pulls nothing, and reports that it did."""

    def __init__(self, owner: "FakeAgents", node: str) -> None:
        self._owner = owner
        self._node = node
        self._image: NodeImage | None = None
        self._changed = asyncio.Event()
        self._done: dict[tuple[str, str, int], TagStatus] = {}
        self._began: dict[tuple[str, str, int], float] = {}
        self.bus = NatsBus(people(owner.server), name=node, clock=SystemClock(), inbox_prefix=subjects.node_inbox(node))

    async def run(self) -> None:
        reader = Reader(
            bus=self.bus,
            clock=SystemClock(),
            entropy=SystemEntropy(),
            node=self._node,
            resource=NODE_IMAGE,
            on_message=self._take,
            on_reset=lambda: None,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(reader.run())
            group.create_task(self._pull())

    async def _pull(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await self._changed.wait()
            self._changed.clear()
            if self._image is not None:
                await self._work(self._image)

    def _take(self, message: Message) -> None:
        if subjects.marked_node(message.subject) is not None:
            return
        gone = message.headers.get(subjects.OP) == subjects.DELETED
        self._image = None if gone else msgspec.json.decode(message.data, type=NodeImage)
        self._changed.set()

    async def _work(self, image: NodeImage) -> None:
        statuses: dict[str, ImageStatus] = {}
        for name, spec in image.spec.images.items():
            tags = [entry for tag in spec.tags if (entry := self._entry(image, name, tag)) is not None]
            if tags:
                statuses[name] = ImageStatus(tags=tags)
        wanted = NodeImageStatus(image_statuses=statuses)
        if self._says(image, statuses):
            return
        report = NodeImageReport(
            uid=image.metadata.uid, resource_version=image.metadata.resource_version, status=wanted
        )
        subject = subjects.report(self._node, NODE_IMAGES, "", self._node)
        with contextlib.suppress(BusError):
            reply = await self.bus.request(subject, msgspec.json.encode(report), 6)
            self._owner.answers_given.append(msgspec.json.decode(reply, type=Answer))

    def _says(self, image: NodeImage, statuses: dict[str, ImageStatus]) -> bool:
        held = {
            (name, tag.tag, tag.version, tag.phase)
            for name, one in image.status.image_statuses.items()
            for tag in one.tags
        }
        wanted = {(name, tag.tag, tag.version, tag.phase) for name, one in statuses.items() for tag in one.tags}
        return wanted <= held

    def _entry(self, image: NodeImage, name: str, tag: ImageTag) -> TagStatus | None:
        held = image.entry(name, tag.tag)
        if held is not None and held.version == tag.version and held.completion_time is not None:
            return held
        answer = self._owner.answers.get((self._node, reference_of(name, tag.tag)), "")
        if answer == SILENT:
            return None
        key, now = (name, tag.tag, tag.version), asyncio.get_running_loop().time()
        if key not in self._began:
            self._began[key] = now
            self._owner.pulls.append((self._node, reference_of(name, tag.tag), tag.version))
        started = datetime.now(UTC).replace(microsecond=0)
        entry = TagStatus(tag=tag.tag, phase=PULLING, version=tag.version, start_time=started)
        if answer == HANG or now - self._began[key] < PULL_SECONDS:
            return entry
        if key not in self._done:
            phase, message = (FAILED, "manifest unknown") if answer == FAIL else (SUCCEEDED, "")
            self._done[key] = msgspec.structs.replace(
                entry, phase=phase, completion_time=started, progress=100, message=message
            )
            self._owner.ended.append((self._node, reference_of(name, tag.tag), tag.version))
        return self._done[key]


class FakeAgents:
    """Agents of some nodes, in a thread of their own."""

    def __init__(self, server: NatsServer, nodes: Sequence[str]) -> None:
        self.server = server
        self.answers: dict[tuple[str, str], str] = {}  # by node and image: FAIL, HANG or SILENT instead of success
        self.pulls: list[tuple[str, str, int]] = []  # node, image, version
        self.ended: list[tuple[str, str, int]] = []  # the same for finished ones, reported or not
        self.answers_given: list[Answer] = []
        self._nodes = nodes
        self._agents: dict[str, _Agent] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run)
        self._stop = asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def ask_secrets(self, node: str, *references: SecretReference, about: str = "") -> tuple[Answer, list[PullSecret]]:
        """Return the node's answer when its agent asks for secrets (`about` another node's NodeImage, if named)."""
        opener = Opener()
        request = SecretsRequest(public_key=opener.public_key, references=list(references))
        subject = subjects.report(node, SECRETS, "", about or node)
        asked = self._agents[node].bus.request(subject, msgspec.json.encode(request), 6)
        reply = asyncio.run_coroutine_threadsafe(asked, self._loop).result(10)
        answer = msgspec.json.decode(reply, type=SecretsAnswer)
        return answer, opener.open(answer.sealed) if answer.accepted else []

    def report(self, node: str, about: str, report: NodeImageReport) -> Answer:
        """Send a report by hand."""
        subject = subjects.report(node, NODE_IMAGES, "", about)
        asked = self._agents[node].bus.request(subject, msgspec.json.encode(report), 6)
        reply = asyncio.run_coroutine_threadsafe(asked, self._loop).result(10)
        return msgspec.json.decode(reply, type=Answer)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._agents = {node: _Agent(self, node) for node in self._nodes}
        tasks = [asyncio.ensure_future(agent.run()) for agent in self._agents.values()]
        await self._stop.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for agent in self._agents.values():
            await agent.bus.close()
