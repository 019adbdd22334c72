"""The page of an action: its form, then a preview of each pod, then the button that carries it out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_console import paths
from flotilla_console.actions import pods
from flotilla_console.actions.carrying_out import Target, context_of, stamp_of
from flotilla_console.actions.catalogue import ACTIONS, Action, action_of
from flotilla_console.actions.client import AsUser
from flotilla_console.actions.edits import Context
from flotilla_console.actions.fields import Fields, InvalidField
from flotilla_console.actions.kinds import KINDS
from flotilla_console.actions.outcomes import Outcome, refused
from flotilla_console.actions.preview import Foreseen, Previews
from flotilla_console.blocks.types import AnyBlock, Field, Form, Link, Notice, Paragraph, Span, spans
from flotilla_console.model.sight import Sight
from flotilla_console.page import Page, PageRequest, PageSpec
from flotilla_console.pages.foreseen import foreseen_blocks

PATH = "/workloads/{group}/{plural}/{namespace}/{name}/action/{verb}"

MOST_CHOICES = 100
"""Pods that the form offers; the search field finds the others."""

FIND = "find"
_CHOSEN = "true"
"""Value of a checked box."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """The action that a path means."""

    target: Target
    action: Action

    @property
    def here(self) -> str:
        """Return the path of the page."""
        return self._path("action", self.action.verb)

    @property
    def workload(self) -> str:
        """Return the path of the workload's page."""
        return self._path()

    @property
    def title(self) -> str:
        """Return the title of the page."""
        return f"{self.action.label}: {self.target.kind.resource.kind} {self.target.name}"

    @property
    def trail(self) -> tuple[Link, ...]:
        """Return the links to the pages above."""
        name = f"{self.target.kind.resource.kind} {self.target.name}"
        return Link("Fleet", paths.FLEET), Link(name, self.workload)

    def may(self, sight: Sight) -> bool:
        """Report whether the user is known to have the right that the action needs."""
        right = self.action.right(self.target.kind)
        return sight.may(right.verb, right.resource, self.target.namespace)

    def _path(self, *rest: str) -> str:
        resource = self.target.kind.resource
        return paths.workload(resource.group, resource.plural, self.target.namespace, self.target.name, *rest)


def place_of(params: Mapping[str, str]) -> Place | None:
    """Return the action that a path means; None if the kind does not have it."""
    group = "" if params["group"] == paths.CORE else params["group"]
    kind = KINDS.get((group, params["plural"]))
    action = None if kind is None else action_of(kind, params["verb"])
    if kind is None or action is None:
        return None
    namespace = "" if params["namespace"] == paths.CLUSTER else params["namespace"]
    return Place(target=Target(kind=kind, namespace=namespace, name=params["name"]), action=action)


def pods_by_name(sight: Sight, target: Target) -> Mapping[str, str] | None:
    """Return the uids of the visible pods of a workload by name; None if the workload may not be seen."""
    resource = target.kind.resource
    workload = sight.workload(resource.group, resource.plural, target.namespace, target.name)
    if workload is None:
        return None
    return {pod.metadata.name: pod.metadata.uid for pod in sight.pods_of(workload)}


