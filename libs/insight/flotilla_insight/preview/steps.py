"""Describes a write for people: a pod is updated in place, recreated, created, deleted; a claim is created; and so on.

The step follows from the intent of the write, its changes from the object before and after it.
"""

from collections.abc import Iterator, Sequence

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.documents import Json, mappings, member, strings
from flotilla_common.api.kinds.workloadspread.book import matched_of
from flotilla_common.api.kinds.workloadspread.types import DELETION_COST
from flotilla_common.api.resources import POD, REVISION
from flotilla_common.control.plan import Create, Delete, Intent
from flotilla_common.model.pods import demanded_node
from flotilla_common.model.writes import Write
from flotilla_insight.views import view_of

IN_PLACE, RECREATE, CREATE, DELETE = "updateInPlace", "recreate", "create", "delete"
RESIZE, RESTART, MARK, HOLD, GRACE, PATCH = "resizeInPlace", "restart", "mark", "hold", "grace", "patch"
INJECT = "inject"

_TO_PODS = {
    Intent.IN_PLACE_UPDATE: IN_PLACE,
    Intent.UPDATE: IN_PLACE,
    Intent.RESIZE: RESIZE,
    Intent.GRACE: GRACE,
    Intent.HOLD: HOLD,
    Intent.INJECT: INJECT,
    Intent.RECREATE: MARK,
}
"""Steps of pod patches by intent; patches with other intents are bookkeeping."""


class ValueChange(msgspec.Struct, frozen=True, rename={"before": "from", "after": "to"}):
    """A value of a container or of a pod's metadata that changes."""

    what: str  # main image, label tier
    before: str | None
    after: str | None


