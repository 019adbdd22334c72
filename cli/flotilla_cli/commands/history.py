"""`flotilla history`: the events of an object, from the change of its spec to the last pod."""

import asyncio
from datetime import timedelta

import click
import msgspec

from flotilla_cli.connection import Target, open_api, open_bus, reported, required_nats_url
from flotilla_cli.history.render import render
from flotilla_cli.options import Reach, object_argument, reach_options, since_option
from flotilla_cli.output import printed
from flotilla_common.api.documents import Json
from flotilla_common.api.resources import POD, Resource
from flotilla_common.clock import Clock, SystemClock
from flotilla_common.kube.credentials import ConfigError
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_insight.bus.connection import connected
from flotilla_insight.history.gather import gather, gather_pod, writers_of
from flotilla_insight.history.generations import ObjectRecords, Writer
from flotilla_insight.history.timeline import Timeline, pod_timeline, timeline


@click.command()
@object_argument
@reach_options
@since_option("Show all changes since then, not only the last one.")
@click.option("--all", "everything", is_flag=True, help="Show each step in full, and each write.")
@click.option("-o", "--output", type=click.Choice(["json"]), help="One JSON document with all chapters.")
def history(
    words: tuple[str, ...], reach: Reach, since: timedelta | None, everything: bool, output: str | None
) -> None:
    """Show what happened to an object: who changed what, what was decided and written, until it was done.

    Shows the last change of its spec, or with --since all of them. KIND may also be pod.
    """
    clock = SystemClock()
    resource, namespace, name = reach.place(words, pods=True)
    url = reach.url or required_nats_url(reach.nats)
    with reported():
        timeline = asyncio.run(_history(url, reach.target, resource, namespace, name, clock))
    if not timeline.chapters:
        what = f"{resource.kind} {namespace}/{name}" if namespace else f"{resource.kind} {name}"
        raise click.ClickException("; ".join([f"there are no records about {what}", *timeline.notes]))
    if output == "json":
        click.echo(msgspec.json.encode(timeline))
    else:
        printed(render(_since(timeline, since, clock), everything=everything), soft_wrap=True)


async def _history(url: str, target: Target, resource: Resource, namespace: str, name: str, clock: Clock) -> Timeline:
    async with open_bus(url, target.kubeconfig) as bus:
        await connected(bus, clock)
        if resource == POD:
            return pod_timeline(await gather_pod(bus, namespace, name))
        record = await gather(bus, resource, namespace, name)
    known = {write.generation for write in record.user_writes}
    if any(one.generation not in known for one in record.decisions):
        record = msgspec.structs.replace(record, writers=await _writers(target, record, resource))
    return timeline(record, clock.now())


async def _writers(target: Target, record: ObjectRecords, resource: Resource) -> tuple[Writer, ...]:
    """Return the owners of the object's fields, if the apiserver can be reached."""
    try:
        async with open_api(target) as api:
            return writers_of(msgspec.json.decode(await api.get(resource, record.namespace, record.name), type=Json))
    except (ApiError, Unreachable, ConfigError):
        return ()


def _since(timeline: Timeline, since: timedelta | None, clock: Clock) -> Timeline:
    """Return the requested generations: those with events since then, or the last one."""
    recent = timeline.chapters[-1:]
    if since is not None:
        begin = clock.now() - since
        recent = [one for one in timeline.chapters if max([step.at for step in one.steps], default=one.began) >= begin]
    notes = timeline.notes if recent[:1] == timeline.chapters[:1] else []
    return msgspec.structs.replace(timeline, chapters=recent, notes=notes)
