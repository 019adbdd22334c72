"""Changes of objects: pure functions from an object and the fields of a form to the changed object."""

import copy
from collections.abc import Iterator, Sequence

import msgspec

from flotilla_common.api.documents import (
    Json,
    is_object,
    mapping,
    mappings,
    member,
    merge_patch,
    strings,
    text,
    without_nulls,
)
from flotilla_common.api.keys import TEMPLATE_HASH_LABEL
from flotilla_console.actions.fields import Fields, InvalidField, count, count_or_percent, image
from flotilla_console.actions.kinds import ActionKind, Path
from flotilla_console.actions.revisions import Past


class Edited(msgspec.Struct, frozen=True):
    """The changed object, and what the user has done then, for the Event (`paused the rollout`)."""

    document: Json
    words: str


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """All that an edit may depend on."""

    kind: ActionKind
    document: Json
    past: Sequence[Past] = ()
    """Its earlier templates."""


def pause(context: Context, _: Fields) -> Edited:
    """Pause the rollout."""
    return Edited(_with(context.document, context.kind.paused, True), "paused the rollout")


def resume(context: Context, _: Fields) -> Edited:
    """Resume the rollout."""
    return Edited(_with(context.document, context.kind.paused, False), "resumed the rollout")


def partition(context: Context, fields: Fields) -> Edited:
    """Keep a number or percentage of pods on old revisions. Raises InvalidField."""
    value = count_or_percent(fields, "partition") if context.kind.percent else count(fields, "partition")
    return Edited(_with(context.document, context.kind.partition, value), f"set the partition to {value}")


def scale(context: Context, fields: Fields) -> Edited:
    """Set the number of replicas. Raises InvalidField."""
    value = count(fields, "replicas")
    return Edited(_with(context.document, context.kind.replicas, value), f"scaled it to {value}")


def update_image(context: Context, fields: Fields) -> Edited:
    """Set the image of one container. Raises InvalidField."""
    wanted, name = image(fields, "image"), fields.get("container", "")
    document = copy.deepcopy(context.document)
    found = [one for one in containers(context.kind, document) if one.get("name") == name]
    if not name or not found:
        raise InvalidField("container", "container must be one of the containers of the pod template")
    for one in found:
        one["image"] = wanted
    return Edited(document, f"set the image of {name} to {wanted}")


def undo(context: Context, fields: Fields) -> Edited:
    """Return to the template of an earlier revision. Raises InvalidField."""
    name = fields.get("revision", "")
    chosen = next((one for one in context.past if one.name == name), None)
    if chosen is None:
        raise InvalidField("revision", "revision must be one of the earlier revisions")
    document = _with(context.document, context.kind.template, _template_of(chosen))
    return Edited(document, f"returned to revision {chosen.name}")


def patch_of(before: Json, after: Json) -> Json:
    """Return the merge patch of a change, valid for this version of the object only; empty if nothing changes."""
    patch = merge_patch(before, after)
    if not patch:
        return {}
    version = text(member(before, "metadata").get("resourceVersion"))
    return patch | {"metadata": mapping(patch.get("metadata")) | {"resourceVersion": version}}


def containers(kind: ActionKind, document: Json) -> Iterator[Json]:
    """Yield the containers with an image."""
    for path in kind.containers:
        yield from mappings(member(document, *path[:-1]).get(path[-1]))


def value_of(document: Json, path: Path) -> object:
    """Return the value of a field; None if it is absent."""
    return member(document, *path[:-1]).get(path[-1])


def _with(document: Json, path: Path, value: object) -> Json:
    """Return the object with this value of the field."""
    name, *rest = path
    held = document.get(name)
    if not rest:
        return {**document, name: value}
    return {**document, name: _with(held if is_object(held) else {}, tuple(rest), value)}


def _template_of(past: Past) -> Json:
    """Return the pod template of a revision, without what its keeper has added."""
    template = without_nulls({key: value for key, value in past.template.items() if key != "$patch"})
    metadata = mapping(template.get("metadata"))
    labels = {key: value for key, value in strings(metadata.get("labels")).items() if key != TEMPLATE_HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": labels}} if "labels" in metadata else template
