"""Combines what apiserver and bus have about one object, where they are available."""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.meta import ObjectMeta, metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.bus.interface import Bus, BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Reason
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.workload.causes import Cause, Group, PodContext, grouped, node_trouble
from flotilla_insight.bus.connection import connected
from flotilla_insight.diagnosis.missing_pods import MissingPods, vacancies
from flotilla_insight.diagnosis.summary import Verdict, verdict
from flotilla_insight.planning import Planning, leases_of, planning_of
from flotilla_insight.pods.findings import Findings, PodContextReader, find
from flotilla_insight.published import LISTEN_SECONDS, Why, last_why, listen
from flotilla_insight.views import view_of
from flotilla_insight.views.kindview import KindView, ReasonSource, Related
from flotilla_insight.views.related import children_of, related_of
from flotilla_insight.workload import waits_for

NO_REASONS = "the bus does not answer, so the service's own reasons are missing; the rest is derived from the objects"
NO_BUS = "no bus is known for this cluster, so the service's own reasons are missing (--nats URL, FLOTILLA_NATS)"


class Record(msgspec.Struct, frozen=True):
    """The records of the bus."""

    why: Why | None = None
    parts: Sequence[Why] = ()  # of the objects that it waits for
    heard: bool | None = None  # whether its service had a heartbeat; None: not listened
    note: str = ""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `explain` for an object."""

    resource: Resource
    metadata: ObjectMeta
    record: Record
    verdict: Verdict
    reasons: Sequence[Reason]  # of the service, without those that the findings replace
    notes: Sequence[str]
    vacancies: Sequence[MissingPods] = ()  # nodes without a pod, for kinds with one on each
    remarks: Sequence[str] = ()  # specific to its kind


async def diagnose(
    api: Api, bus: NatsBus | None, clock: Clock, resource: Resource, namespace: str, name: str
) -> Diagnosis:
    """Return the diagnosis from apiserver and bus.

    Raises ApiError (404: there is no such object; 403: it may not be read) and Unreachable.
    """
    raw = await api.get(resource, namespace, name)
    meta, service = metadata_of(raw), catalogue.kind_of(resource).service
    leases = await leases_of(api, service)
    kind = view_of(resource)
    others = await kind.reason_sources(api, raw) if kind.reason_sources is not None else ()
    record = await _record(bus, clock, resource, meta, others)
    planning = planning_of(service, meta, record.why, leases, record.heard, clock.now())
    computed = waits_for(kind.workload(raw)) if kind.workload is not None else ()
    findings, related, denied = await _look(api, clock, kind, raw)
    if bus is None or record.note:
        planning = msgspec.structs.replace(planning, behind="")  # not known
    mine = record.why is not None and record.why.uid == meta.uid
    reasons = [one for one in record.why.reasons if one.code not in findings.codes] if record.why and mine else []
    return Diagnosis(
        resource=resource,
        metadata=meta,
        record=record,
        verdict=verdict(meta, record.why, findings, planning, computed, record.parts),
        reasons=reasons,
        notes=list(_notes(record, planning, denied)),
        vacancies=vacancies(related.served, findings.groups, reasons) if related.served is not None else (),
        remarks=await kind.remarks(api, raw) if kind.remarks is not None else (),
    )


async def from_record(
    bus: NatsBus, clock: Clock, resource: Resource, namespace: str, name: str, trouble: str
) -> Diagnosis | None:
    """Return the diagnosis from the bus alone, or None. `trouble`: the apiserver's failure. Raises BusError."""
    await connected(bus, clock)
    why = await last_why(bus, resource, namespace, name)
    if why is None:
        return None
    parts = await parts_of(bus, resource, why)
    meta = ObjectMeta(namespace=namespace, name=name, uid=why.uid, generation=why.generation)
    return Diagnosis(
        resource=resource,
        metadata=meta,
        record=Record(why, parts),
        verdict=verdict(meta, why, Findings(), Planning(service=why.service), parts=parts),
        reasons=why.reasons,
        notes=[f"only the last record of its service is available: {trouble}"],
    )


