"""`flotilla explain`: why an object stands where it stands, in the words of the service that planned it last."""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import datetime

import click
import msgspec
from rich.console import Console
from rich.text import Text

from flotilla_cli.ages import age, span
from flotilla_cli.connection import (
    bus_option,
    connected,
    namespace_of,
    namespace_option,
    nats_url_of,
    open_api,
    open_bus,
    reported,
    required_nats_url,
    target_of,
)
from flotilla_cli.kinds import find_object, object_argument
from flotilla_cli.plain import printed
from flotilla_cli.podstory import verb as podstory
from flotilla_cli.tree.why import Why, last_why
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.resources import Resource
from flotilla_common.bus.interface import Bus
from flotilla_common.clock import Clock, SystemClock

HEARTBEAT_SECONDS = 6.0
"""Services show a heartbeat every 5 seconds."""


@click.command()
@object_argument
@namespace_option
@bus_option
@click.option("-o", "--output", type=click.Choice(["json"]), help="The record as it was published.")
def explain(words: tuple[str, ...], namespace: str, nats: str, output: str | None) -> None:
    """Tell what an object waits for and why: the last plan's reasons and numbers. Of a pod: why it has the sidecars
    that it has, and which containers wait for others."""
    clock = SystemClock()
    if (kind_and_name := "/".join(words).partition("/"))[0].lower() in podstory.WORDS:
        with reported():
            place = namespace_of(namespace, target_of("", ""))
            told = asyncio.run(_explain_pod(nats_url_of(nats), place, kind_and_name[2], clock))
        if output == "json":
            click.echo(msgspec.json.encode(told))
        else:
            printed(told.text(), Console(highlight=False))
        return
    resource, name = find_object(words)
    url = required_nats_url(nats)
    namespace = namespace_of(namespace, target_of("", "")) if resource.namespaced else ""
    with reported():
        why, parts = asyncio.run(_explain(url, resource, namespace, name, clock))
        without = asyncio.run(_without(name)) if resource == SIDECAR_SET else []
    if output == "json":
        click.echo(msgspec.json.encode(why))
    else:
        printed(render(why, clock.now(), parts, without), Console(highlight=False))


async def _explain_pod(url: str, namespace: str, name: str, clock: Clock) -> podstory.Story:
    async with open_api(target_of("", "")) as api:
        return await podstory.story(api, url, namespace, name, clock)


async def _without(name: str) -> list[str]:
    """Pods that a SidecarSet selects and does not have. Only the apiserver knows them."""
    async with open_api(target_of("", "")) as api:
        return await podstory.uninjected(api, name)


async def _explain(url: str, resource: Resource, namespace: str, name: str, clock: Clock) -> tuple[Why, Sequence[Why]]:
    """The record of the object, and those of the parts that it waits for."""
    async with open_bus(url) as bus:
        await connected(bus, clock)
        why = await last_why(bus, resource, namespace, name)
        if why is None:
            raise click.ClickException(await _nothing(bus, resource, namespace, name, clock))
        return why, await _parts(bus, resource, why)


async def _parts(bus: Bus, resource: Resource, why: Why) -> Sequence[Why]:
    """Reasons may name objects of another kind, which know more."""
    names = dict.fromkeys(name for reason in why.reasons for name in reason.objects)
    parts = catalogue.kind_of(resource).parts
    found = [await last_why(bus, part, why.namespace, name) for part in parts for name in names]
    return [one for one in found if one is not None]


async def _nothing(bus: Bus, resource: Resource, namespace: str, name: str, clock: Clock) -> str:
    """The sentence for an object that nothing was published about: it depends on whether the service lives."""
    service, kind = catalogue.kind_of(resource).service, resource.kind.lower()
    place = f"{namespace}/{name}" if namespace else name
    beat = asyncio.Event()
    await bus.subscribe(f"heartbeat.v1.{service}.*", lambda _: beat.set())
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(HEARTBEAT_SECONDS):
            await beat.wait()
    what = f"nothing was published about {kind} {place}"
    if beat.is_set():
        return f"{what}, though the {service} service runs: no such object, or not planned since the bus was wiped"
    return f"{what}, and the {service} service shows no heartbeat: it is down, or uses another bus (flotilla status)"


def render(why: Why, now: datetime, parts: Sequence[Why] = (), without: Sequence[str] = ()) -> Text:
    """The record for people, why the parts stand where they stand, and which pods are `without` it."""
    place = f"{why.namespace}/{why.name}" if why.namespace else why.name
    text = Text(f"{why.kind} {place}", style="bold")
    text.append(
        f"  generation {why.generation}, planned {age(why.at, now)} ago by {why.service}/{why.replica}\n", "default"
    )
    if not why.reasons and not why.errors:
        text.append("nothing to wait for\n", style="green")
    _append_reasons(text, why, "  ")
    for line in without:
        text.append("  • ", style="yellow").append(f"{line}\n")
    for part in parts:
        text.append(f"    {part.kind} {part.name}\n", style="bold")
        _append_reasons(text, part, "      ")
    for failure in why.errors:
        phase = f"{failure.phase}: " if failure.phase else ""
        text.append("  ✗ ", style="red").append(f"{phase}{failure.message}\n")
    _append_facts(text, why, now)
    return text


def _append_reasons(text: Text, why: Why, indent: str) -> None:
    for reason in why.reasons:
        text.append(f"{indent}• ", style="yellow").append(reason.message).append(f"  [{reason.code}]\n", style="dim")


def _append_facts(text: Text, why: Why, now: datetime) -> None:
    writes = ", ".join(f"{count} {verb}" for verb, count in why.actions.items() if count) or "none"
    text.append(f"writes planned: {writes}\n")
    if why.wake_at is not None:
        seconds = (why.wake_at - now).total_seconds()
        text.append(f"looks again by itself {f'in {span(seconds)}' if seconds > 0 else 'now'}\n")
    width = max((len(name) for name in why.numbers), default=0)
    if why.numbers:
        text.append("numbers:\n")
    for name, number in why.numbers.items():
        text.append(f"  {name:<{width}}  {number}\n")
