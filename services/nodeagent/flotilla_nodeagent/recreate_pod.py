"""The containers of a request's pod in the runtime."""

from datetime import UTC, datetime

from flotilla_common.api.keys import RECREATE_POD_UID
from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerRecreateRequest, RecreateState
from flotilla_nodeagent.cri.errors import CriError, NotFound, Unavailable
from flotilla_nodeagent.cri.runtime import Runtime
from flotilla_nodeagent.cri.runtimes import Runtimes
from flotilla_nodeagent.cri.types import Container, State, newest
from flotilla_nodeagent.recreate_states import ContainerObservation, NextStep, next_states, next_step, with_outcome
from flotilla_nodeagent.reporting import Reporter
from flotilla_nodeagent.stopping import ContainerStopper, Hook, StoppedPod, StopRequest, stop_events
from flotilla_nodeagent.timing import Timing

COMPONENT = "kruise-daemon-crr"
DEFAULT_GRACE = 30
FOREVER = float("inf")


class NoRuntime(Exception):
    """The containers belong to no runtime, to several, or to one that is not here."""


class PodContainers:
    """The state of a request's pod in one pass."""

    def __init__(
        self, request: ContainerRecreateRequest, runtimes: Runtimes, stopper: ContainerStopper, timing: Timing
    ) -> None:
        self._request = request
        self._runtime = _runtime_of(request, runtimes)
        self._stopper = stopper
        self._timing = timing
        self._newest: dict[str, Container] = {}
        self._running: dict[str, float] = {}  # seconds, by name
        self.rest = FOREVER
        """Seconds until a container has been running for minStartedSeconds."""

    @property
    def _pod_uid(self) -> str:
        return self._request.metadata.labels.get(RECREATE_POD_UID, "")

    async def read(self) -> None:
        """List the containers. Raises CriError when the runtime fails."""
        self._newest = newest(await self._runtime.containers(self._pod_uid))
        for wanted in self._request.spec.containers:
            if not self._runs(wanted.name):
                self._timing.not_started((self._request.metadata.uid, wanted.name))
        for snapshot in self._request.status.container_status_snapshot:
            if self._runs(snapshot.name) and snapshot.ready:
                self._running[snapshot.name] = await self._since(self._newest[snapshot.name])

    def _runs(self, name: str) -> bool:
        container = self._newest.get(name)
        return container is not None and container.state == State.RUNNING

    async def _since(self, container: Container) -> float:
        try:
            started = await self._runtime.started_at(container.id)
        except NotFound:
            return 0.0
        uid = self._request.metadata.uid
        since = datetime.fromtimestamp(started, UTC)
        seconds = self._timing.elapsed((uid, container.id), since, bound=(uid, container.name))
        least = max(self._request.spec.strategy.min_started_seconds, 0)
        if seconds <= least:
            self.rest = min(self.rest, least - seconds + 0.05)
        return seconds

    def states(self, reported: list[RecreateState]) -> list[RecreateState]:
        """Return the states of the containers."""
        uid = self._request.metadata.uid
        seen = {
            name: ContainerObservation(
                container=container,
                running_seconds=self._running.get(name, 0.0),
                stopped=self._stopper.stopped(uid, container),
            )
            for name, container in self._newest.items()
        }
        return next_states(self._request, reported, seen)

    def next_step(self, states: list[RecreateState]) -> NextStep:
        """Decide the next step."""
        return next_step(self._request, states, frozenset(self._newest))

    async def kill(self, name: str, states: list[RecreateState], reporter: Reporter) -> list[RecreateState]:
        """Stop a container and return the states afterwards. Raises Unavailable when the outcome is unknown."""
        container, meta = self._newest[name], self._request.metadata
        wanted = next(each for each in self._request.spec.containers if each.name == name)
        pod = StoppedPod(meta.namespace, self._request.spec.pod_name, self._pod_uid)
        message = f"Stopping container {name} by ContainerRecreateRequest {meta.name}"
        grace = self._request.spec.strategy.termination_grace_period_seconds
        stop_request = StopRequest(
            cause=meta.uid,
            runtime=self._runtime,
            container=container,
            hook=None if wanted.pre_stop is None else Hook(wanted.pre_stop, wanted.ports),
            grace=DEFAULT_GRACE if grace is None else grace,
        )
        try:
            await self._stopper.stop(stop_request, stop_events(reporter, COMPONENT, pod, container, message))
        except Unavailable:
            raise
        except CriError as error:
            return with_outcome(states, name, str(error))
        self._timing.not_started((meta.uid, name))
        return with_outcome(states, name, None)


def _runtime_of(request: ContainerRecreateRequest, runtimes: Runtimes) -> Runtime:
    """Return the runtime of the containers.

    Raises NoRuntime when they are of no runtime of this node, or of several, Unavailable when no runtime answers at
    all.
    """
    contexts = [container.status_context for container in request.spec.containers]
    names = {context.container_id.partition("://")[0] if context else "" for context in contexts}
    if "" in names or len(names) != 1:
        raise NoRuntime(f"containers of runtimes {sorted(names)}")
    [name] = names
    runtime = runtimes.named(name)
    if runtime is None:
        runtimes.primary()
        raise NoRuntime(f"{name} is not a runtime of this node")
    return runtime
