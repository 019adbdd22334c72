"""Keeps `runtime-containers-meta` of this node's pods up to date, and restarts containers that have to follow it.

The kubelet does not restart a container because its environment should follow the pod's metadata (nodeagent.md §5.5).
It starts a stopped container again, with the new environment; then there is a new instance with a new hash. One that
never gets the wanted environment is stopped less and less often.
"""

from collections.abc import Callable
from functools import partial

import msgspec
import structlog

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import RUNTIME_CONTAINERS_META
from flotilla_common.control.queue import Backoff
from flotilla_common.node.reports import PODS, PodReport
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.copies import Copies, Key, version
from flotilla_nodeagent.cri.errors import CriError
from flotilla_nodeagent.cri.runtime import Runtime
from flotilla_nodeagent.cri.types import Container, State, newest
from flotilla_nodeagent.reporting import ReportRejected
from flotilla_nodeagent.runtime_meta import (
    Entry,
    Hashes,
    RuntimeMeta,
    current_env_hash,
    decode_meta,
    entry_of,
    instances,
    parse_env,
    restart_due,
    settled,
)
from flotilla_nodeagent.stopping import LEAST_GRACE, ContainerStopper, StoppedPod, StopRequest, hook_of, stop_events
from flotilla_nodeagent.workqueue import WorkQueue

WORKERS, RESTART_WORKERS = 5, 10

FIRST_SECONDS, MOST_SECONDS = 3.0, 600.0
"""Pause before the first stop of a container, doubled with each further one of the same container of the pod."""

CALM_SECONDS = 1200.0
"""Time without a stop after which a container starts with the shortest pause again."""

COMPONENT = "kruise-daemon-containermeta"

SETTLE_SECONDS = 1.0
"""Delay after a change, so that several changes of a pod are handled together (nodeagent.md §5.2)."""

FIRST_SPREAD_SECONDS = 60.0
"""Time over which pods without an annotation that existed before the agent are reported.

A new release of the agent must not write every pod of the cluster at once.
"""

ENV_SECONDS = 3
"""Timeout of `env` in a container, and the pause before the next attempt."""

ENV_LIMIT = 1 << 20
"""Limit of the bytes of an environment that are read: Kubernetes keeps less than 1.5 MiB of a whole pod."""


class PendingRestart(msgspec.Struct, frozen=True):
    """One instance of a container that needs a restart."""

    pod: Key
    pod_uid: str
    name: str
    container_id: str
    runtime: str


class Restarts:
    """The queue of containers to stop."""

    def __init__(self, context: AgentContext, stopper: ContainerStopper) -> None:
        self._context = context
        self._stopper = stopper
        self._pauses: dict[tuple[str, str], tuple[float, float]] = {}  # (pod uid, name): next pause, valid until
        self._asked: dict[PendingRestart, Callable[[], bool]] = {}
        backoff = Backoff(FIRST_SECONDS, MOST_SECONDS)
        self._queue = WorkQueue[PendingRestart](
            "restarts", context, self._stop, workers=RESTART_WORKERS, backoff=backoff
        )
        self._log = structlog.get_logger(part="restarts")

    def want(self, wanted: PendingRestart, still: Callable[[], bool]) -> None:
        """Stop this instance after its pause, if `still` is true then. Repeated calls have no effect."""
        if wanted in self._asked:
            return
        self._asked[wanted] = still
        key, now = (wanted.pod_uid, wanted.name), self._context.clock.monotonic()
        pause, until = self._pauses.get(key, (FIRST_SECONDS, 0.0))
        pause = pause if now < until else FIRST_SECONDS
        self._pauses = {each: kept for each, kept in self._pauses.items() if now < kept[1]}
        self._pauses[key] = (min(pause * 2, MOST_SECONDS), now + pause + CALM_SECONDS)
        self._queue.add(wanted, pause)

    async def run(self) -> None:
        """Work until cancelled. Stops of an earlier process are dropped: the present state decides what to stop."""
        for cause in self._stopper.journal.causes():
            self._stopper.forget(cause)
        await self._queue.run()

    async def _stop(self, wanted: PendingRestart) -> float | None:
        """Stop it, if it still exists and runs. Raises CriError."""
        runtime = self._context.runtimes.named(wanted.runtime) or self._context.runtimes.primary()
        container = await runtime.container(wanted.container_id)
        if container is not None and container.state == State.RUNNING and self._asked[wanted]():
            self._log.info("restarting for its environment", pod="/".join(wanted.pod), container=wanted.name)
            stop_request = StopRequest(
                cause=container.id,
                runtime=runtime,
                container=container,
                hook=hook_of(container),
                grace=LEAST_GRACE if container.grace is None else container.grace,
            )
            pod = StoppedPod(*wanted.pod, wanted.pod_uid)
            message = f"Stopping containerID {runtime.name}://{container.name} by container meta restarter"
            await self._stopper.stop(
                stop_request, stop_events(self._context.reporter, COMPONENT, pod, container, message)
            )
        self._stopper.forget(wanted.container_id)
        del self._asked[wanted]
        return None


