"""The simulated apiserver keeps the contract of the real one."""

import pytest

from flotilla_common.api.crds import manifests
from flotilla_common.api.resources import NAMESPACE
from tests.simulation.apiserver.client import SimulatedApi
from tests.simulation.apiserver.server import ApiServer
from tests.simulation.cluster.durations import Durations
from tests.simulation.cluster.garbage import GarbageCollector
from tests.simulation.cluster.namespaces import Namespaces
from tests.simulation.cluster.volumes import Volumes
from tests.simulation.contract.apiserver.contract import ApiServerContract
from tests.simulation.contract.apiserver.harness import Exchange, Harness, Play, encode
from tests.simulation.history import History
from tests.simulation.loop import SimulatedClock, SimulatedLoop, run


@pytest.fixture
def play() -> Play:
    return lambda exchange: run(lambda loop: _on_a_server(loop, exchange))


async def _on_a_server(loop: SimulatedLoop, exchange: Exchange) -> None:
    """Play an exchange with a simulated apiserver and the controllers of the contract, without kubelets."""
    history = History()
    server = ApiServer(SimulatedClock(loop), history)
    for manifest in manifests():
        server.define(manifest)
    for controller in (
        GarbageCollector(server, Durations()),
        Namespaces(server, Durations()),
        Volumes(server, Durations()),
    ):
        history.listeners.append(controller.see)
    api = SimulatedApi(server, "user")
    for name in ("default", "scene"):
        await api.create(NAMESPACE, "", encode({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))

    async def forget() -> None:
        server.compact()

    await exchange(Harness(api, "scene", forget))


class TestApiServer(ApiServerContract): ...
