"""Flotilla's cost for the apiserver, counted by the apiserver: writes per pod, per rollout, and at rest."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.support.audit import AuditLog, Write, on, said
from tests.support.cluster import control_plane
from tests.support.fleet import Fleet, fleet
from tests.support.scene import NEW, OLD, Scene, cloneset, scene

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

PODS = 100
IDLE_SECONDS = 15.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def audit(tmp_path_factory: pytest.TempPathFactory) -> AuditLog:
    return AuditLog(tmp_path_factory.mktemp("audit"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory, audit: AuditLog) -> AsyncIterator[Fleet]:
    plane = control_plane(tmp_path_factory.mktemp("plane"), apiserver_flags=audit.flags)
    async with plane as cluster, fleet(cluster) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(flotilla: Fleet) -> AsyncIterator[Scene]:
    async with scene(flotilla) as made:
        yield made


def per_pod(writes: list[Write]) -> Counter[str]:
    """Count the writes on each pod."""
    # the audit log lacks a created object's name if the apiserver generates it; ours have names
    return Counter(write.object_ref.name for write in on(writes, "pods"))


async def test_create(place: Scene, audit: AuditLog) -> None:
    audit.ours()
    await place.create(cloneset("web", PODS, maxUnavailable="20%"))
    await place.settle("web", OLD, PODS)
    writes = audit.ours()
    counts = per_pod(writes)
    assert len(on(writes, "pods")) <= 2 * PODS, said(writes)
    assert max(counts.values()) <= 2, counts.most_common(5)
    assert len(on(writes, "clonesets")) <= 15, said(writes)
    assert len(on(writes, "controllerrevisions")) == 1, said(writes)
    assert all(write.response_status.code < 300 for write in on(writes, "pods")), said(writes)
    rest = [write for write in writes if write not in on(writes, "pods", "clonesets", "controllerrevisions", "leases")]
    assert {write.object_ref.resource for write in rest} <= {"events"}, said(rest)
    assert len(rest) <= 25, said(rest)


async def test_in_place_update(place: Scene, audit: AuditLog) -> None:
    audit.ours()
    await place.roll("web", NEW)
    await place.settle("web", NEW, PODS)
    writes = audit.ours()
    counts = per_pod(writes)
    assert len(on(writes, "pods")) <= 3 * PODS, said(writes)
    assert max(counts.values()) <= 3, counts.most_common(5)
    assert len(on(writes, "clonesets")) <= 25, said(writes)
    assert all(write.response_status.code < 300 for write in on(writes, "pods")), said(writes)


async def test_scale_in(place: Scene, audit: AuditLog) -> None:
    """One delete for each pod, and no other write on any."""
    audit.ours()
    await place.patch("web", {"replicas": PODS // 2})
    await place.settle("web", NEW, PODS // 2)
    writes = audit.ours()
    assert {write.what for write in on(writes, "pods")} == {"delete pods"}, said(writes)
    assert len(on(writes, "pods")) == PODS // 2, said(writes)


async def test_idle(place: Scene, audit: AuditLog) -> None:
    """Nothing but leases."""
    await asyncio.sleep(2)
    audit.ours()
    await asyncio.sleep(IDLE_SECONDS)
    writes = audit.ours()
    assert {write.object_ref.resource for write in writes} <= {"leases"}, said(writes)
    await place.end()
