"""The book of places of a WorkloadSpread: functions that assign and release places (workloadspread.md §5, §6).

The webhook and the controller both write it, each on the version that it read. All functions are pure: a decision that
is repeated on a newer version may differ.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from types import MappingProxyType

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import REVISION_LABEL, TEMPLATE_HASH_LABEL
from flotilla_common.api.kinds.workloadspread.types import (
    MATCHED,
    UNLIMITED,
    VERSION_IGNORED,
    Matched,
    Subset,
    SubsetStatus,
    WorkloadSpread,
)
from flotilla_common.api.meta import IntOrString, Moment, ObjectMeta
from flotilla_common.api.numbers import integer

MOST = (1 << 31) - 1
AHEAD = "ahead/"
"""The prefix of keys of `creatingPods` for places that a webhook has reserved; no pod's name contains a slash."""

Book = Sequence[SubsetStatus]
_MATCHED: Reader[dict[str, object]] = Reader(dict[str, object])


def matched_of(annotations: dict[str, str]) -> Matched | None:
    """Return the WorkloadSpread and subset of a pod's mark, or None. Old marks have capital letters in their keys."""
    text = annotations.get(MATCHED)
    return _mark(text) if text else None


@lru_cache(maxsize=1 << 14)  # a pass reads the marks of all pods, which are mostly equal within a subset
def _mark(text: str) -> Matched | None:
    try:
        written = {key.lower(): value for key, value in _MATCHED.read(text).items()}
        return msgspec.convert(written, Matched)
    except ValueError:
        return None


def is_left_out(spread: WorkloadSpread, pod: ObjectMeta) -> bool:
    """Report whether the pod was probably created when no subset had room.

    It is unmarked, and younger than a WorkloadSpread whose subsets can all be full (§8.3, W2 and W17).
    """
    since, made = spread.metadata.creation_timestamp, pod.creation_timestamp
    unmarked = matched_of(pod.annotations) is None
    return unmarked and spread.spec.leaves_pods_out and since is not None and made is not None and made > since


def limit_of(subset: Subset, replicas: int) -> int:
    """Return the most pods that the subset takes, or `UNLIMITED`. Raises ValueError for an invalid limit."""
    return UNLIMITED if subset.max_replicas is None else scaled(subset.max_replicas, replicas)


def scaled(value: IntOrString, replicas: int) -> int:
    """Return a number, or a percentage of `replicas` rounded up, within 32 bits. Raises ValueError."""
    if isinstance(value, int):
        return max(0, min(value, MOST))
    percent = integer(value[:-1]) if value.endswith("%") else None
    if percent is None or percent < 0:
        raise ValueError(f"{value!r} is neither a number nor a percentage")
    return max(0, min(int((Decimal(percent) * replicas / 100).to_integral_value(ROUND_CEILING)), MOST))


def cost_of_place(place: int, subsets: int) -> int:
    """Return the deletion cost (§8.4) of a pod in the subset with the index `place`, out of `subsets`."""
    return 100 * (subsets - place)


def uses_percent(subsets: Sequence[Subset]) -> bool:
    """Report whether the limits depend on the number of all pods."""
    return any(isinstance(subset.max_replicas, str) for subset in subsets)


class Versioned(msgspec.Struct, frozen=True):
    """The kinds of workloads whose pod versions are distinguished (§6)."""

    kinds: frozenset[str] = frozenset({"deployment", "replicaset"})  # in lower case

    @classmethod
    def of(cls, setting: str) -> "Versioned":
        """Parse the setting: kinds separated by commas, in any case."""
        return cls(frozenset(name.strip().lower() for name in setting.split(",") if name.strip()))

    def tracks(self, kind: str) -> bool:
        """Report whether pod versions are distinguished for this kind of owner; a Deployment owns by ReplicaSets."""
        name = kind.lower()
        return name in self.kinds or (name == "replicaset" and "deployment" in self.kinds)


def version_of(labels: dict[str, str], *, tracked: bool) -> str:
    """Return the version of a pod by its labels; constant if versions are not distinguished (§6)."""
    if not tracked:
        return VERSION_IGNORED
    found = labels.get(TEMPLATE_HASH_LABEL) or labels.get(REVISION_LABEL, "").rpartition("-")[2]
    return found or VERSION_IGNORED


def opened(subsets: Sequence[Subset], replicas: int, totals: Book) -> list[SubsetStatus]:
    """Return a book with no places taken. Conditions of subsets apply to every version. Raises ValueError."""
    known = {one.name: one.conditions for one in totals}
    return [
        SubsetStatus(
            name=subset.name, missing_replicas=limit_of(subset, replicas), conditions=known.get(subset.name, [])
        )
        for subset in subsets
    ]


def token_of(key: str) -> str:
    """Return the key without its prefix: the name of a pod, or the token of a place."""
    return key.rpartition("/")[2]


