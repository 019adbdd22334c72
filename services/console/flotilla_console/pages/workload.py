"""A workload: why it waits, its revisions and pods, and what acts on it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import mapping, member, sequence, text, typed
from flotilla_common.api.keys import DEPLOYMENT_REVISION, REVISION_LABEL
from flotilla_common.api.meta import Condition, controller_of, rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.bus import subjects
from flotilla_common.control.plan import Reason
from flotilla_common.control.plan import State as ReasonState
from flotilla_common.workload.causes import PodContext
from flotilla_console import paths
from flotilla_console.blocks.types import (
    Age,
    AnyBlock,
    Badge,
    Bar,
    Fact,
    Facts,
    Group,
    Heading,
    Link,
    Mono,
    Notice,
    Paragraph,
    Part,
    Row,
    Span,
    Spans,
    Text,
    Tone,
    spans,
)
from flotilla_console.model.objects import Template
from flotilla_console.model.reasons import Reasons
from flotilla_console.model.seen import Seen, seen
from flotilla_console.model.sight import Sight
from flotilla_console.model.touching import touching
from flotilla_console.model.workload import Workload
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.pages.action import buttons
from flotilla_console.pages.differences import difference
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
    offset_of,
    pods_bar,
    progress,
    state_badge,
    whole_table,
)
from flotilla_console.pages.pods import pods_table

GROUPED_ABOVE = 200
"""Pods of a workload above which those that serve are folded away."""

MOST_REVISIONS = 20
MOST_DIFFERENCES = 3
MOST_NAMES = 10

_REASON_TONES: Mapping[ReasonState, Tone] = {
    ReasonState.STUCK: "bad",
    ReasonState.HELD: "warn",
    ReasonState.WAITING: "busy",
    ReasonState.PROGRESSING: "busy",
    ReasonState.DONE: "ok",
    ReasonState.NOTE: "idle",
}


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
            *_why(sight, one, now),
            *_actions(sight, one),
            Facts(_facts(sight, one)),
            *_pods(request, one, pods),
            *_children(sight, one),
            *_differences(sight, one),
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


def _why(sight: Sight, one: Workload, now: datetime) -> Iterator[AnyBlock]:
    """Yield why the workload is as it is, in one sentence, with its evidence."""
    verdict, why = one.verdict, sight.reason(one)
    sentence = verdict.text or ("nothing is left to do" if verdict.state == "fine" else "")
    code = spans(" ", Badge(verdict.code, TONES[verdict.state])) if verdict.code else ()
    yield Notice(TONES[verdict.state], (*spans(state_badge(one), " ", sentence), *code))
    if why is None:
        if one.kind.resource.custom:
            yield Paragraph(spans("The bus has no reasons of its service: this is derived from the object's status."))
        return
    if why.generation < one.metadata.generation:
        yield Paragraph(
            spans(f"The last reasons are about generation {why.generation}, not {one.metadata.generation}.")
        )
    yield Paragraph(_moments(why, now))
    if not _is_said(one, why):
        yield whole_table("reasons", "Reasons", _REASON_COLUMNS, _reason_rows(sight, one, why))
    if why.numbers:
        yield Group("numbers", spans("Numbers behind the decision"), (Facts(facts(*_number_facts(why))),), open=False)


def _is_said(one: Workload, why: Reasons) -> bool:
    """Report whether the sentence has all that a table of the reasons would show."""
    if why.errors or len(why.reasons) > 1:
        return False
    return all(reason.code == one.verdict.code and not reason.objects for reason in why.reasons)


_REASON_COLUMNS = ("state", "State"), ("code", "Code"), ("message", "Reason"), ("objects", "Objects")


def _moments(why: Reasons, now: datetime) -> Spans:
    """Return when the decision was made, and when the next one is due at the latest."""
    decided: Spans = spans("Decided ", Age(why.at.timestamp()), " ago") if why.at is not None else ()
    by = spans(f" by {why.service}") if decided and why.service else ()
    if why.wake_at is None:
        return (*decided, *by, *spans(". It is planned again when something changes."))
    due = f"planned again at {rfc3339(why.wake_at)}" if why.wake_at > now else "due to be planned again now"
    return (*decided, *by, *spans(f". It is {due}, or when something changes."))


def _reason_rows(sight: Sight, one: Workload, why: Reasons) -> tuple[Row, ...]:
    rows = [
        Row(
            key=f"{index}/{reason.code}",
            cells=(
                spans(Badge(reason.state.value, _REASON_TONES[reason.state])),
                spans(reason.code),
                spans(reason.message),
                _objects(sight, one, reason),
            ),
            tone=_REASON_TONES[reason.state],
        )
        for index, reason in enumerate(why.by_severity)
    ]
    failures = [
        Row(
            key=f"error/{index}",
            cells=(spans(Badge("error", "bad")), spans(failure.phase), spans(failure.message), ()),
            tone="bad",
        )
        for index, failure in enumerate(why.errors)
    ]
    return (*failures, *rows)


def _objects(sight: Sight, one: Workload, reason: Reason) -> Spans:
    """Return the objects of a reason; links to those that are pods."""
    pieces: list[Span | str] = [_object(sight, one, name) for name in reason.objects[:MOST_NAMES]]
    more = len(reason.objects) - MOST_NAMES
    return commas([*pieces, f"{more} more"] if more > 0 else pieces)


def _object(sight: Sight, one: Workload, name: str) -> Span | str:
    namespace, _, bare = name.rpartition("/")
    pod = sight.pod(namespace or one.namespace, bare)
    return name if pod is None else Link(name, paths.pod(*pod.metadata.key))


def _number_facts(why: Reasons) -> Iterator[tuple[str, str]]:
    for name, value in why.numbers.items():
        yield name, str(value)


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


class _Revision(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of one revision, or below one owner."""

    name: str
    pods: Sequence[Seen]
    number: int = 0
    newest: bool = False
    current: bool = False


