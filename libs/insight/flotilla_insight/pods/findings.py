"""Finds the causes of the pods of one object: from all pods' own status, and a few of each sort in context.

The context of a pod is read from the apiserver: events, claims, nodes, and the last line of a log. Only the few pods
that are named in the output are looked at so closely.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from datetime import datetime
from urllib.parse import quote

import msgspec

from flotilla_common.api.core import ContainerStatus, Node, PersistentVolumeClaim, Pod
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import CLAIM, EVENT, LEASE, NODE, POD
from flotilla_common.control.leases import Lease
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.workload.causes import Cause, Claim, Group, PodContext, PodEvent, cause_of, grouped, unstable_cause
from flotilla_insight.durations import span
from flotilla_insight.planning import run_out

MOST_EVENTS = 100
MOST_NODES = 500
NODE_LEASES = "kube-node-lease"
LOG = "tailLines=5&limitBytes=8192"

CLOSELY = 4
"""Pods of a sort that are read in context; the first one's cause holds for the rest of the sort."""

SORTS = 4
"""Sorts of trouble that are read in context."""


class PodContextReader:
    """Reads the context of pods, each part once, and records what it was not allowed to read."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._nodes: dict[str, Node | None] = {}
        self.denied: set[str] = set()

    async def context_of(self, pod: Pod, basis: PodContext) -> PodContext:
        """Return the pod's context, added to that of all pods of the object. Raises Unreachable."""
        events, claims, nodes, words = await asyncio.gather(
            self.events(pod.metadata), self._claims(pod), self.nodes(pod.spec.node_name), self._words(pod)
        )
        return msgspec.structs.replace(basis, events=events, claims=claims, nodes=nodes, last_words=words)

    async def nodes(self, name: str) -> Mapping[str, Node | None]:
        """Return the nodes read so far, with this one if it may be read."""
        if name and name not in self._nodes:
            body = await self._get("nodes", self._api.get(NODE, "", name))
            if body is not None:
                self._nodes[name] = msgspec.json.decode(body, type=Node) if body else None
        return self._nodes

    async def events(self, about: ObjectMeta) -> list[PodEvent]:
        """Return the events of an object. Raises Unreachable."""
        selector = f"involvedObject.uid={about.uid}"
        try:
            page = await self._api.list(EVENT, about.namespace, field_selector=selector, limit=MOST_EVENTS)
        except ApiError as failure:
            self._missed("events", failure)
            return []
        return [msgspec.json.decode(item, type=PodEvent) for item in page.items]

    async def refusal(self, about: ObjectMeta) -> PodEvent | None:
        """Return the last event about pods that could not be created, or None. Raises Unreachable."""
        refusals = [event for event in await self.events(about) if event.reason == "FailedCreate"]
        return max(refusals, key=lambda event: str(event.at), default=None)

    async def silent_nodes(self, now: datetime) -> Mapping[str, datetime]:
        """Return nodes whose kubelets let their leases expire, with the time of the last renewal.

        This shows before the node controller marks them not ready.
        """
        try:
            page = await self._api.list(LEASE, NODE_LEASES, limit=MOST_NODES)
        except ApiError as failure:
            self._missed("leases of nodes", failure)
            return {}
        leases = [msgspec.json.decode(item, type=Lease) for item in page.items]
        renewed = {lease.metadata.name: run_out(lease, now) for lease in leases}
        return {name: moment for name, moment in renewed.items() if moment is not None}

    async def _claims(self, pod: Pod) -> dict[str, Claim]:
        """Return the claims of a pod that has not started; those of a started pod are bound."""
        sources = [volume.persistent_volume_claim for volume in pod.spec.volumes]
        started = any(status.container_id for status in pod.status.container_statuses)
        names = [source.claim_name for source in sources if source is not None] if not started else []
        found: dict[str, Claim] = {}
        for name in names:
            body = await self._get("persistentvolumeclaims", self._api.get(CLAIM, pod.metadata.namespace, name))
            if body is not None:
                found[name] = await self._claim(body)
        return found

    async def _claim(self, body: bytes) -> Claim:
        claim = msgspec.json.decode(body, type=PersistentVolumeClaim) if body else None
        unbound = claim is not None and claim.status.phase != "Bound"
        return Claim(found=claim, events=await self.events(claim.metadata) if claim is not None and unbound else ())

    async def _words(self, pod: Pod) -> dict[str, str]:
        """Return the last log line of ended containers that left no termination message."""
        statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
        return {status.name: words for status in statuses if (words := await self._last_words(pod, status))}

    async def _last_words(self, pod: Pod, status: ContainerStatus) -> str:
        end = status.state.terminated or status.last_state.terminated
        if end is None or end.message or (end.exit_code == 0 and not status.restart_count):
            return ""
        previous = "false" if status.state.terminated is not None else "true"
        path = POD.path(pod.metadata.namespace, pod.metadata.name, "log")
        query = f"container={quote(status.name)}&previous={previous}&{LOG}"
        body = await self._get("logs", self._api.raw("GET", f"{path}?{query}"))
        return (body or b"").decode(errors="replace")

    async def _get(self, what: str, request: Coroutine[object, object, bytes]) -> bytes | None:
        """Return the response; empty if the object does not exist, None if it cannot be read."""
        try:
            return await request
        except ApiError as failure:
            self._missed(what, failure)
            return b"" if failure.code == 404 else None

    def _missed(self, what: str, failure: ApiError) -> None:
        """Record a missing right; a log that is gone is not reported."""
        if failure.code in (401, 403):
            self.denied.add(what)


