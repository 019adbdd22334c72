"""A workload: why it waits, its revisions and pods, and what acts on it."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import mapping, member, sequence, text, typed
from flotilla_common.api.meta import Condition
from flotilla_common.bus import subjects
from flotilla_common.workload.causes import PodContext
from flotilla_console import paths
from flotilla_console.blocks.types import AnyBlock, Fact, Facts, Link, Mono, Paragraph, Row, spans
from flotilla_console.model.seen import seen
from flotilla_console.model.sight import Sight
from flotilla_console.model.touching import touching
from flotilla_console.model.workload import Workload
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.pages.action import buttons
from flotilla_console.pages.parts import (
    LIMIT,
    TONES,
    age,
    ago,
    bus_link,
    commas,
    conditions_table,
    facts,
    kind_word,
    link,
    pods_bar,
    progress,
    state_badge,
    whole_table,
)
from flotilla_console.pages.revisions import differences_blocks, pods_blocks
from flotilla_console.pages.why import why_blocks


def build(request: PageRequest) -> Page | None:
    """Return the page; None if the workload does not exist or may not be seen."""
    group, plural, namespace, name = (request.params[part] for part in ("group", "plural", "namespace", "name"))
    sight = request.sight
    one = sight.workload(
        "" if group == paths.CORE else group, plural, "" if namespace == paths.CLUSTER else namespace, name
    )
    if one is None:
        return None
    now = datetime.fromtimestamp(request.now, UTC)
    pods = seen(sight.pods_of(one), PodContext(now=now))
    return Page(
        title=f"{one.kind.resource.kind} {name}",
        trail=(Link("Fleet", paths.FLEET), *_namespace_link(one)),
        blocks=(
            *why_blocks(sight, one, now),
            *_actions(sight, one),
            Facts(_facts(sight, one)),
            *pods_blocks(request, one, pods),
            *_children(sight, one),
            *differences_blocks(sight, one),
            *_conditions(sight, one),
            *_touching(sight, one, [each.pod for each in pods]),
        ),
    )


def _actions(sight: Sight, one: Workload) -> Iterator[Paragraph]:
    """Yield the actions that the reader may take."""
    document = sight.object(one.kind.resource, one.namespace, one.name)
    links = () if document is None else buttons(sight, one.group, one.plural, one.namespace, one.name, document)
    if links:
        yield Paragraph(commas(links))


def _namespace_link(one: Workload) -> tuple[Link, ...]:
    if not one.namespace:
        return ()
    return (Link(one.namespace, paths.path(query={"namespace": one.namespace})),)


def _facts(sight: Sight, one: Workload) -> tuple[Fact, ...]:
    reading, meta = one.reading, one.metadata
    subject = subjects.kube_object(one.kind.resource, one.namespace, one.name)
    above = [link(each) if each is not None else f"{kind} {name}" for _, kind, name, each in sight.owners_of(one)]
    return facts(
        ("Kind", kind_word(one)),
        ("Namespace", one.namespace),
        ("Pods" if reading.noun == "pod" else f"{reading.noun.capitalize()}s", pods_bar(one)),
        ("Updated", progress(one)),
        ("Paused", "yes" if reading.paused else ""),
        ("Partition", reading.partition),
        ("Update strategy", reading.strategy),
        ("Newest revision", Mono(reading.update_revision) if reading.update_revision else ""),
        ("Current revision", Mono(reading.current_revision) if reading.current_revision else ""),
        *reading.details,
        ("Images", commas(map(Mono, reading.images))),
        ("Generation", _generation(one)),
        ("Owner", commas(above)),
        ("Labels", commas(f"{key}={value}" for key, value in sorted(meta.labels.items()))),
        ("Created", ago(one.created)),
        ("Look further", spans(_timeline(one), ", ", bus_link(subject))),
    )


def _generation(one: Workload) -> str:
    if not one.metadata.generation:
        return ""
    observed = "" if one.reading.observed is None else f", observed {one.reading.observed}"
    return f"{one.metadata.generation}{observed}"


def _timeline(one: Workload) -> Link:
    return Link("timeline", paths.workload(one.group, one.plural, one.namespace, one.name, "timeline"))


def _children(sight: Sight, one: Workload) -> Iterator[AnyBlock]:
    """Yield the workloads that it owns: those of subsets, the runs of a schedule."""
    children = sorted(sight.children_of(one), key=lambda child: (-child.created, child.name))
    if not children:
        return
    rows = tuple(
        Row(
            key=f"{child.kind.resource.id}/{child.name}",
            cells=(
                spans(link(child)),
                spans(state_badge(child)),
                spans(kind_word(child)),
                spans(pods_bar(child)),
                progress(child),
                spans(child.verdict.text),
                age(child.created),
            ),
            tone=TONES[child.verdict.state],
        )
        for child in children[:LIMIT]
    )
    columns = (
        *(("name", "Name"), ("state", "State"), ("kind", "Kind"), ("pods", "Pods")),
        *(("revision", "Updated"), ("why", "Why"), ("age", "Age")),
    )
    yield whole_table("children", "Its workloads", columns, rows)


def _conditions(sight: Sight, one: Workload) -> Iterator[AnyBlock]:
    stored = sight.object(one.kind.resource, one.namespace, one.name) or {}
    found = list(_readable(member(stored, "status").get("conditions")))
    if found:
        yield conditions_table(found)


def _readable(conditions: object) -> Iterator[Condition]:
    """Yield the conditions; one that is no object shows as its text."""
    for one in sequence(conditions):
        try:
            yield typed(one, Condition)
        except ValueError:
            yield Condition(type=text(mapping(one).get("type")) or "unreadable")


def _touching(sight: Sight, one: Workload, pods: Sequence[Pod]) -> Iterator[AnyBlock]:
    touches = touching(sight, one, pods)
    if not touches:
        return
    rows = tuple(
        Row(
            key=f"{touch.resource.id}/{touch.namespace}/{touch.name}",
            cells=(
                spans(touch.resource.kind),
                spans(link(touch.workload) if touch.workload is not None else touch.name),
                spans(touch.how),
                spans(state_badge(touch.workload), " ", touch.state) if touch.workload is not None else (),
            ),
        )
        for touch in touches[:LIMIT]
    )
    columns = ("kind", "Kind"), ("name", "Name"), ("how", "How"), ("state", "State")
    yield whole_table("touching", "What acts on the workload or its pods", columns, rows)


WORKLOAD = PageSpec(
    name="workload", path="/workloads/{group}/{plural}/{namespace}/{name}", build=build, parameters=("offset",)
)
