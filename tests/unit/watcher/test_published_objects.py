"""What the watcher remembers of the objects that it has published, and how many bytes that takes."""

import gc
import tracemalloc
from collections.abc import Sequence
from typing import cast

import msgspec

from flotilla_common.api.resources import NODE, POD
from flotilla_common.bus.interface import Message
from flotilla_common.clock import SystemEntropy
from flotilla_common.kube.reflector import HeadMeta, decode_head
from flotilla_watcher.encoder import Encoder
from flotilla_watcher.node_copies import NodeCopies
from flotilla_watcher.published_objects import Key, PublishedObjects
from flotilla_watcher.publisher import ChangeSpans, Publisher
from flotilla_watcher.routes import routes
from flotilla_watcher.version_lineage import VersionLineage
from flotilla_watcher.writer import StreamWriter
from tests.support.fake_clock import FakeClock
from tests.unit.mirror.scoped import encode, pod

HEAD = HeadMeta(name="a.b", namespace="shop", uid="u-1", resource_version="7", generation=3)
SUBJECT = "kube.v1.core.pods.shop.a_b.CloneSet_apps_kruise_io.51.-"
KEY = ("shop", "a.b")

PODS, NODES = 1000, 50
MOST_BYTES = 640
"""Bytes of a pod with a name of 15 characters and a uid of 36, among 1,000: 560 were measured."""


def test_an_object_is_remembered_until_it_is_gone() -> None:
    objects = PublishedObjects(POD)
    assert (objects.subject(KEY), objects.get(KEY), objects.pop(KEY)) == ("", None, None)
    objects.put(HEAD, SUBJECT)
    assert (objects.subject(KEY), objects.head(KEY), list(objects), len(objects)) == (SUBJECT, HEAD, [KEY], 1)
    moved = SUBJECT.replace(".51.", ".52.")
    later = msgspec.structs.replace(HEAD, resource_version="8")
    objects.put(later, moved)
    assert (objects.subject(KEY), len(objects)) == (moved, 1)
    assert objects.pop(KEY) == later
    assert len(objects) == 0


def test_subjects_of_other_kinds() -> None:
    objects = PublishedObjects(NODE)
    objects.put(msgspec.structs.replace(HEAD, namespace=""), "kube.v1.core.nodes._.a_b")
    assert objects.subject(("", "a.b")) == "kube.v1.core.nodes._.a_b"


class NoStream:
    """A writer that stores nothing."""

    async def begin(self, epoch: str, marker: bytes) -> None: ...

    async def put(self, subject: str, data: bytes, headers: dict[str, str], ttl: float | None = None) -> None: ...

    async def mark(self, epoch: str, marker: bytes) -> None: ...

    async def flush(self) -> None: ...


def pods_publisher() -> Publisher:
    """Return a publisher of pods, with copies for nodes of which none reads."""
    writer, encoder, clock = cast("StreamWriter", NoStream()), Encoder(POD, 1 << 20), FakeClock()

    async def stored(keys: Sequence[Key]) -> list[Message]:
        return []

    nodes = NodeCopies(
        resource=POD,
        route=routes()[POD],
        writer=writer,
        encoder=encoder,
        stored=stored,
        leftover_subjects=set(),
        served=(),
        clock=clock,
        tombstone_seconds=300,
    )
    return Publisher(
        resource=POD,
        writer=writer,
        encoder=encoder,
        clock=clock,
        entropy=SystemEntropy(),
        report=lambda trouble: None,
        leftover_subjects=set(),
        lineage=VersionLineage("0"),
        spans=ChangeSpans(POD, clock, None),
        nodes=nodes,
    )


def version_of_pod(number: int, version: int) -> tuple[HeadMeta, msgspec.Raw]:
    """Return a version of a pod of an owner on one of the nodes, with strings of its own as decoding makes them."""
    document = pod(f"web-{number:05d}-abcde", version, "web", uid=f"0a1b2c3d-4e5f-4a6b-8c7d-{number:012x}")
    raw = encode(document | {"spec": {"nodeName": f"node-{number % NODES}"}})
    return decode_head(raw).metadata, msgspec.Raw(raw)


async def test_a_published_pod_takes_few_bytes() -> None:
    publisher = pods_publisher()
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        await publisher.listing("streamed")
        for number in range(PODS):
            await publisher.listed(*version_of_pod(number, 1_000_000 + number))
        await publisher.complete("2000000")
        for number in range(PODS):
            await publisher.event("MODIFIED", *version_of_pod(number, 2_000_001 + number))
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / PODS < MOST_BYTES
