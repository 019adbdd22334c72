"""A pod: its lifecycle, its containers with their last words, its events, its log, and its traffic on the bus."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from flotilla_common.api.core import ContainerState, ContainerStatus, Pod, TerminatedState
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.kinds.sidecarset.pods import injected
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD, Resource
from flotilla_common.workload.budget import related_budget
from flotilla_common.workload.causes import PodContext, PodEvent
from flotilla_common.workload.causes.cause import bare, last_line, newest_first
from flotilla_common.workload.inplace.state import grace_of, state_of_update
from flotilla_console import paths
from flotilla_console.access.identity import Identity
from flotilla_console.blocks.types import (
    Age,
    AnyBlock,
    Badge,
    Facts,
    Heading,
    Link,
    Mono,
    Notice,
    Paragraph,
    Preformatted,
    Row,
    Span,
    Spans,
    Tone,
    spans,
)
from flotilla_console.model.objects import USUAL
from flotilla_console.model.seen import Seen, see
from flotilla_console.model.sight import Sight
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.pages.parts import age, ago, commas, conditions_table, facts, link, whole_table
from flotilla_console.pages.pods import node_link
from flotilla_console.pages.traffic import BusReader, traffic_blocks
from flotilla_console.story.traffic import Traffic

LOG_LINES = 500
"""Lines of a log that are shown: the last ones."""

MOST_EVENTS = 100


class PodReader(Protocol):
    """Reads from the apiserver what the model does not have, with the rights of the identity."""

    async def events(self, identity: Identity, namespace: str, uid: str) -> Sequence[PodEvent]:
        """Return the events of the object with this uid. Raises ApiError and Unreachable."""
        ...

    async def log(
        self, identity: Identity, namespace: str, name: str, container: str, *, previous: bool, lines: int
    ) -> str:
        """Return the last lines of a container's log. Raises ApiError and Unreachable."""
        ...


class PodDetails(msgspec.Struct, frozen=True, kw_only=True):
    """The events of a pod, and the log that was asked for; the errors where they could not be read."""

    events: Sequence[PodEvent] = ()
    events_error: str = ""
    log: str | None = None  # None: no container was named
    log_error: str = ""
    traffic: Traffic = Traffic()


def page(reader: PodReader, bus: BusReader) -> PageSpec:
    """Return the page, which reads events and logs by `reader`, and messages by `bus`."""

    async def prepare(request: PageRequest) -> object:
        return await read_details(reader, bus, request)

    return PageSpec(
        name="pod",
        path="/pods/{namespace}/{name}",
        build=build,
        prepare=prepare,
        parameters=("container", "previous"),
    )


async def read_details(reader: PodReader, bus: BusReader, request: PageRequest) -> PodDetails | None:
    """Read events and messages about a pod, and the log of the container that is named; None if it may not be seen."""
    pod = _pod(request)
    if pod is None:
        return None
    events, log, traffic = await asyncio.gather(
        _events(reader, request, pod), _log(reader, request, pod), bus.read(POD, *pod.metadata.key)
    )
    return msgspec.structs.replace(events, log=log.log, log_error=log.log_error, traffic=traffic)


async def _events(reader: PodReader, request: PageRequest, pod: Pod) -> PodDetails:
    try:
        found = await reader.events(request.identity, pod.metadata.namespace, pod.metadata.uid)
    except (ApiError, Unreachable) as error:
        return PodDetails(events_error=str(error))
    return PodDetails(events=newest_first(found)[:MOST_EVENTS])


async def _log(reader: PodReader, request: PageRequest, pod: Pod) -> PodDetails:
    container = request.query.get("container", "")
    if container not in _containers(pod):
        return PodDetails()
    previous, (namespace, name) = _previous(request.query), pod.metadata.key
    try:
        text = await reader.log(request.identity, namespace, name, container, previous=previous, lines=LOG_LINES)
    except (ApiError, Unreachable) as error:
        return PodDetails(log_error=str(error))
    return PodDetails(log=text)


def _pod(request: PageRequest) -> Pod | None:
    return request.sight.pod(request.params["namespace"], request.params["name"])


def _containers(pod: Pod) -> Collection[str]:
    spec = pod.spec
    return {one.name for one in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers)}


def _previous(query: Mapping[str, str]) -> bool:
    return query.get("previous") == "1"