class Pods:
    """The pods of the node that need the annotation; the watcher sends no others."""

    def __init__(self, context: AgentContext, copies: Copies[Pod], restarts: Restarts, *, env: bool) -> None:
        self._context = context
        self._copies = copies
        self._restarts = restarts
        self._env = env
        self._written: dict[str, tuple[int, RuntimeMeta]] = {}  # by uid: the version after the report, and its content
        self._queue = WorkQueue[Key]("pods", context, self._sync, workers=WORKERS)
        self._early: dict[Key, int] = {}  # versions of pods without an annotation that existed before us
        self._log = structlog.get_logger(part="pods")
        self.run = self._queue.run
        copies.listen(self._changed)

    def _changed(self, key: Key) -> None:
        pod = self._copies.get(key)
        if pod is None:
            return
        if not self._copies.synced:
            if RUNTIME_CONTAINERS_META not in pod.metadata.annotations:
                self._early[key] = version(pod)
                self._queue.add(key, self._context.entropy.uniform(SETTLE_SECONDS, FIRST_SPREAD_SECONDS))
        elif self._early.pop(key, None) != version(pod):
            self._queue.add(key, SETTLE_SECONDS)

    def _meta(self, pod: Pod) -> RuntimeMeta:
        """Return the annotation, or the newer one that this agent has reported."""
        ours = self._written.get(pod.metadata.uid)
        if ours is not None and version(pod) < ours[0]:
            return ours[1]
        self._written.pop(pod.metadata.uid, None)
        return decode_meta(pod.metadata.annotations.get(RUNTIME_CONTAINERS_META, ""))

    async def _sync(self, key: Key) -> float | None:
        pod = self._copies.get(key)
        if pod is None or pod.metadata.deletion_timestamp is not None or not pod.status.container_statuses:
            return None
        meta = self._meta(pod)
        runtime = self._runtime(pod)
        if runtime is None or settled(pod, meta, env=self._env):
            return None
        containers = newest(await runtime.containers(pod.metadata.uid))
        reader = _MetaReader(pod, runtime, containers, env=self._env)
        newer = await reader.meta(meta)
        for entry, container in reader.due:
            wanted = PendingRestart(key, pod.metadata.uid, entry.name, container.id, runtime.name)
            self._restarts.want(wanted, partial(self._still_due, key, entry))
        if newer != meta:
            await self._report(pod, newer)
        return ENV_SECONDS if reader.incomplete else None

    def _still_due(self, key: Key, entry: Entry) -> bool:
        """Report whether the pod's present metadata still requires a restart of the container."""
        pod = self._copies.get(key)
        specs = pod.spec.containers if pod is not None else []
        return pod is not None and any(restart_due(pod, spec, entry) for spec in specs if spec.name == entry.name)

    def _runtime(self, pod: Pod) -> Runtime | None:
        """Return the runtime of the pod's containers, or None without a container ID or if it is not here."""
        ids = instances(pod).values()
        return next(filter(None, map(self._context.runtimes.named, (each.partition("://")[0] for each in ids))), None)

    async def _report(self, pod: Pod, meta: RuntimeMeta) -> None:
        report = PodReport(
            uid=pod.metadata.uid,
            resource_version=pod.metadata.resource_version,
            runtime_containers_meta=meta.encode(),
        )
        try:
            answer = await self._context.reporter.send(PODS, *pod.metadata.key, report)
        except ReportRejected as error:
            self._log.info("report refused", pod=pod.metadata.name, why=str(error))
            return
        self._written[pod.metadata.uid] = (int(answer.resource_version or 0), meta)


class _MetaReader:
    """One pod in its runtime at one moment."""

    def __init__(self, pod: Pod, runtime: Runtime, containers: dict[str, Container], *, env: bool) -> None:
        self._pod = pod
        self._runtime = runtime
        self._containers = containers
        self._env = env
        self._specs = {spec.name: spec for spec in pod.spec.containers}
        self.due: list[tuple[Entry, Container]] = []
        self.incomplete = False

    async def meta(self, old: RuntimeMeta) -> RuntimeMeta:
        """Return the annotation as it should be. Raises CriError when the runtime fails."""
        entries: list[Entry] = []
        for status in self._pod.status.container_statuses:
            container, spec = self._containers.get(status.name), self._specs.get(status.name)
            if container is None or spec is None:
                continue
            container_id = f"{self._runtime.name}://{container.id}"
            entry = old.entry(status.name, container_id) or entry_of(container, container_id, 0)
            if self._env:
                entry = await self._with_env(entry, container)
                if container.state == State.RUNNING and restart_due(self._pod, spec, entry):
                    self.due.append((entry, container))
            entries.append(entry)
        return RuntimeMeta(entries)

    async def _with_env(self, entry: Entry, container: Container) -> Entry:
        if entry.hashes.extracted_env_from_metadata_hash or container.state != State.RUNNING:
            return entry
        try:
            environment = await self._environment(container.id)
        except CriError:
            self.incomplete = True
            return entry
        value = current_env_hash(self._specs[entry.name], environment)
        hashes = Hashes(plain_hash=entry.hashes.plain_hash, extracted_env_from_metadata_hash=value)
        return msgspec.structs.replace(entry, hashes=hashes)

    async def _environment(self, container_id: str) -> dict[str, str]:
        """Return the environment from the runtime if it provides it, else from `env` inside the container."""
        known = await self._runtime.environment(container_id)
        if known is not None:
            return known
        done = await self._runtime.execute(container_id, ["env"], keep=ENV_LIMIT, seconds=ENV_SECONDS)
        if done.exit_code or done.cut:
            raise CriError(f"env ended with exit code {done.exit_code}, or wrote more than {ENV_LIMIT} bytes")
        return parse_env(done.stdout)
