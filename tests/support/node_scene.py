"""A node with its agent on it, in simulated time: the agent is the real one, everything around it is not."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from flotilla_common.api.keys import RECREATE_ACTIVE, RECREATE_NODE_NAME, RECREATE_POD_UID
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    RECREATE_REQUEST,
    ContainerRecreateRequest,
    ContainerRecreateRequestSpec,
    PreStop,
    RecreateContainer,
    RecreateStrategy,
    StatusContext,
)
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.settings import Settings
from flotilla_nodeagent import app
from flotilla_nodeagent.credentials.keyring import LoginSource
from flotilla_nodeagent.cri.runtimes import Runtimes
from flotilla_nodeagent.endpoints import Status
from tests.simulation.loop import Domain, SeededEntropy, SimulatedClock, SimulatedLoop, State, run
from tests.support.node_hub import NODE, AgentBus, Hub
from tests.support.node_runtime import FakeRuntime, Machine


class Scene:
    """A node, its agent, and their surroundings; created by `play`."""

    def __init__(self, loop: SimulatedLoop, folder: Path, settings: Settings | None = None) -> None:
        self.loop = loop
        self.hub = Hub(loop)
        self.machine = Machine(loop)
        self.clock = SimulatedClock(loop)
        self.status = Status()
        self.node_logins: Sequence[LoginSource] = ()
        self._settings = dataclasses.replace(
            settings or Settings(), node=NODE, node_state_dir=str(folder), cri_socket="/fake.sock"
        )
        self._domain: Domain | None = None
        self._incarnation = 0
        self.machine.on_started = self._snapshot
        loop.create_task(self.hub.beat())

    def start(self) -> None:
        """Start the agent as a new process."""
        self._incarnation += 1
        domain = self._domain = Domain(f"agent-{self._incarnation}")
        self.status = Status()
        self.loop.create_task(self._agent(self.status), context=domain.context())

    def kill(self) -> None:
        """kill -9: nothing more leaves it."""
        assert self._domain is not None
        self._domain.state = State.DEAD

    async def _agent(self, status: Status) -> None:
        runtime = FakeRuntime(self.machine)
        say = lambda ok, why: status.ready("runtime", ok, why)  # noqa: E731
        await app.run(
            settings=self._settings,
            bus=AgentBus(self.hub, self.machine.outside),
            clock=self.clock,
            entropy=SeededEntropy(f"agent {self._incarnation}"),
            status=status,
            runtimes=Runtimes(self.clock, say, override="/fake.sock", connect=lambda _: runtime),
            node_logins=self.node_logins,
        )

    def _snapshot(self, container: Any, pod: str) -> None:
        """Have the kubelet report the new instance, and the manager record it, a second later."""
        for _, _, name in [key for key in self.hub.objects if key[0] == "containerrecreaterequests"]:
            request = self.hub.request(name)
            if request.metadata.labels[RECREATE_POD_UID] == pod:
                named = container.name, f"containerd://{container.id}"
                self.loop.call_later(1.0, self.hub.snapshot, name, *named, context=self.machine.outside)

    def recreate(self, name: str, pod: str, *containers: str, hook: PreStop | None = None, **strategy: Any) -> None:
        """Create a request for containers of a pod, as after admission."""
        wanted = [
            RecreateContainer(
                name=one,
                pre_stop=hook,
                status_context=StatusContext(
                    container_id=f"containerd://{(newest := self.machine.newest(pod, one)).id}",
                    restart_count=newest.restarts,
                ),
            )
            for one in containers
        ]
        meta = ObjectMeta(
            name=name,
            namespace="ns",
            uid=f"uid-{name}",
            creation_timestamp=self.clock.now(),
            labels={RECREATE_POD_UID: pod, RECREATE_NODE_NAME: NODE, RECREATE_ACTIVE: "true"},
        )
        spec = ContainerRecreateRequestSpec(
            pod_name=f"pod-{pod}", containers=wanted, strategy=RecreateStrategy(**strategy)
        )
        self.hub.put(RECREATE_REQUEST, ContainerRecreateRequest(metadata=meta, spec=spec))

    async def until(self, holds: Callable[[], bool], within: float = 120.0) -> float:
        """Wait in fake time; returns when it became true."""
        end = self.loop.time() + within
        while not holds():
            assert self.loop.time() < end, "it did not happen in time"
            await asyncio.sleep(0.1)
        return self.loop.time()

    async def at(self, moment: float) -> None:
        """Wait until that fake second."""
        await asyncio.sleep(max(moment - self.loop.time(), 0))

    def completed(self, name: str) -> bool:
        """Report whether the request is completed."""
        return self.hub.request(name).status.phase == "Completed"

    def states(self, name: str) -> list[tuple[str, str, bool]]:
        """Name, phase, killed."""
        found = self.hub.request(name).status.container_recreate_states
        return [(state.name, state.phase, state.is_killed) for state in found]

    def stopped(self, prefix: str = "") -> list[str]:
        """Return the containers that were sent the stop signal."""
        return [container for _, container, _ in self.machine.stops if container.startswith(prefix)]


def play(folder: Path, story: Callable[[Scene], Coroutine[Any, Any, None]], settings: Settings | None = None) -> None:
    """Run the story in simulated time."""

    async def tell(loop: SimulatedLoop) -> None:
        scene = Scene(loop, folder, settings)
        await story(scene)

    run(tell)
