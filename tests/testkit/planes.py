"""Fixtures of integration tests: a control plane of one file, and a namespace of one test."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, NamedTuple, cast

import pytest
import pytest_asyncio

from flotilla_common.api.resources import Resource
from tests.support.audit import AuditLog
from tests.support.cluster import control_plane
from tests.support.fleet import SERVICES, Fleet, fleet
from tests.support.shared_plane import KUBELET, NODES
from tests.support.workspace import Workspace, watched


class Own(NamedTuple):
    """A control plane of one file with its audit log."""

    fleet: Fleet
    audit: AuditLog


def _flags(request: pytest.FixtureRequest) -> Any:
    """Return the flags of services that the file names in `FLAGS`, or None."""
    return getattr(cast("Any", request).module, "FLAGS", None)


def own_plane(*services: str) -> Callable[..., Any]:
    """Return the fixture of a control plane with audit log for one file: the usual services, and these.

    Services start with the flags that the file names in `FLAGS`.
    """

    @pytest_asyncio.fixture(scope="module", loop_scope="module")
    async def own(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> AsyncIterator[Own]:
        folder = tmp_path_factory.mktemp("plane")
        audit = AuditLog(folder)
        plane = control_plane(folder, nodes=NODES, kubelet=KUBELET, apiserver_flags=audit.flags)
        async with plane as cluster, fleet(cluster, (*SERVICES, *services), flags=_flags(request)) as running:
            yield Own(running, audit)

    return own


def own_fleet(*services: str) -> Callable[..., Any]:
    """Return the fixture of a control plane for one file: the usual services, and these, with the file's `FLAGS`."""

    @pytest_asyncio.fixture(scope="module", loop_scope="module")
    async def own(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> AsyncIterator[Fleet]:
        plane = control_plane(tmp_path_factory.mktemp("plane"), nodes=NODES, kubelet=KUBELET)
        async with plane as cluster, fleet(cluster, (*SERVICES, *services), flags=_flags(request)) as running:
            yield running

    return own


def namespace(*resources: Resource, private: tuple[Resource, ...] = (), delete: bool = False) -> Callable[..., Any]:
    """Return the fixture of a namespace in which these resources are watched, named after the test.

    It is on the control plane that all share, or on that of fixture `own` if the file names `FLAGS`; `private` are
    watched on the latter only. With `delete` it is deleted afterwards, for nodes have room for a hundred pods.
    """

    @pytest.fixture
    def space(request: pytest.FixtureRequest) -> Iterator[Workspace]:
        has_own = _flags(request) is not None
        found: Fleet | Own = request.getfixturevalue("own" if has_own else "shared")
        flotilla = found.fleet if isinstance(found, Own) else found
        with watched(flotilla.cluster, request.node.nodeid, *resources, *(private if has_own else ())) as made:
            yield made
        if delete:
            flotilla.cluster.kubectl("delete", "namespace", made.name, "--wait=false")

    return space
