"""The causes of the pods of one object: all are looked at as they tell of themselves, a few of each sort closely."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_cli.ages import span
from flotilla_cli.diagnosis.closeup import Surveyor
from flotilla_common.api.core import Pod
from flotilla_common.workload.causes import Around, Cause, Group, cause_of, grouped, unstable_cause

CLOSELY = 4
"""Pods of a sort that are looked at closely; what is found of the first of them holds for the rest of the sort."""

SORTS = 4
"""Sorts of trouble that are looked at."""


class Findings(msgspec.Struct, frozen=True):
    """What is known against the pods of an object."""

    groups: Sequence[Group] = ()  # pods that do not serve
    unstable: Sequence[Group] = ()  # pods that serve, and may not for long
    codes: frozenset[str] = frozenset()  # what the service may have said of the same


async def find(pods: Sequence[Pod], basis: Around, surveyor: Surveyor, *, namespaced: bool = False) -> Findings:
    """Look at pods. `basis`: what holds for all of them. `namespaced`: they are called by namespace, too. Raises
    Unreachable."""
    names = {_called(pod, namespaced=namespaced): pod for pod in pods}
    first = [(name, cause) for name, pod in names.items() if (cause := cause_of(pod, basis)) is not None]
    sorts = grouped(first)
    closer = [pair for sort in sorts[:SORTS] for pair in await _closer(sort, names, basis, surveyor)]
    rest = [(name, sort.cause) for sort in sorts[SORTS:] for name in sort.pods]
    unstable = await _unstable([name for name in names if name not in dict(first)], names, basis, surveyor)
    return Findings(grouped([*closer, *rest]), grouped(unstable), frozenset(cause.code for _, cause in first))


def worth_a_look(pods: Sequence[Pod], basis: Around) -> list[Pod]:
    """A few of each sort, the gravest first."""
    causes = [(str(index), cause) for index, pod in enumerate(pods) if (cause := cause_of(pod, basis)) is not None]
    return [pods[int(index)] for sort in grouped(causes)[:SORTS] for index in sort.pods[:CLOSELY]]


def _called(pod: Pod, *, namespaced: bool) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}" if namespaced else pod.metadata.name


async def _closer(sort: Group, pods: Mapping[str, Pod], basis: Around, surveyor: Surveyor) -> list[tuple[str, Cause]]:
    looked = sort.pods[:CLOSELY]
    surroundings = await asyncio.gather(*(surveyor.around(pods[name], basis) for name in looked))
    causes = [
        aged(cause_of(pods[name], around) or sort.cause, basis.now)
        for name, around in zip(looked, surroundings, strict=True)
    ]
    return [*zip(looked, causes, strict=True), *((name, causes[0]) for name in sort.pods[CLOSELY:])]


def aged(cause: Cause, now: datetime | None) -> Cause:
    """With the time for which it has been so, where that tells what is slow from what has just begun."""
    if cause.since is None or now is None:
        return cause
    took = f"for {span((now - cause.since).total_seconds())}"
    return msgspec.structs.replace(cause, detail=", ".join(filter(None, (cause.detail, took))))


async def _unstable(
    names: Sequence[str], pods: Mapping[str, Pod], basis: Around, surveyor: Surveyor
) -> list[tuple[str, Cause]]:
    """Those that were restarted most often first."""

    def restarts(name: str) -> int:
        return max((status.restart_count for status in pods[name].status.container_statuses), default=0)

    looked = sorted(names, key=restarts, reverse=True)[:CLOSELY]
    surroundings = await asyncio.gather(*(surveyor.around(pods[name], basis) for name in looked))
    found = [(name, unstable_cause(pods[name], around)) for name, around in zip(looked, surroundings, strict=True)]
    return [(name, cause) for name, cause in found if cause is not None]