class Findings(msgspec.Struct, frozen=True):
    """The problems of an object's pods."""

    groups: Sequence[Group] = ()  # pods that do not serve
    unstable: Sequence[Group] = ()  # pods that serve, but may soon stop
    codes: frozenset[str] = frozenset()  # codes by which the service may report the same


async def find(
    pods: Sequence[Pod], basis: PodContext, reader: PodContextReader, *, namespaced: bool = False
) -> Findings:
    """Find the causes of pods.

    `basis`: the context of all of them. `namespaced`: names have a namespace. Raises Unreachable.
    """
    names = {_called(pod, namespaced=namespaced): pod for pod in pods}
    first = [(name, cause) for name, pod in names.items() if (cause := cause_of(pod, basis)) is not None]
    sorts = grouped(first)
    closer = [pair for sort in sorts[:SORTS] for pair in await _closer(sort, names, basis, reader)]
    rest = [(name, sort.cause) for sort in sorts[SORTS:] for name in sort.pods]
    unstable = await _unstable([name for name in names if name not in dict(first)], names, basis, reader)
    return Findings(grouped([*closer, *rest]), grouped(unstable), frozenset(cause.code for _, cause in first))


def worth_a_look(pods: Sequence[Pod], basis: PodContext) -> list[Pod]:
    """Return a few pods of each sort of trouble, the gravest first."""
    causes = [(str(index), cause) for index, pod in enumerate(pods) if (cause := cause_of(pod, basis)) is not None]
    return [pods[int(index)] for sort in grouped(causes)[:SORTS] for index in sort.pods[:CLOSELY]]


def _called(pod: Pod, *, namespaced: bool) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}" if namespaced else pod.metadata.name


async def _closer(
    sort: Group, pods: Mapping[str, Pod], basis: PodContext, reader: PodContextReader
) -> list[tuple[str, Cause]]:
    looked = sort.pods[:CLOSELY]
    contexts = await asyncio.gather(*(reader.context_of(pods[name], basis) for name in looked))
    causes = [
        aged(cause_of(pods[name], context) or sort.cause, basis.now)
        for name, context in zip(looked, contexts, strict=True)
    ]
    return [*zip(looked, causes, strict=True), *((name, causes[0]) for name in sort.pods[CLOSELY:])]


def aged(cause: Cause, now: datetime | None) -> Cause:
    """Return the cause with its duration, which tells slow from just begun."""
    if cause.since is None or now is None:
        return cause
    took = f"for {span((now - cause.since).total_seconds())}"
    return msgspec.structs.replace(cause, detail=", ".join(filter(None, (cause.detail, took))))


async def _unstable(
    names: Sequence[str], pods: Mapping[str, Pod], basis: PodContext, reader: PodContextReader
) -> list[tuple[str, Cause]]:
    """Find the causes of unstable pods, most restarts first."""

    def restarts(name: str) -> int:
        return max((status.restart_count for status in pods[name].status.container_statuses), default=0)

    looked = sorted(names, key=restarts, reverse=True)[:CLOSELY]
    contexts = await asyncio.gather(*(reader.context_of(pods[name], basis) for name in looked))
    found = [(name, unstable_cause(pods[name], context)) for name, context in zip(looked, contexts, strict=True)]
    return [(name, cause) for name, cause in found if cause is not None]