def build(request: PageRequest) -> Page | None:
    """Return the page; None if the pod does not exist or may not be seen."""
    pod = _pod(request)
    if pod is None:
        return None
    details = request.read if isinstance(request.read, PodDetails) else PodDetails()
    context = PodContext(now=datetime.fromtimestamp(request.now, UTC), events=details.events)
    one = see(pod, context)
    return Page(
        title=f"Pod {pod.metadata.name}",
        trail=(Link("Fleet", paths.FLEET), *_owner_links(request.sight, pod)),
        blocks=(
            Notice(one.tone, spans(Badge(one.state, one.tone), " ", _sentence(one))),
            Facts(facts(*_facts(request.sight, pod))),
            *_container_tables(request.sight, pod),
            *_gates(pod),
            *_conditions(pod),
            *_event_blocks(details),
            *_log_blocks(request.query, details),
            *traffic_blocks(details.traffic),
        ),
    )


def _sentence(one: Seen) -> str:
    if one.waits_for:
        return f"waits for {one.waits_for}" if one.cause is None else one.waits_for
    return "it serves" if one.serving else ""


def _owner_links(sight: Sight, pod: Pod) -> tuple[Link, ...]:
    above = [link(each) for *_, each in sight.owners_of(pod) if each is not None]
    return tuple(reversed(above))


def _facts(sight: Sight, pod: Pod) -> Iterator[tuple[str, Span | Spans | str]]:
    meta, created = pod.metadata, pod.metadata.creation_timestamp
    owners = [link(each) if each is not None else f"{kind} {name}" for _, kind, name, each in sight.owners_of(pod)]
    yield "Namespace", meta.namespace
    yield "Owner", commas(owners)
    yield "Node", node_link(pod.spec.node_name)
    yield "Phase", pod.status.phase
    yield "IP", pod.status.pod_ip
    yield "Revision", Mono(pod.revision) if pod.revision else ""
    yield "Lifecycle", pod.state
    yield "In-place update", _in_place(pod)
    yield "Sidecars of", commas(_named(sight, SIDECAR_SET, "", name) for name in injected(meta.annotations))
    budget = related_budget(meta)
    yield "Budget", spans(_named(sight, POD_UNAVAILABLE_BUDGET, meta.namespace, budget)) if budget else ""
    yield "Finalizers", ", ".join(meta.finalizers)
    yield "Labels", commas(f"{key}={value}" for key, value in sorted(meta.labels.items()))
    yield "Created", ago(created.timestamp() if created is not None else 0.0)
    if meta.deletion_timestamp is not None:
        yield "Grace period ends", rfc3339(meta.deletion_timestamp)


def _named(sight: Sight, resource: Resource, namespace: str, name: str) -> Span | str:
    found = sight.workload(resource.group, resource.plural, namespace, name)
    return name if found is None else link(found)


def _in_place(pod: Pod) -> str:
    """Return the in-place update that waits for its grace period, or the last one; empty if there was none."""
    try:
        grace, state = grace_of(pod), state_of_update(pod)
    except ValueError as fault:
        return f"unreadable: {fault}"
    if grace is not None:
        return f"to {grace.revision} after a grace period of {grace.grace_seconds} s"
    if state is None:
        return ""
    waiting = f", then {', '.join(sorted(state.next_container_images))}" if state.next_container_images else ""
    return f"to {state.revision} at {rfc3339(state.update_timestamp)}{waiting}"


_COLUMNS = (
    *(("name", "Container"), ("image", "Image"), ("state", "State"), ("restarts", "Restarts")),
    *(("ended", "Last end"), ("words", "Last words"), ("log", "Log")),
)


def _container_tables(sight: Sight, pod: Pod) -> Iterator[AnyBlock]:
    status, spec = pod.status, pod.spec
    parts = (
        ("init", "Init containers", spec.init_containers, status.init_container_statuses),
        ("main", "Containers", spec.containers, status.container_statuses),
        ("ephemeral", "Ephemeral containers", spec.ephemeral_containers, status.ephemeral_container_statuses),
    )
    readable = sight.may("get", POD, pod.metadata.namespace, "log")
    for identity, caption, containers, statuses in parts:
        known = {one.name: one for one in statuses}
        rows = tuple(
            _container_row(pod, one.name, one.image, known.get(one.name, ContainerStatus()), readable=readable)
            for one in containers
        )
        if rows:
            yield whole_table(f"containers-{identity}", caption, _COLUMNS, rows)


