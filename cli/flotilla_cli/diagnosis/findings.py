"""Finds the causes of the pods of one object: from all pods' own status, and a few of each sort in context."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_cli.diagnosis.pod_context import PodContextReader
from flotilla_cli.output import span
from flotilla_common.api.core import Pod
from flotilla_common.workload.causes import Around, Cause, Group, cause_of, grouped, unstable_cause

CLOSELY = 4
"""Pods of a sort that are read in context; the first one's cause holds for the rest of the sort."""

SORTS = 4
"""Sorts of trouble that are read in context."""


class Findings(msgspec.Struct, frozen=True):
    """The problems of an object's pods."""

    groups: Sequence[Group] = ()  # pods that do not serve
    unstable: Sequence[Group] = ()  # pods that serve, but may soon stop
    codes: frozenset[str] = frozenset()  # codes by which the service may report the same


async def find(pods: Sequence[Pod], basis: Around, surveyor: PodContextReader, *, namespaced: bool = False) -> Findings:
    """Find the causes of pods.

    `basis`: the context of all of them. `namespaced`: names have a namespace. Raises Unreachable.
    """
    names = {_called(pod, namespaced=namespaced): pod for pod in pods}
    first = [(name, cause) for name, pod in names.items() if (cause := cause_of(pod, basis)) is not None]
    sorts = grouped(first)
    closer = [pair for sort in sorts[:SORTS] for pair in await _closer(sort, names, basis, surveyor)]
    rest = [(name, sort.cause) for sort in sorts[SORTS:] for name in sort.pods]
    unstable = await _unstable([name for name in names if name not in dict(first)], names, basis, surveyor)
    return Findings(grouped([*closer, *rest]), grouped(unstable), frozenset(cause.code for _, cause in first))


def worth_a_look(pods: Sequence[Pod], basis: Around) -> list[Pod]:
    """Return a few pods of each sort of trouble, the gravest first."""
    causes = [(str(index), cause) for index, pod in enumerate(pods) if (cause := cause_of(pod, basis)) is not None]
    return [pods[int(index)] for sort in grouped(causes)[:SORTS] for index in sort.pods[:CLOSELY]]


def _called(pod: Pod, *, namespaced: bool) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}" if namespaced else pod.metadata.name


async def _closer(
    sort: Group, pods: Mapping[str, Pod], basis: Around, surveyor: PodContextReader
) -> list[tuple[str, Cause]]:
    looked = sort.pods[:CLOSELY]
    surroundings = await asyncio.gather(*(surveyor.around(pods[name], basis) for name in looked))
    causes = [
        aged(cause_of(pods[name], around) or sort.cause, basis.now)
        for name, around in zip(looked, surroundings, strict=True)
    ]
    return [*zip(looked, causes, strict=True), *((name, causes[0]) for name in sort.pods[CLOSELY:])]


def aged(cause: Cause, now: datetime | None) -> Cause:
    """Return the cause with its duration, which tells slow from just begun."""
    if cause.since is None or now is None:
        return cause
    took = f"for {span((now - cause.since).total_seconds())}"
    return msgspec.structs.replace(cause, detail=", ".join(filter(None, (cause.detail, took))))


async def _unstable(
    names: Sequence[str], pods: Mapping[str, Pod], basis: Around, surveyor: PodContextReader
) -> list[tuple[str, Cause]]:
    """Find the causes of unstable pods, most restarts first."""

    def restarts(name: str) -> int:
        return max((status.restart_count for status in pods[name].status.container_statuses), default=0)

    looked = sorted(names, key=restarts, reverse=True)[:CLOSELY]
    surroundings = await asyncio.gather(*(surveyor.around(pods[name], basis) for name in looked))
    found = [(name, unstable_cause(pods[name], around)) for name, around in zip(looked, surroundings, strict=True)]
    return [(name, cause) for name, cause in found if cause is not None]