def buttons(sight: Sight, group: str, plural: str, namespace: str, name: str, document: Json) -> tuple[Link, ...]:
    """Return links to the actions that the user may take on a workload now."""
    kind = KINDS.get((group, plural))
    if kind is None:
        return ()
    target = Target(kind=kind, namespace=namespace, name=name)
    offered = [
        Place(target=target, action=action)
        for action in ACTIONS.values()
        if action.offered(kind) and action.makes_sense(kind, document)
    ]
    return tuple(Link(place.action.label, place.here) for place in offered if place.may(sight))


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page shows of one request: the object as the user reads it, and the preview."""

    context: Context | None = None
    fields: Fields = {}
    """The fields that carry the action out; empty without a preview."""
    foreseen: Foreseen | None = None
    problem: str = ""
    """Why a field cannot be used."""
    refusal: Outcome | None = None


class ActionPage:
    """Builds the page."""

    def __init__(self, as_user: AsUser, previews: Previews) -> None:
        self._as_user = as_user
        self._previews = previews

    def spec(self) -> PageSpec:
        """Return the declaration of the page. It is not live: what is confirmed must not change."""
        return PageSpec(name="action", path=PATH, build=self.build, prepare=self.prepare, live=False)

    async def prepare(self, request: PageRequest) -> Prepared:
        """Read the object as the user, and preview the action if its fields are there."""
        place = place_of(request.params)
        own_pods = None if place is None else pods_by_name(request.sight, place.target)
        if place is None or own_pods is None:
            return Prepared()
        api = self._as_user(request.identity)
        context = None
        try:
            context = await context_of(api, place.target, place.action)
            if place.action.edit is not None:
                return await self._of_edit(place, context, request)
            return await self._of_pods(place, context, request, own_pods)
        except InvalidField as error:
            return Prepared(context=context, problem=str(error))
        except (ApiError, Unreachable) as error:
            return Prepared(context=context, refusal=refused(error))

    async def _of_edit(self, place: Place, context: Context, request: PageRequest) -> Prepared:
        wanted = [one.name for one in place.action.form(context)]
        if not all(name in request.query for name in wanted):
            return Prepared(context=context)
        assert place.action.edit is not None
        edited = place.action.edit(context, request.query)
        api = self._as_user(request.identity)
        foreseen = await self._previews.of_edit(api, place.target.kind, context.document, edited.document)
        fields = {name: request.query[name] for name in wanted}
        return Prepared(context=context, fields={**fields, **stamp_of(context.document)}, foreseen=foreseen)

    async def _of_pods(
        self, place: Place, context: Context, request: PageRequest, own_pods: Mapping[str, str]
    ) -> Prepared:
        names = [key.removeprefix(pods.PREFIX) for key in request.query if key.startswith(pods.PREFIX)]
        if not names:
            return Prepared(context=context)
        fields = {f"{pods.PREFIX}{name}": own_pods.get(name, "") for name in names}
        chosen = pods.chosen(fields)
        kind, action = place.target.kind, place.action.on_pods
        assert action is not None
        foreseen = Foreseen(note=f"{action.warning(kind)} Chosen: {', '.join(one.name for one in chosen)}.")
        if action.is_planned(kind):
            api = self._as_user(request.identity)
            foreseen = await self._previews.of_deletion(api, kind, context.document, [one.name for one in chosen])
        return Prepared(context=context, fields={**fields, **stamp_of(context.document)}, foreseen=foreseen)

    def build(self, request: PageRequest) -> Page | None:
        """Return the page; None if the kind has no such action, or the workload may not be seen."""
        place, prepared = place_of(request.params), request.read
        if place is None or not isinstance(prepared, Prepared):
            return None
        own_pods = pods_by_name(request.sight, place.target)
        if own_pods is None:
            return None
        return Page(place.title, tuple(_blocks(place, prepared, request, own_pods)), place.trail)


def _blocks(place: Place, prepared: Prepared, request: PageRequest, own_pods: Mapping[str, str]) -> Iterator[AnyBlock]:
    if prepared.refusal is not None:
        yield Notice(prepared.refusal.tone, spans(prepared.refusal.text))
    if prepared.problem:
        yield Notice("warn", spans(prepared.problem))
    if prepared.context is None:
        return
    if place.action.on_pods is not None:
        yield from _choice_of_pods(place, request, own_pods)
    elif fields := place.action.form(prepared.context):
        yield Form("fields", place.here, "get", _refilled(fields, request.query), "Preview")
    if prepared.foreseen is None:
        return
    yield from foreseen_blocks(prepared.foreseen)
    if not place.may(request.sight):
        right = place.action.right(place.target.kind)
        where = f" in namespace {place.target.namespace}" if place.target.namespace else ""
        yield Notice("warn", spans(f"You may not {right.verb} {right.resource.plural}{where}, so this cannot be done."))
        return
    hidden = tuple(Field(name, name, "hidden", value=value) for name, value in prepared.fields.items())
    yield Form("carry-out", place.here, "post", hidden, place.action.label, tone="warn")


def _refilled(fields: Sequence[Field], query: Mapping[str, str]) -> tuple[Field, ...]:
    """Return the fields with the values that the user has given."""
    return tuple(msgspec.structs.replace(one, value=query.get(one.name, one.value)) for one in fields)


def _choice_of_pods(place: Place, request: PageRequest, own_pods: Mapping[str, str]) -> Iterator[AnyBlock]:
    """Yield a search field if there are many pods, and a box for each one found."""
    sought = request.query.get(FIND, "")
    chosen = [name for name in sorted(own_pods) if f"{pods.PREFIX}{name}" in request.query]
    found = [name for name in sorted(own_pods) if sought in name and name not in chosen]
    if len(own_pods) > MOST_CHOICES:
        kept = tuple(Field(f"{pods.PREFIX}{name}", name, "hidden", value=_CHOSEN) for name in chosen)
        search = Field(FIND, "Find pods by name", "search", value=sought)
        yield Form("find", place.here, "get", (search, *kept), "Find")
        yield Paragraph(spans(f"{min(len(found), MOST_CHOICES)} of {len(found)} pods are shown."))
    if not own_pods:
        yield Paragraph(spans("There are no pods."))
        return
    boxes = tuple(
        Field(f"{pods.PREFIX}{name}", name, "checkbox", value=_CHOSEN if name in chosen else "")
        for name in (*chosen, *found[:MOST_CHOICES])
    )
    yield Form("pods", place.here, "get", boxes, "Preview")


def outcome_page(place: Place, outcomes: Sequence[Outcome]) -> Page:
    """Return the page that answers a carried out action."""
    links: tuple[str | Span, ...] = (
        Link("Back to the workload", place.workload),
        " · ",
        Link("Preview again", place.here),
    )
    notices = tuple(Notice(one.tone, spans(one.text)) for one in outcomes)
    return Page(place.title, (*notices, Paragraph(spans(*links))), place.trail)