def _container_row(pod: Pod, name: str, image: str, status: ContainerStatus, *, readable: bool) -> Row:
    word, tone = _state(status)
    end = status.state.terminated or status.last_state.terminated
    running = spans(Mono(image)) if status.image in ("", image) else spans(Mono(image), ", runs ", Mono(status.image))
    return Row(
        key=name,
        cells=(
            spans(name),
            running,
            spans(Badge(word, tone), *_since(status.state)),
            spans(str(status.restart_count)),
            _end(end) if end is not None else (),
            spans(last_line(end.message)) if end is not None else (),
            _logs(pod, name, status) if readable else (),
        ),
        tone=tone,
    )


def _state(status: ContainerStatus) -> tuple[str, Tone]:
    state = status.state
    if state.running is not None:
        return ("ready", "ok") if status.ready else ("running, not ready", "busy")
    if state.terminated is not None:
        done = state.terminated.exit_code == 0
        return state.terminated.reason or "terminated", "ok" if done else "bad"
    if state.waiting is not None:
        starting = state.waiting.reason in ("ContainerCreating", "PodInitializing", "")
        return state.waiting.reason or "waiting", "busy" if starting else "bad"
    return "not reported", "idle"


def _since(state: ContainerState) -> Spans:
    if state.running is not None and state.running.started_at is not None:
        return spans(" ", Age(state.running.started_at.timestamp()))
    if state.waiting is not None:
        return spans(" ", bare(state.waiting.message))
    return ()


def _end(end: TerminatedState) -> Spans:
    at = spans(", ", Age(end.finished_at.timestamp()), " ago") if end.finished_at is not None else ()
    return (*spans(f"{end.reason or 'ended'}, exit code {end.exit_code}"), *at)


def _logs(pod: Pod, container: str, status: ContainerStatus) -> Spans:
    """Return links to the log of a container, and of the one before its last restart."""
    here = paths.pod(*pod.metadata.key)
    now = Link("log", f"{here}{paths.path(query={'container': container})[1:]}")
    if not status.restart_count:
        return spans(now)
    before = paths.path(query={"container": container, "previous": "1"})[1:]
    return spans(now, ", ", Link("before the restart", f"{here}{before}"))


def _gates(pod: Pod) -> Iterator[AnyBlock]:
    if not pod.spec.readiness_gates:
        return
    rows = [_gate_row(pod, gate) for gate in dict.fromkeys(one.condition_type for one in pod.spec.readiness_gates)]
    yield whole_table("gates", "Readiness gates", (("gate", "Gate"), ("state", "State"), ("why", "Why")), tuple(rows))


def _gate_row(pod: Pod, gate: str) -> Row:
    found = pod.conditions.get(gate)
    if found is None:
        return Row(key=gate, cells=(spans(gate), spans(Badge("not set", "warn")), ()), tone="warn")
    tone: Tone = "ok" if found.status == "True" else "warn"
    why = ": ".join(filter(None, (found.reason, found.message)))
    return Row(key=gate, cells=(spans(gate), spans(Badge(found.status, tone)), spans(why)), tone=tone)


def _conditions(pod: Pod) -> Iterator[AnyBlock]:
    if pod.status.conditions:
        yield conditions_table(pod.status.conditions)
        if pod.ready:
            yield Paragraph(
                spans(f"Of a pod that is ready, {', '.join(sorted(USUAL))} are shown only if they are False.")
            )


def _event_blocks(details: PodDetails) -> Iterator[AnyBlock]:
    if details.events_error:
        yield Paragraph(spans(f"Its events cannot be read: {details.events_error}"))
    if not details.events:
        return
    rows = tuple(
        Row(
            key=f"{index}/{event.metadata.uid}",
            cells=(
                age(event.at.timestamp() if event.at is not None else 0.0),
                spans(Badge(event.type or "Normal", "warn" if event.type == "Warning" else "idle")),
                spans(event.reason),
                spans(event.container),
                spans(bare(event.message)),
            ),
        )
        for index, event in enumerate(details.events)
    )
    columns = (
        ("at", "Last seen"),
        ("type", "Type"),
        ("reason", "Reason"),
        ("container", "Container"),
        ("text", "Message"),
    )
    yield whole_table("events", "Events", columns, rows)


def _log_blocks(query: Mapping[str, str], details: PodDetails) -> Iterator[AnyBlock]:
    container = query.get("container", "")
    if details.log_error:
        yield Notice("warn", spans(f"The log of {container} cannot be read: {details.log_error}"))
    if details.log is not None:
        which = ", before the last restart" if _previous(query) else ""
        yield Heading(f"Log of {container}{which}", id="log")
        yield Preformatted(f"The last {LOG_LINES} lines of {container}", details.log or "The log is empty.")
