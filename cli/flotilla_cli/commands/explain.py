"""`flotilla explain`: what an object waits for, in one sentence, and what is behind it.

For a pod: what Flotilla did to it, and what it still waits for.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import click
import msgspec
from rich.text import Text

from flotilla_cli.connection import Target, open_api, open_bus, reported
from flotilla_cli.options import Reach, object_argument, reach_options
from flotilla_cli.output import printed
from flotilla_common.api.core import Pod
from flotilla_common.api.keys import LAUNCH_COMPLETED
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.bus.interface import BusError
from flotilla_common.clock import Clock, SystemClock
from flotilla_common.control.plan import Json, Reason
from flotilla_common.control.text import nodes_word
from flotilla_common.kube.credentials import ConfigError
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.workload.causes import Cause, PodContext, cause_of, unstable_cause
from flotilla_common.workload.predicates import launch_priority
from flotilla_insight.bus.connection import connected
from flotilla_insight.diagnosis.diagnose import Diagnosis, diagnose, from_record
from flotilla_insight.diagnosis.missing_pods import MissingPods
from flotilla_insight.diagnosis.summary import STYLES, VerdictKind
from flotilla_insight.durations import age, span
from flotilla_insight.pods.findings import PodContextReader, aged
from flotilla_insight.published import Why, last_why
from flotilla_insight.views import all_views, view_of_owner
from flotilla_insight.views.kindview import LastWhys, PodQuestion
from flotilla_insight.views.related import basis_of

MOST_VACANCIES = 10
"""Number of reasons for nodes without a pod that are printed."""

BUS_SECONDS = 1.0
"""Seconds to wait for the reasons of the sidecar service; without them the objects are used."""

SERVES, ENDED = "it serves", "it completed"


class PodExplanation(msgspec.Struct, frozen=True):
    """The explanation of a pod."""

    namespace: str
    name: str
    reasons: list[str]
    verdict: VerdictKind = VerdictKind.DONE
    sentence: str = SERVES
    code: str = ""  # of the cause, if there is one
    kind: str = "Pod"

    def text(self) -> Text:
        """Render for people."""
        text = Text(f"{self.verdict}:", style=STYLES.get(self.verdict, "bold green"))
        text.append(f" {self.sentence}", "default").append(f"  [{self.code}]\n" if self.code else "\n", "dim")
        text.append(f"Pod {self.namespace}/{self.name}\n", style="bold")
        if not self.reasons:
            line = "Flotilla does not affect it: no SidecarSet selects it, and its containers start at once\n"
            text.append(line, "default")
        for line in self.reasons:
            text.append("  • ", style="yellow").append(f"{line}\n", style="default")
        return text


@click.command()
@object_argument
@reach_options
@click.option("-o", "--output", type=click.Choice(["json"]), help="Print the published record and the causes.")
@click.option("-v", "--verbose", is_flag=True, help="With a pod: include SidecarSets that select other pods.")
def explain(words: tuple[str, ...], reach: Reach, output: str | None, verbose: bool) -> None:
    """Explain what an object waits for: the root cause first, then the reasons and numbers of the last plan.

    For a pod: why it is not serving, why it has its sidecars, and which containers wait for others.
    """
    clock, target, url = SystemClock(), reach.target, reach.url
    resource, namespace, name = reach.place(words, pods=True)
    with reported():
        if resource == POD:
            explanation = asyncio.run(_explain_pod(target, url, namespace, name, clock, everything=verbose))
            drawing, data = explanation.text(), explanation
        else:
            found = asyncio.run(_explain(target, url, resource, namespace, name, clock))
            drawing, data = render(found, clock.now()), document(found)
    if output == "json":
        click.echo(msgspec.json.encode(data))
    else:
        printed(drawing)


async def _explain_pod(
    target: Target, url: str, namespace: str, name: str, clock: Clock, *, everything: bool
) -> PodExplanation:
    async with open_api(target) as api:
        try:
            return await explain_pod(api, url, namespace, name, clock, everything=everything)
        except ApiError as failure:
            if failure.code != 404:
                raise
            raise click.ClickException(f"pod {namespace}/{name} does not exist") from failure


async def _explain(target: Target, url: str, resource: Resource, namespace: str, name: str, clock: Clock) -> Diagnosis:
    async with contextlib.AsyncExitStack() as stack:
        bus = await stack.enter_async_context(open_bus(url, target.kubeconfig)) if url else None
        try:
            api = await stack.enter_async_context(open_api(target))
            return await diagnose(api, bus, clock, resource, namespace, name)
        except (ApiError, ConfigError, Unreachable) as failure:
            place = f"{namespace}/{name}" if namespace else name
            if isinstance(failure, ApiError) and failure.code == 404:
                raise click.ClickException(f"{resource.kind} {place} does not exist") from failure
            known = await from_record(bus, clock, resource, namespace, name, str(failure)) if bus else None
            if known is None:
                raise
            return known


def document(found: Diagnosis) -> Json:
    """Return the record as it was published, with the findings of this command."""
    meta, why = found.metadata, found.record.why
    record: Json = msgspec.to_builtins(why) if why is not None else {}
    object_: Json = {"kind": found.resource.kind, "namespace": meta.namespace, "name": meta.name, "uid": meta.uid}
    found_out: Json = {
        "verdict": found.verdict.kind.value,
        "sentence": found.verdict.sentence,
        "causes": msgspec.to_builtins(found.verdict.causes),
        "notes": list(found.notes),
    }
    if found.vacancies:
        found_out["nodesWithoutPod"] = {name: group.why for group in found.vacancies for name in group.nodes}
    return {**object_, **record, **found_out}


def render(found: Diagnosis, now: datetime) -> Text:
    """Render for people: the sentence, the reasons, and what each part waits for."""
    meta, why = found.metadata, found.record.why
    text = Text(f"{found.verdict.kind}:", style=STYLES.get(found.verdict.kind, "bold yellow"))
    text.append(f" {found.verdict.sentence}\n", "default")
    place = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
    text.append(f"{found.resource.kind} {place}", "bold").append(f"  generation {meta.generation}", "default")
    text.append(f", {_planned(why, meta.generation, now)}\n", "default")
    for note in found.notes:
        text.append("  ! ", style="red").append(f"{note}\n", "default")
    _append_reasons(text, (*found.verdict.causes, *found.reasons), "  ")
    for line in found.remarks:
        text.append("  • ", style="yellow").append(f"{line}\n", "default")
    _append_vacancies(text, found.vacancies)
    for part in found.record.parts:
        text.append(f"    {part.kind} {part.name}\n", style="bold")
        _append_reasons(text, part.reasons, "      ")
    if why is not None:
        _append_errors(text, why)
        _append_facts(text, why, now)
    return text


def _planned(why: Why | None, generation: int, now: datetime) -> str:
    if why is None:
        return "no record of a plan"
    which = "" if why.generation == generation else f"generation {why.generation} "
    return f"{which}planned {age(why.at, now)} ago by {why.service}/{why.replica}"


def _append_reasons(text: Text, reasons: Sequence[Reason], indent: str) -> None:
    for reason in reasons:
        text.append(f"{indent}• ", style="yellow").append(reason.sentence, "default")
        text.append(f"  [{reason.code}]\n", style="dim")


def _append_vacancies(text: Text, vacancies: Sequence[MissingPods]) -> None:
    if vacancies:
        text.append("nodes without a pod:\n", "default")
    for group in vacancies[:MOST_VACANCIES]:
        text.append(f"  {group.sentence}\n", "default")
    if rest := sum(len(group.nodes) for group in vacancies[MOST_VACANCIES:]):
        text.append(f"  and {nodes_word(rest)} for other reasons (-o json has all)\n", style="dim")


def _append_errors(text: Text, why: Why) -> None:
    for failure in why.errors:
        phase = f"{failure.phase}: " if failure.phase else ""
        text.append("  ✗ ", style="red").append(f"{phase}{failure.message}\n", "default")


def _append_facts(text: Text, why: Why, now: datetime) -> None:
    writes = ", ".join(f"{count} {verb}" for verb, count in why.actions.items() if count) or "none"
    text.append(f"writes planned: {writes}\n", "default")
    if why.wake_at is not None:
        seconds = (why.wake_at - now).total_seconds()
        text.append(f"reconciles again {f'in {span(seconds)}' if seconds > 0 else 'now'}\n", "default")
    width = max((len(name) for name in why.numbers), default=0)
    if why.numbers:
        text.append("numbers:\n", "default")
    for name, number in why.numbers.items():
        text.append(f"  {name:<{width}}  {number}\n", "default")


async def explain_pod(
    api: Api, url: str, namespace: str, name: str, clock: Clock, *, everything: bool = False
) -> PodExplanation:
    """Explain a pod; `everything`: also SidecarSets that select other pods. Raises ApiError and Unreachable."""
    pod = msgspec.json.decode(await api.get(POD, namespace, name), type=Pod)
    verdict, cause, denied = await cause_now(api, pod, clock.now())
    lines, about = launch_story(pod), PodQuestion(api=api, pod=pod, everything=everything, whys=_reader(url, clock))
    for kind in all_views():
        lines += await kind.about_pod(about) if kind.about_pod is not None else ()
    lines += [f"you may not read {', '.join(sorted(denied))}, so the cause may be less exact"] if denied else []
    if cause is None:
        return PodExplanation(namespace, name, lines, sentence=SERVES if pod.status.phase != "Succeeded" else ENDED)
    return PodExplanation(namespace, name, lines, verdict=verdict, sentence=cause.text, code=cause.code)


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
    text = f"containers start in the order of their priorities: waiting for {_and(now)} (p_{highest}) to be ready"
    names = _and([name for _, name in reversed(later)])
    return [f"{text}; {names} {'comes' if len(later) == 1 else 'come'} after" if later else text]


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


async def cause_now(api: Api, pod: Pod, now: datetime) -> tuple[VerdictKind, Cause | None, set[str]]:
    """Return the kind of state, its cause, and what may not be read. Raises Unreachable."""
    reader, basis = PodContextReader(api), await _basis(api, pod, now)
    basis = msgspec.structs.replace(basis, silent=await reader.silent_nodes(now))
    context = await reader.context_of(pod, basis)
    if (cause := cause_of(pod, context)) is not None:
        return VerdictKind.STUCK if cause.stuck else VerdictKind.WAITING, aged(cause, now), reader.denied
    cause = unstable_cause(pod, context)
    return VerdictKind.UNSTABLE if cause is not None else VerdictKind.DONE, cause, reader.denied


async def _basis(api: Api, pod: Pod, now: datetime) -> PodContext:
    """Return the context from the pod's workload, if it is one of ours and may be read."""
    owner = controller_of(pod.metadata)
    kind = view_of_owner(owner) if owner is not None else None
    if owner is None or kind is None:
        return PodContext(now=now)
    try:
        live = await api.get(kind.resource, pod.metadata.namespace, owner.name)
    except ApiError:
        return PodContext(now=now)
    return basis_of(kind, live, now)
