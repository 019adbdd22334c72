"""A change is distributed into 300 namespaces under kills and wipes.

Every copy gets it, in one write, and foreign objects are untouched.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from tests.support.audit import AuditLog, on
from tests.support.cluster import control_plane, eventually
from tests.support.fleet import Fleet, fleet

SPACES = [f"n-{number:03}" for number in range(300)]
SERVICES = ("watcher", "webhook", "sidecar")
FLAGS = ("--lease-duration=6", "--lease-retry-period=1", "--bus-fallback-after=6", "--kube-max-writes=1")
"""Shorter timeouts than the defaults, and one write at a time, so that faults hit the middle of the work."""
PATIENCE = 120.0
TRIES = 5
THEIRS = "theirs"
UNHEARD = 12
"""Writes that the apiserver's audit log may lack.

Their answers were lost with the client or the server, or they are not written yet: the log is written after the answer,
by a busy apiserver several writes later.
"""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]


class Everywhere:
    """ConfigMap `shared` in all namespaces, one of them with a foreign object of that name."""

    def __init__(self, flotilla: Fleet, log: AuditLog) -> None:
        self.flotilla = flotilla
        self.cluster = flotilla.cluster
        self._log = log
        self._number = 0

    @property
    def value(self) -> str:
        """Return the value that the copies have to contain."""
        return f"value {self._number}"

    async def made(self) -> None:
        """Create the namespaces, and wait until all copies exist."""
        self._apply(*({"kind": "Namespace", "metadata": {"name": name}} for name in (*SPACES, THEIRS)))
        self._apply({"kind": "ConfigMap", "metadata": {"name": "shared", "namespace": THEIRS}, "data": {"k": "mine"}})
        self._change()
        await self.end()

    async def begin(self) -> None:
        """Distribute another value, until one is caught in the middle: it may be everywhere before the first check."""
        for _ in range(TRIES):
            self._log.ours()
            self._change()
            await eventually(lambda: self._done() > 0, PATIENCE)
            if self._done() < len(SPACES):
                return
            await eventually(self._rests, PATIENCE)
        raise AssertionError(f"{TRIES} values were everywhere before they were looked at")

    async def end(self) -> None:
        """Wait until everything has settled, and check that nothing was written twice."""
        await eventually(self._rests, PATIENCE)
        values = self._values()
        assert values.pop(THEIRS) == "mine"
        assert set(values.values()) == {self.value}
        done = [one for one in on(self._log.ours(), "configmaps") if one.response_status.code < 300]
        written = sorted(one.object_ref.namespace for one in done)
        assert written == sorted(set(written))
        assert len(values) - len(written) <= UNHEARD
        await self.flotilla.healthy()

    def _change(self) -> None:
        self._number += 1
        resource = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"k": self.value}}
        spec = {"resource": resource, "targets": {"allNamespaces": True}}
        document = {"kind": "ResourceDistribution", "metadata": {"name": "shared"}, "spec": spec}
        self._apply({"apiVersion": "apps.kruise.io/v1beta1", **document})

    def _values(self) -> dict[str, str]:
        found = self.cluster.read("configmap", "-A", "--field-selector=metadata.name=shared")["items"]
        return {one["metadata"]["namespace"]: one["data"]["k"] for one in found}

    def _done(self) -> int:
        return sum(value == self.value for value in self._values().values())

    def _rests(self) -> bool:
        found = self.cluster.read("distributor", "shared")
        status = found.get("status", {})
        if status.get("observedGeneration") != found["metadata"]["generation"]:
            return False
        conflict = status["conditions"][4].get("failedNamespaces")
        return (status["failed"], conflict) == (1, [THEIRS])

    def _apply(self, *documents: dict[str, Any]) -> None:
        items = [{"apiVersion": "v1"} | document for document in documents]
        self.cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def everywhere(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Everywhere]:
    log = AuditLog(tmp_path_factory.mktemp("audit"))
    async with (
        control_plane(tmp_path_factory.mktemp("plane"), nodes=0, apiserver_flags=log.flags) as cluster,
        fleet(cluster, SERVICES, FLAGS) as running,
    ):
        made = Everywhere(running, log)
        await made.made()
        yield made


@pytest.mark.parametrize("service", SERVICES)
async def test_a_service(everywhere: Everywhere, service: str) -> None:
    await everywhere.begin()
    await everywhere.flotilla.restart(service)
    await everywhere.end()


async def test_a_wiped_bus(everywhere: Everywhere) -> None:
    await everywhere.begin()
    await everywhere.flotilla.wipe_bus()
    await everywhere.end()


async def test_the_control_plane(everywhere: Everywhere) -> None:
    await everywhere.begin()
    await everywhere.flotilla.kill_component("kube-apiserver", "etcd")
    await everywhere.flotilla.repair_control_plane()
    await everywhere.end()


async def test_everything_at_once(everywhere: Everywhere) -> None:
    await everywhere.begin()
    await everywhere.flotilla.kill_everything(SERVICES)
    await everywhere.end()
