"""The actions: which kinds have them, the right that each needs, and the fields of its form."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from flotilla_common.api.documents import Json, text
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.resources import POD, Resource
from flotilla_console.actions import edits, pods
from flotilla_console.actions.client import Client
from flotilla_console.actions.edits import Context, Edited, containers, value_of
from flotilla_console.actions.fields import Fields
from flotilla_console.actions.kinds import ActionKind
from flotilla_console.blocks.types import Choice, Field

PodWrite = Callable[[Client, str, pods.Chosen], Awaitable[None]]


class Right(msgspec.Struct, frozen=True):
    """The right to do something with a resource."""

    verb: str
    resource: Resource


class PodAction(msgspec.Struct, frozen=True, kw_only=True):
    """A change of chosen pods."""

    write: Callable[[ActionKind], PodWrite]
    done: Callable[[ActionKind], str]
    """Returns what the user did, without the names of the pods: `deleted`."""
    warning: Callable[[ActionKind], str]
    is_planned: Callable[[ActionKind], bool] = lambda _: False
    """The kind's controller carries it out, so that it can be foreseen."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """An action; it changes the object (`edit`), or chosen pods of it (`on_pods`)."""

    verb: str
    label: str
    offered: Callable[[ActionKind], bool]
    right: Callable[[ActionKind], Right]
    edit: Callable[[Context, Fields], Edited] | None = None
    on_pods: PodAction | None = None
    reads_past: bool = False
    """The edit needs the earlier templates."""
    form: Callable[[Context], tuple[Field, ...]] = lambda _: ()
    makes_sense: Callable[[ActionKind, Json], bool] = lambda kind, document: True
    """Reports whether a button for it helps now: a paused rollout is not paused again."""


def _patch(kind: ActionKind) -> Right:
    return Right("patch", kind.resource)


def _is_paused(kind: ActionKind, document: Json) -> bool:
    return value_of(document, kind.paused) is True


def _partition(context: Context) -> tuple[Field, ...]:
    value = _written(value_of(context.document, context.kind.partition), "0")
    help_text = "Pods that stay on old revisions: a number, or a percentage such as 25%"
    if context.kind.percent:
        return (Field("partition", "Partition", value=value, required=True, help=help_text),)
    return (Field("partition", "Partition", "number", value=value, required=True, help=help_text.partition(":")[0]),)


def _replicas(context: Context) -> tuple[Field, ...]:
    value = _written(value_of(context.document, context.kind.replicas), "1")
    return (Field("replicas", "Replicas", "number", value=value, required=True),)


def _image(context: Context) -> tuple[Field, ...]:
    found = {text(one.get("name")): text(one.get("image")) for one in containers(context.kind, context.document)}
    choices = tuple(Choice(name, f"{name} ({image})") for name, image in found.items() if name)
    first = choices[0].value if choices else ""
    return (
        Field("container", "Container", "select", value=first, choices=choices, required=True),
        Field("image", "Image", value=found.get(first, ""), required=True),
    )


def _revision(context: Context) -> tuple[Field, ...]:
    choices = tuple(Choice(one.name, f"{one.number}: {one.name}") for one in context.past)
    earlier = choices[1].value if len(choices) > 1 else ""
    return (Field("revision", "Revision", "select", value=earlier, choices=choices, required=True),)


def _written(value: object, missing: str) -> str:
    return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else missing


_DELETION = PodAction(
    write=lambda kind: pods.mark if kind.marks_pods else pods.delete,
    done=lambda kind: "asked the controller to delete" if kind.marks_pods else "deleted",
    warning=lambda kind: (
        "The controller deletes these pods within maxUnavailable, and creates others."
        if kind.marks_pods
        else "These pods are deleted at once; their controller creates others."
    ),
    is_planned=lambda kind: kind.marks_pods,
)
_RESTART = PodAction(
    write=lambda _: pods.restart,
    done=lambda _: "restarted",
    warning=lambda _: (
        "The containers of these pods restart at once, each where it runs: maxUnavailable does not count."
    ),
)

_ACTIONS = (
    Action(
        verb="pause",
        label="Pause",
        offered=lambda kind: bool(kind.paused),
        right=_patch,
        edit=edits.pause,
        makes_sense=lambda kind, document: not _is_paused(kind, document),
    ),
    Action(
        verb="resume",
        label="Resume",
        offered=lambda kind: bool(kind.paused),
        right=_patch,
        edit=edits.resume,
        makes_sense=_is_paused,
    ),
    Action(
        verb="partition",
        label="Set partition",
        offered=lambda kind: bool(kind.partition),
        right=_patch,
        edit=edits.partition,
        form=_partition,
    ),
    Action(
        verb="scale",
        label="Scale",
        offered=lambda kind: bool(kind.replicas),
        right=_patch,
        edit=edits.scale,
        form=_replicas,
    ),
    Action(
        verb="image",
        label="Update image",
        offered=lambda kind: bool(kind.containers),
        right=_patch,
        edit=edits.update_image,
        form=_image,
    ),
    Action(
        verb="undo",
        label="Undo to a revision",
        offered=lambda kind: kind.revisions is not None,
        right=_patch,
        edit=edits.undo,
        reads_past=True,
        form=_revision,
    ),
    Action(
        verb="restart",
        label="Restart in place",
        offered=lambda kind: kind.has_pods,
        right=lambda _: Right("create", RECREATE_REQUEST),
        on_pods=_RESTART,
    ),
    Action(
        verb="delete-pods",
        label="Delete pods",
        offered=lambda kind: kind.has_pods,
        right=lambda kind: Right("patch" if kind.marks_pods else "delete", POD),
        on_pods=_DELETION,
    ),
)

ACTIONS: Mapping[str, Action] = {action.verb: action for action in _ACTIONS}
"""The actions by their verb in paths."""


def action_of(kind: ActionKind, verb: str) -> Action | None:
    """Return the action of a kind; None if it has none of this verb."""
    found = ACTIONS.get(verb)
    return found if found is not None and found.offered(kind) else None


def rights_of(kind: ActionKind) -> frozenset[Right]:
    """Return the rights that decide which actions a user is offered for objects of a kind."""
    return frozenset(action.right(kind) for action in ACTIONS.values() if action.offered(kind))
