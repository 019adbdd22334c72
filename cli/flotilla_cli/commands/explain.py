"""`flotilla explain`: what an object waits for, in one sentence, and what is behind it."""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime

import click
import msgspec
from rich.text import Text

from flotilla_cli.commands import explain_pod
from flotilla_cli.connection import Target, open_api, open_bus, reported
from flotilla_cli.diagnosis.diagnose import Diagnosis, diagnose, from_record
from flotilla_cli.diagnosis.missing_pods import MissingPods
from flotilla_cli.diagnosis.summary import STYLES
from flotilla_cli.options import Reach, object_argument, reach_options
from flotilla_cli.output import age, printed, span
from flotilla_cli.published import Why
from flotilla_common.api.resources import POD, Resource
from flotilla_common.clock import Clock, SystemClock
from flotilla_common.control.plan import Json, Reason
from flotilla_common.control.text import nodes_word
from flotilla_common.kube.credentials import ConfigError
from flotilla_common.kube.interface import ApiError, Unreachable

MOST_VACANCIES = 10
"""Number of reasons for nodes without a pod that are printed."""


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
            told = asyncio.run(_explain_pod(target, url, namespace, name, clock, everything=verbose))
            drawing, data = told.text(), told
        else:
            found = asyncio.run(_explain(target, url, resource, namespace, name, clock))
            drawing, data = render(found, clock.now()), document(found)
    if output == "json":
        click.echo(msgspec.json.encode(data))
    else:
        printed(drawing)


async def _explain_pod(
    target: Target, url: str, namespace: str, name: str, clock: Clock, *, everything: bool
) -> explain_pod.PodExplanation:
    async with open_api(target) as api:
        try:
            return await explain_pod.story(api, url, namespace, name, clock, everything=everything)
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
        "verdict": found.verdict.word.value,
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
    text = Text(f"{found.verdict.word}:", style=STYLES.get(found.verdict.word, "bold yellow"))
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