async def _record(
    bus: NatsBus | None, clock: Clock, resource: Resource, meta: ObjectMeta, others: Sequence[ReasonSource]
) -> Record:
    """Return the records of the bus. `others`: objects whose reasons may be about this one."""
    if bus is None:
        return Record(note=NO_BUS)
    namespace, name = meta.namespace, meta.name
    try:
        await connected(bus, clock)
        why = await last_why(bus, resource, namespace, name)
        current = why is not None and why.uid == meta.uid and why.generation >= meta.generation
        heard = None if current else await heartbeat(bus, catalogue.kind_of(resource).service)
        if heard and not current:  # it may just have been planned
            why = await last_why(bus, resource, namespace, name)
        parts = await parts_of(bus, resource, why) if why is not None else ()
        return Record(why, [*parts, *await reasons_of(bus, others)], heard)
    except BusError as error:
        return Record(note=f"{NO_REASONS} ({bus.trouble or error})")


async def parts_of(bus: Bus, resource: Resource, why: Why) -> Sequence[Why]:
    """Return the records of objects that the reasons name, which have more detail."""
    names = dict.fromkeys(name for reason in why.reasons for name in reason.objects)
    parts = catalogue.kind_of(resource).parts
    found = [await last_why(bus, part, why.namespace, name) for part in parts for name in names]
    return [one for one in found if one is not None]


async def reasons_of(bus: Bus, others: Sequence[ReasonSource]) -> Sequence[Why]:
    """Return the records of objects with reasons about another one, with these reasons only.

    Symptoms are left out: the other one has them itself.
    """
    found: list[Why] = []
    for other in others:
        why = await last_why(bus, other.resource, "", other.name)
        about = () if why is None else [one for one in why.reasons if other.objects & set(one.objects)]
        if why is not None and (reasons := tuple(one for one in about if not one.symptom)):
            found.append(msgspec.structs.replace(why, reasons=reasons))
    return found


async def heartbeat(bus: Bus, service: str) -> bool:
    """Report whether a replica of the service is alive and uses this bus."""
    beat = asyncio.Event()
    await listen(bus, lambda _: beat.set(), service)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LISTEN_SECONDS):
            await beat.wait()
    return beat.is_set()


async def _look(api: Api, clock: Clock, kind: KindView, raw: bytes) -> tuple[Findings, Related, set[str]]:
    """Return the findings about the object and its children, its related objects, and what may not be read."""
    now = clock.now()
    try:
        children = await children_of(api, kind, raw)
        related, *others = [await related_of(api, of, one, now) for of, one in ((kind, raw), *children)]
    except ApiError as failure:
        if failure.code not in (401, 403):
            raise
        return Findings(), Related(), {"pods"}
    reader = PodContextReader(api)
    silent = await reader.silent_nodes(now)
    found = [await _against(one, silent, reader) for one in (related, *others)]
    denied = reader.denied.union(*(one.denied for one in (related, *others)))
    return found[0] if not others else _together(found), related, denied


async def _against(related: Related, silent: Mapping[str, datetime], reader: PodContextReader) -> Findings:
    """Find the problems of its pods, nodes and others."""
    basis = msgspec.structs.replace(related.basis, silent=silent)
    findings = await find(related.pods, basis, reader, namespaced=related.namespaced)
    nodes = [group for name in related.nodes if (group := await _node(reader, name, basis)) is not None]
    return msgspec.structs.replace(findings, groups=(*nodes, *findings.groups, *related.troubles))


def _together(found: Sequence[Findings]) -> Findings:
    """Merge the findings of several workloads, where pods of different ones may have the same cause."""

    def merged(groups: Iterable[Group]) -> Sequence[Group]:
        return grouped((name, group.cause) for group in groups for name in group.pods)

    return Findings(
        groups=merged(group for one in found for group in one.groups),
        unstable=merged(group for one in found for group in one.unstable),
        codes=frozenset[str]().union(*(one.codes for one in found)),
    )


async def _node(reader: PodContextReader, name: str, basis: PodContext) -> Group | None:
    trouble = node_trouble(name, msgspec.structs.replace(basis, nodes=await reader.nodes(name)))
    return Group(Cause(code="NodeNotReady", message=trouble), (name,)) if trouble else None


def _notes(record: Record, planning: Planning, denied: set[str]) -> Iterator[str]:
    """Yield what makes the diagnosis less certain."""
    if record.note:
        yield record.note
    yield from filter(None, (planning.nobody, planning.behind))
    if denied:
        yield f"you may not read {', '.join(sorted(denied))}, so the cause may be less exact"
