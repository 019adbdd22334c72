"""The pods of a workload by revision, and the differences between its revisions."""

from collections.abc import Iterator, Sequence

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import DEPLOYMENT_REVISION, REVISION_LABEL
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import POD
from flotilla_console.blocks.types import (
    AnyBlock,
    Badge,
    Bar,
    Group,
    Heading,
    Mono,
    Paragraph,
    Part,
    Span,
    Spans,
    Text,
    spans,
)
from flotilla_console.model.objects import Template
from flotilla_console.model.seen import Seen
from flotilla_console.model.sight import Sight
from flotilla_console.model.workload import Workload
from flotilla_console.page import PageRequest
from flotilla_console.pages.differences import difference
from flotilla_console.pages.parts import LIMIT, commas, offset_of
from flotilla_console.pages.pods import pods_table

GROUPED_ABOVE = 200
"""Pods of a workload above which those that serve are folded away."""

MOST_REVISIONS = 20
MOST_DIFFERENCES = 3


class _Revision(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of one revision, or below one owner."""

    name: str
    pods: Sequence[Seen]
    number: int = 0
    newest: bool = False
    current: bool = False


def pods_blocks(request: PageRequest, one: Workload, pods: Sequence[Seen]) -> Iterator[AnyBlock]:
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


def differences_blocks(sight: Sight, one: Workload) -> Iterator[AnyBlock]:
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