class Step(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One operation on one object."""

    do: str
    kind: str
    namespace: str = ""
    name: str = ""  # empty: a new pod whose name is not known in advance
    node: str = ""
    revision: str = ""  # that the pod is on then
    target: str = ""  # full name of the revision that the pod moves to, or is created from
    changes: tuple[ValueChange, ...] = ()
    cause: str = ""  # the planner's
    why: str = ""  # why no milder step is possible
    alias: str = ""  # name in this report of an object without a known name
    refused: str = ""
    elsewhere: bool = False  # in another namespace than the object of the file, or cluster-scoped


def step_of(write: Write) -> Step | None:
    """Return the step of a write; None for bookkeeping: statuses, conditions, labels that only services read."""
    action, before, after = write.action, write.before, write.after
    if write.problem:
        return _step(write, CREATE if isinstance(action, Create) else PATCH, refused=write.problem)
    if isinstance(action, Create):
        return _step(write, CREATE, changes=_changes_of_kind(write))
    if isinstance(action, Delete):
        return _step(write, RECREATE if action.intent is Intent.RECREATE else DELETE) if write.effective else None
    if not write.effective or before is None or action.intent in (Intent.STATUS, Intent.BUDGET):
        return None
    if action.resource == POD and after is not None:
        return _pod_step(write, before, after)
    return None if action.resource == REVISION else _step(write, PATCH, changes=_changes_of_kind(write))


def _changes_of_kind(write: Write) -> tuple[ValueChange, ...]:
    changes = view_of(write.action.resource).step_changes(write.before or {}, write.after or {})
    return tuple(ValueChange(*change) for change in changes)


def _pod_step(write: Write, before: Json, after: Json) -> Step | None:
    do = _TO_PODS.get(write.action.intent)
    if do is None:
        return None
    if write.action.intent is Intent.UPDATE and before.get("spec") == after.get("spec"):
        places = tuple(_place_changes(before, after))
        return _step(write, PATCH, changes=places) if places else None
    if do == HOLD:
        return _step(write, do, why=_labels(after).get(keys.STATE_LABEL, ""))
    changes = (*_injected(before, after), *_container_changes(before, after), *_metadata_changes(before, after))
    return _step(write, do, changes=changes)


def _place_changes(before: Json, after: Json) -> Iterator[ValueChange]:
    """Yield the pod's new subset of a WorkloadSpread, and its new deletion cost."""
    was, now = (strings(member(one, "metadata").get("annotations")) for one in (before, after))
    old, new = matched_of(was), matched_of(now)
    if new is not None and new != old:
        yield ValueChange("subset", None if old is None else old.subset, new.subset)
    if was.get(DELETION_COST) != now.get(DELETION_COST):
        yield ValueChange("deletion cost", was.get(DELETION_COST), now.get(DELETION_COST))


def _injected(before: Json, after: Json) -> Iterator[ValueChange]:
    held = {one["name"] for one in mappings(member(before, "spec").get("ephemeralContainers"))}
    for one in mappings(member(after, "spec").get("ephemeralContainers")):
        if one["name"] not in held:
            yield ValueChange(f"{one['name']} of {one.get('image')}", None, None)


def _step(write: Write, do: str, *, changes: tuple[ValueChange, ...] = (), why: str = "", refused: str = "") -> Step:
    action = write.action
    document = write.after or write.before or {}
    return Step(
        do=do,
        kind=action.resource.kind,
        namespace=action.namespace,
        name=action.name,
        node=demanded_node(document) if action.resource == POD else "",
        revision=_labels(document).get(keys.REVISION_LABEL, "") if action.resource == POD else "",
        target=action.revision if action.resource == POD else "",
        changes=changes,
        cause=action.cause,
        why=why,
        refused=refused,
    )


def restart_of(pod: Json, containers: Sequence[str]) -> Step:
    """Return the step of a restart by the node's agent."""
    metadata = pod["metadata"]
    return Step(
        do=RESTART,
        kind=POD.kind,
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        node=str(member(pod, "spec").get("nodeName", "")),
        changes=tuple(ValueChange(name, None, None) for name in containers),
        cause="node agent",
    )


def _container_changes(before: Json, after: Json) -> list[ValueChange]:
    found: list[ValueChange] = []
    for kind in ("initContainers", "containers"):
        held = {one["name"]: one for one in mappings(member(before, "spec").get(kind))}
        for one in mappings(member(after, "spec").get(kind)):
            name, old = one["name"], held.get(one["name"], {})
            if old.get("image") != one.get("image"):
                found.append(ValueChange(f"{name} image", old.get("image"), one.get("image")))
            if (old.get("resources") or {}) != (one.get("resources") or {}):
                found.append(ValueChange(f"{name} resources", _compact(old), _compact(one)))
    return found


def _compact(container: Json) -> str:
    return msgspec.json.encode(container.get("resources") or {}, order="sorted").decode()


def _metadata_changes(before: Json, after: Json) -> list[ValueChange]:
    """Return the changes of labels and annotations that users set."""
    found: list[ValueChange] = []
    for kind, word in (("labels", "label"), ("annotations", "annotation")):
        was = strings(member(before, "metadata").get(kind))
        now = strings(member(after, "metadata").get(kind))
        changed = (key for key in sorted(was.keys() | now.keys()) if was.get(key) != now.get(key))
        shown = (key for key in changed if not _is_ours(key))
        found += [ValueChange(f"{word} {key}", *_told(word, was.get(key), now.get(key))) for key in shown]
    return found


def _told(word: str, before: str | None, after: str | None) -> tuple[str | None, str | None]:
    """Return the values to show: annotations may hold anything, so they are only named."""
    return (before, after) if word == "label" else (None, None)


def _is_ours(key: str) -> bool:
    """Report whether the label or annotation is bookkeeping of a service."""
    plain = (keys.REVISION_LABEL, keys.TEMPLATE_HASH_LABEL, keys.IN_PLACE_STATE, keys.IN_PLACE_GRACE)
    return key in plain or "kruise.io/" in key or key.startswith("inplace-update-")


def _labels(document: Json) -> dict[str, str]:
    return strings(member(document, "metadata").get("labels"))
