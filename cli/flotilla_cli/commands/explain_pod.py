"""`flotilla explain pod NAME`: what Flotilla did to a pod, and what the pod still waits for."""

import contextlib
from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec
from rich.text import Text

from flotilla_cli.connection import connected, open_bus
from flotilla_cli.diagnosis.findings import aged
from flotilla_cli.diagnosis.pod_context import PodContextReader
from flotilla_cli.diagnosis.summary import STYLES, Word
from flotilla_cli.published import Why, last_why
from flotilla_cli.views import all_views, view_of_owner
from flotilla_cli.views.kindview import LastWhys, PodQuestion
from flotilla_cli.views.related import basis_of
from flotilla_common.api.core import Pod
from flotilla_common.api.keys import LAUNCH_COMPLETED
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus.interface import BusError
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.workload.causes import Around, Cause, cause_of, unstable_cause
from flotilla_common.workload.launch import launch_priority

BUS_SECONDS = 1.0
"""Seconds to wait for the reasons of the sidecar service; without them the objects are used."""

SERVES, ENDED = "it serves", "it completed"


class PodExplanation(msgspec.Struct, frozen=True):
    """The explanation of a pod."""

    namespace: str
    name: str
    reasons: list[str]
    verdict: Word = Word.DONE
    sentence: str = SERVES
    code: str = ""  # of the cause, if there is one
    kind: str = "Pod"

    def text(self) -> Text:
        """Render for people."""
        text = Text(f"{self.verdict}:", style=STYLES.get(self.verdict, "bold green"))
        text.append(f" {self.sentence}", "default").append(f"  [{self.code}]\n" if self.code else "\n", "dim")
        text.append(f"Pod {self.namespace}/{self.name}\n", style="bold")
        if not self.reasons:
            told = "Flotilla does not affect it: no SidecarSet selects it, and its containers start at once\n"
            text.append(told, "default")
        for line in self.reasons:
            text.append("  • ", style="yellow").append(f"{line}\n", style="default")
        return text


async def story(
    api: Api, url: str, namespace: str, name: str, clock: Clock, *, everything: bool = False
) -> PodExplanation:
    """Explain a pod; `everything`: also SidecarSets that select other pods. Raises ApiError and Unreachable."""
    pod = msgspec.json.decode(await api.get(POD, namespace, name), type=Pod)
    word, cause, denied = await cause_now(api, pod, clock.now())
    told, about = launch_story(pod), PodQuestion(api=api, pod=pod, everything=everything, whys=_reader(url, clock))
    for kind in all_views():
        told += await kind.about_pod(about) if kind.about_pod is not None else ()
    told += [f"you may not read {', '.join(sorted(denied))}, so the cause may be less exact"] if denied else []
    if cause is None:
        return PodExplanation(namespace, name, told, sentence=SERVES if pod.status.phase != "Succeeded" else ENDED)
    return PodExplanation(namespace, name, told, verdict=word, sentence=cause.text, code=cause.code)


def _reader(url: str, clock: Clock) -> LastWhys:
    """Return a reader of last plans; empty without the bus, or if it does not answer soon."""

    async def read(resource: Resource, names: Iterable[str]) -> Mapping[str, Why]:
        found: dict[str, Why] = {}
        with contextlib.suppress(BusError):
            async with open_bus(url) as bus:
                await connected(bus, clock, BUS_SECONDS)
                for name in names:
                    why = await last_why(bus, resource, "", name)
                    if why is not None:
                        found[name] = why
        return found

    async def nothing(resource: Resource, names: Iterable[str]) -> Mapping[str, Why]:
        return {}

    return read if url else nothing


def launch_story(pod: Pod) -> list[str]:
    """Return the progress of a start in the order of priorities; empty without them, or if none is left."""
    if pod.metadata.annotations.get(LAUNCH_COMPLETED) == "true":
        return []
    priorities = {one.name: launch_priority(one) for one in pod.spec.containers}
    ready = {status.name for status in pod.status.container_statuses if status.ready}
    pending = {name: rank for name, rank in priorities.items() if rank is not None and name not in ready}
    if not pending:
        return []
    highest = max(pending.values())
    now = [name for name, rank in pending.items() if rank == highest]
    later = sorted((rank, name) for name, rank in pending.items() if rank < highest)
    told = f"containers start in the order of their priorities: waiting for {_and(now)} (p_{highest}) to be ready"
    names = _and([name for _, name in reversed(later)])
    return [f"{told}; {names} {'comes' if len(later) == 1 else 'come'} after" if later else told]


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


async def cause_now(api: Api, pod: Pod, now: datetime) -> tuple[Word, Cause | None, set[str]]:
    """Return the kind of state, its cause, and what may not be read. Raises Unreachable."""
    surveyor, basis = PodContextReader(api), await _basis(api, pod, now)
    basis = msgspec.structs.replace(basis, silent=await surveyor.silent_nodes(now))
    around = await surveyor.around(pod, basis)
    if (cause := cause_of(pod, around)) is not None:
        return Word.STUCK if cause.stuck else Word.WAITING, aged(cause, now), surveyor.denied
    cause = unstable_cause(pod, around)
    return Word.UNSTABLE if cause is not None else Word.DONE, cause, surveyor.denied


async def _basis(api: Api, pod: Pod, now: datetime) -> Around:
    """Return the context from the pod's workload, if it is one of ours and may be read."""
    owner = controller_of(pod.metadata)
    kind = view_of_owner(owner) if owner is not None else None
    if owner is None or kind is None:
        return Around(now=now)
    try:
        live = await api.get(kind.resource, pod.metadata.namespace, owner.name)
    except ApiError:
        return Around(now=now)
    return basis_of(kind, live, now)