def _pods(request: PageRequest, one: Workload, pods: Sequence[Seen]) -> Iterator[AnyBlock]:
    """Yield the revisions with their pods."""
    if one.kind.has_pods and not request.sight.may("list", POD, one.namespace):
        yield Paragraph(spans("Its pods are not shown: you may not list the pods of the namespace."))
    if not pods:
        return
    templates = request.sight.templates_of(one)
    revisions = _revisions(one, pods, templates)
    yield Heading("Pods", id="pods")
    for revision in revisions[:MOST_REVISIONS]:
        yield _revision_group(request, revision, folded=len(pods) > GROUPED_ABOVE)
    if len(revisions) > MOST_REVISIONS:
        yield Paragraph(spans(f"{len(revisions) - MOST_REVISIONS} older revisions have pods, too."))


def _revisions(one: Workload, pods: Sequence[Seen], templates: Sequence[Template]) -> list[_Revision]:
    """Return the revisions that have pods, newest first. Pods of a revision that is gone are under its label."""
    names = [template.metadata.name for template in templates]
    known: dict[str, str] = {}  # the revision's name by the pods' label
    groups: dict[str, list[Seen]] = {}
    for each in pods:
        label = _label(one, each.pod)
        if label not in known:
            known[label] = next((name for name in names if one.kind.belongs(label, name)), label)
        groups.setdefault(known[label], []).append(each)
    reading = one.reading
    newest = reading.update_revision or (names[0] if names else "")
    found = [
        _Revision(
            name=name,
            pods=sorted(members, key=lambda each: (not each.troubled, each.tone != "bad", each.pod.metadata.name)),
            number=-names.index(name) if name in names else -len(names),
            newest=bool(newest) and (name == newest or one.kind.belongs(newest, name)),
            current=bool(reading.current_revision) and name == reading.current_revision,
        )
        for name, members in groups.items()
    ]
    return sorted(found, key=lambda revision: (-revision.number, revision.name))


def _label(one: Workload, pod: Pod) -> str:
    """Return the revision of a pod; of a workload whose pods others own, the name of the pod's owner."""
    if one.kind.has_revisions:
        return pod.metadata.labels.get(REVISION_LABEL, "")
    owner = controller_of(pod.metadata)
    return owner.name if owner is not None else ""


def _revision_group(request: PageRequest, revision: _Revision, *, folded: bool) -> Group:
    pods = revision.pods
    troubled = [each for each in pods if each.troubled]
    identity = f"revision-{revision.name}"
    shown = pods if not folded else troubled
    blocks: list[AnyBlock] = []
    if shown:
        caption = f"Pods of {revision.name}" if not folded else f"Pods of {revision.name} that do not serve"
        offset = offset_of(request.query, len(shown)) if folded else 0
        blocks.append(pods_table(f"{identity}-pods", caption, shown, offset, LIMIT if folded else GROUPED_ABOVE))
    if folded and len(troubled) < len(pods):
        serving = pods[len(troubled) :]
        table = pods_table(
            f"{identity}-serving",
            f"Pods of {revision.name} that serve",
            serving,
            offset_of(request.query, len(serving)),
            LIMIT,
        )
        blocks.append(Group(f"{identity}-others", spans(f"{len(serving)} pods that serve"), (table,)))
    return Group(identity, _revision_summary(revision, len(troubled)), tuple(blocks), open=not folded or bool(troubled))


def _revision_summary(revision: _Revision, troubled: int) -> Spans:
    total = len(revision.pods)
    parts = (Part("serving", total - troubled, "ok"), Part("not serving", troubled, "busy"))
    bar = Bar(f"{total - troubled} of {total} pods serve", tuple(part for part in parts if part.count), total)
    signs: list[Span | str] = []
    if revision.newest:
        signs += [" ", Badge("newest", "ok")]
    if revision.current:
        signs += [" ", Badge("current", "idle")]
    return spans(Mono(revision.name or "no revision"), *signs, " ", bar)


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


def _differences(sight: Sight, one: Workload) -> Iterator[AnyBlock]:
    """Yield the differences of the newest revision from the ones before it."""
    templates = sight.templates_of(one)
    if len(templates) < 2:
        return
    yield Heading("Differences between revisions", id="differences")
    newest = next((each for each in templates if _is_newest(one, each)), templates[0])
    older = [each for each in templates if each is not newest]
    yield from (difference(each, newest) for each in older[:MOST_DIFFERENCES])
    yield Paragraph(commas(map(_called, templates[:MOST_REVISIONS])))


def _is_newest(one: Workload, template: Template) -> bool:
    revision = one.reading.update_revision
    return bool(revision) and one.kind.belongs(revision, template.metadata.name)


def _called(template: Template) -> Text:
    number = str(template.revision) if template.revision else template.metadata.annotations.get(DEPLOYMENT_REVISION, "")
    return Text(f"{template.metadata.name} ({number})" if number else template.metadata.name)


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