def place_of(book: Book, name: str) -> SubsetStatus | None:
    """Return the subset that already has an entry for a pod of this name, or None."""
    return next((one for one in book if name and (name in one.creating_pods or name in one.deleting_pods)), None)


def awaiting(book: Book, key: str) -> SubsetStatus | None:
    """Return the subset whose `creatingPods` has this key, or None."""
    return next((one for one in book if key in one.creating_pods), None)


def has_room(entry: SubsetStatus) -> bool:
    """Report whether the subset takes another pod."""
    return entry.missing_replicas != 0


def chosen(book: Book, name: str = "", takes: Callable[[SubsetStatus], bool] = has_room) -> SubsetStatus | None:
    """Return the first subset that takes another pod, or None (§5.3).

    A pod that is created again under the `name` of a deleted one stays in that one's subset, if the place is still
    free.
    """
    open_ones = [one for one in book if one.schedulable and takes(one)]
    return next((one for one in open_ones if name in one.deleting_pods), open_ones[0] if open_ones else None)


def with_pod(book: Book, subset: str, key: str, now: datetime, name: str = "") -> list[SubsetStatus]:
    """Return the book after a pod has taken a place.

    Its `name` leaves `deletingPods`, because the deleted pod of that name is gone: otherwise the new pod would count as
    being deleted, and another pod would get its place.
    """
    book = [
        msgspec.structs.replace(one, deleting_pods=_without(one.deleting_pods, name))
        if name in one.deleting_pods
        else one
        for one in book
    ]
    return [
        msgspec.structs.replace(
            one, missing_replicas=one.missing_replicas - 1, creating_pods={**one.creating_pods, key: now}
        )
        if one.name == subset
        else one
        for one in book
    ]


def with_places(
    entry: SubsetStatus,
    *,
    taken: Collection[str] = (),
    given: Mapping[str, str] = MappingProxyType({}),
    returned: Collection[str] = (),
    now: datetime,
) -> SubsetStatus:
    """Return the entry after a webhook reserved places, assigned some to pods and returned others.

    `taken` and `returned` are keys; `given` maps keys to the names or tokens of the pods. Keys that the entry no longer
    has are ignored, because their places have timed out. The names leave `deletingPods`, as in `with_pod`.
    """
    creating, free = dict(entry.creating_pods), -len(taken)
    for key in returned:
        free += creating.pop(key, None) is not None
    for key, pod in given.items():
        if creating.pop(key, None) is not None:
            free += pod in creating  # a repeated request has taken two places
            creating[pod] = now
    missing = entry.missing_replicas if entry.missing_replicas == UNLIMITED else entry.missing_replicas + free
    return msgspec.structs.replace(
        entry,
        missing_replicas=missing,
        creating_pods={**creating, **dict.fromkeys(taken, now)},
        deleting_pods=_without(entry.deleting_pods, *given.values()),
    )


def without_pod(book: Book, subset: str, name: str, now: datetime) -> list[SubsetStatus] | None:
    """Return the book after a pod has released its place; None if there is nothing to record.

    That is: the pod already has an entry, or the subset is not in the book or takes any number of pods.
    """
    found = next((one for one in book if one.name == subset), None)
    if place_of(book, name) is not None or found is None or found.missing_replicas == UNLIMITED:
        return None
    return [
        msgspec.structs.replace(
            one, missing_replicas=one.missing_replicas + 1, deleting_pods={**one.deleting_pods, name: now}
        )
        if one is found
        else one
        for one in book
    ]


def with_pod_again(book: Book, subset: str, name: str) -> list[SubsetStatus]:
    """Return the book after a pod that was to release its place stays after all."""
    return [
        msgspec.structs.replace(
            one,
            missing_replicas=max(one.missing_replicas - 1, 0),
            deleting_pods=_without(one.deleting_pods, name),
        )
        if one.name == subset and name in one.deleting_pods
        else one
        for one in book
    ]


def _without(held: Mapping[str, Moment], *names: str) -> dict[str, Moment]:
    return {key: since for key, since in held.items() if key not in names}


def stored(entry: SubsetStatus) -> Json:
    """Return the entry as it is stored: without empty members, except messages, which the schema requires."""
    document: Json = msgspec.to_builtins(entry)
    for condition in document["conditions"]:
        condition.setdefault("message", "")
    return {key: value for key, value in document.items() if value not in ({}, [])}


def by_ordinal(subsets: Sequence[Subset], totals: Book, ordinal: int) -> str:
    """Return the subset of a StatefulSet's pod, or an empty name (§5.3 b). Unschedulable subsets are skipped."""
    closed = {one.name for one in totals if not one.schedulable}
    threshold = 0
    for subset in subsets:
        if subset.name in closed:
            continue
        limit = limit_of(subset, 0)
        threshold += MOST if limit == UNLIMITED else limit
        if ordinal < threshold:
            return subset.name
    return ""
