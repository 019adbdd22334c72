"""Takes units of budget for pods (podunavailablebudget.md §8.6), also ahead of requests (ADR 33).

These are functions over the status. The caller writes it, conditional on the version that was read. The maps' entries
have the names of pods. A pod that was created after its entry is another pod of that name. Entries have whole seconds,
so if an entry and the creation of a pod fall into the same second, the entry may belong to an earlier pod. Such a pod
does not count as available, and still takes a unit of its own before it is disrupted.

Under many requests, a replica of the webhook takes more units than it has requests for. They are in `disruptedPods`
under keys that no pod can have, until a later write replaces them by the pods that got them, or returns them. Each
counts as a taken unit.
"""

from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, merge_patch
from flotilla_common.api.kinds.podunavailablebudget.types import (
    DISRUPTED_SECONDS,
    UNAVAILABLE_SECONDS,
    UPDATE,
    BudgetStatus,
    is_ahead,
)
from flotilla_common.api.meta import Moment, later, rfc3339

ENTRIES_AT_MOST = 2000
"""Entries of both maps beyond which no budget is taken."""

EXHAUSTED = "pub unavailable allowed is negative"
TOO_MANY = "DisruptedPods and UnavailablePods map too big"
"""Beginnings of refusals; scripts look for these words (§8.7)."""

JUST_SECONDS = 5.0
"""Time for which an entry stays while its pod does: the shortest is ten seconds, minus differences of clocks."""

_NAMED = 5


class Refusal(msgspec.Struct, frozen=True):
    """The reason why no budget can be taken, in the words of §8.7, and the pods that hold it."""

    message: str
    exhausted: bool = True
    """True if all of the budget is taken; otherwise the maps are full."""


def is_recorded(status: BudgetStatus, pod: Pod) -> bool:
    """Return whether budget may have been taken for this very pod; then it does not count as available."""
    return any(is_about(entry, pod) for entry in _entries_of(status, pod))


def has_taken(status: BudgetStatus, pod: Pod) -> bool:
    """Return whether budget has certainly been taken for this very pod; then it needs no second unit."""
    created, ready = pod.metadata.creation_timestamp, pod.ready_since
    return any(
        # Only ready pods take budget: a pod that became ready later was not ready yet, or has been unready since.
        is_about(entry, pod) and not (entry == created and ready is not None and ready > entry)
        for entry in _entries_of(status, pod)
    )


def has_just_taken(status: BudgetStatus, pod: Pod, now: datetime) -> bool:
    """Return whether budget was taken for this very pod in the last JUST_SECONDS.

    The newest status then still has the entry, unless the pod is gone.
    """
    young = any(now < later(entry, JUST_SECONDS) for entry in _entries_of(status, pod))
    return young and has_taken(status, pod)


def take(status: BudgetStatus, pod: Pod, operation: str, now: datetime) -> BudgetStatus | Refusal:
    """Return the status with a unit of budget taken for the pod, or a Refusal if there is none to take."""
    if status.unavailable_allowed <= 0:
        return Refusal(f"{EXHAUSTED}: {held_by(status)}")
    entries = len(status.disrupted_pods) + len(status.unavailable_pods)
    if entries > ENTRIES_AT_MOST:
        return Refusal(f"{TOO_MANY}: {entries} entries are not confirmed by the controller yet", exhausted=False)
    taken = msgspec.structs.replace(status, unavailable_allowed=status.unavailable_allowed - 1)
    return with_entry(taken, pod, operation, now)


def with_entry(status: BudgetStatus, pod: Pod, operation: str, now: datetime) -> BudgetStatus:
    """Return the status with an entry of the pod."""
    # With a clock behind the apiserver's the entry would be older than a new pod.
    created = pod.metadata.creation_timestamp
    entry = {pod.metadata.name: (now if created is None else max(now, created)).replace(microsecond=0)}
    if operation == UPDATE:
        return msgspec.structs.replace(status, unavailable_pods=status.unavailable_pods | entry)
    return msgspec.structs.replace(status, disrupted_pods=status.disrupted_pods | entry)


def without_entry(status: BudgetStatus, pod: Pod, operation: str) -> BudgetStatus:
    """Return the status without the entry of a pod that stays as it is after all.

    `unavailableAllowed` stays for the controller to recount, because the pod may have become unavailable meanwhile.
    """
    gone = {pod.metadata.name}
    if operation == UPDATE:
        return msgspec.structs.replace(status, unavailable_pods=without(status.unavailable_pods, gone))
    return msgspec.structs.replace(status, disrupted_pods=without(status.disrupted_pods, gone))


def without(entries: dict[str, Moment], keys: Collection[str]) -> dict[str, Moment]:
    """Return the entries without these keys."""
    return {key: at for key, at in entries.items() if key not in keys}


def held_by(status: BudgetStatus) -> str:
    """Return a sentence with the numbers of the budget, the pods that hold it, and until when at most."""
    counted = f"{status.current_available} of {status.total_replicas} pods are available and "
    counted += f"{status.desired_available} must be"
    told = [counted]
    if holders := sorted(_holders(status)):
        shown = ", ".join(f"{name} ({what}, until {rfc3339(until)} at most)" for until, name, what in holders[:_NAMED])
        more = len(holders) - _NAMED
        told.append(f"the budget is held by {shown}{f' and {more} more' if more > 0 else ''}")
    if ahead := status.units_ahead:
        told.append(f"{ahead} of it {'is' if ahead == 1 else 'are'} held by the webhook for requests that come now")
    return "; ".join(told)


def status_document(status: BudgetStatus) -> Json:
    """Return the status as stored: the four numbers always, the maps only if they are not empty."""
    numbers: Json = {
        "unavailableAllowed": status.unavailable_allowed,
        "currentAvailable": status.current_available,
        "desiredAvailable": status.desired_available,
        "totalReplicas": status.total_replicas,
    }
    maps = {"disruptedPods": status.disrupted_pods, "unavailablePods": status.unavailable_pods}
    written = {key: {name: rfc3339(at) for name, at in entries.items()} for key, entries in maps.items() if entries}
    observed = {"observedGeneration": status.observed_generation} if status.observed_generation else {}
    return observed | written | numbers


def changes_of(before: BudgetStatus, after: BudgetStatus) -> Json:
    """Return the merge patch of the status that turns `before` into `after`; empty if they are equal."""
    return merge_patch(status_document(before), status_document(after))


def is_about(entry: datetime, pod: Pod) -> bool:
    """Return whether the entry may have been made for this pod, rather than for an earlier one of its name."""
    created = pod.metadata.creation_timestamp
    return created is None or created <= entry


def _entries_of(status: BudgetStatus, pod: Pod) -> list[datetime]:
    name = pod.metadata.name
    return [at for at in (status.disrupted_pods.get(name), status.unavailable_pods.get(name)) if at is not None]


def _holders(status: BudgetStatus) -> Iterator[tuple[datetime, str, str]]:
    for name, at in status.disruptions.items():
        yield later(at, DISRUPTED_SECONDS), name, "deletion"
    for name, at in status.unavailable_pods.items():
        yield later(at, UNAVAILABLE_SECONDS), name, "update"


LAST_UNITS, SHARE = 4, 4
"""The last units of a budget go to waiting requests; of the others a replica holds at most this part.

There are several replicas, and units that one of them holds are missing for all others.
"""


def is_any_fresh(status: BudgetStatus, seconds: float, now: datetime) -> bool:
    """Return whether a unit was taken ahead less than this many seconds ago."""
    return any(is_ahead(key) and now < later(at, seconds) for key, at in status.disrupted_pods.items())


def most_ahead(status: BudgetStatus, held: int) -> int:
    """Return the number of units that a replica may hold, which holds `held` now."""
    return max(0, status.unavailable_allowed + held - LAST_UNITS) // SHARE


def take_ahead(status: BudgetStatus, keys: Collection[str], now: datetime) -> BudgetStatus:
    """Return the status with a unit taken for each of the keys."""
    taken = dict.fromkeys(keys, now.replace(microsecond=0))
    return msgspec.structs.replace(
        status,
        unavailable_allowed=status.unavailable_allowed - len(taken),
        disrupted_pods=status.disrupted_pods | taken,
    )


def give(status: BudgetStatus, key: str, pod: Pod, operation: str, at: datetime) -> BudgetStatus:
    """Return the status with the pod in place of the unit that it got.

    If the unit is gone, the pod takes another one: the unit may have been counted as free since. If the pod is there
    already, by a request to another replica, the unit is returned.
    """
    has_unit = key in status.disrupted_pods
    if is_recorded(status, pod):
        return give_back(status, {key})
    if not has_unit:
        status = msgspec.structs.replace(status, unavailable_allowed=max(0, status.unavailable_allowed - 1))
    return with_entry(_without(status, {key}), pod, operation, at)


def give_back(status: BudgetStatus, keys: Iterable[str]) -> BudgetStatus:
    """Return the status without these units, which are available again if some budget is left.

    If none is left, more may be missing than the status can show, and only the controller's next count makes units
    available.
    """
    gone = status.disrupted_pods.keys() & set(keys)
    left = status.unavailable_allowed
    allowed = left + len(gone) if left > 0 else left
    return msgspec.structs.replace(_without(status, gone), unavailable_allowed=allowed)


def _without(status: BudgetStatus, keys: Collection[str]) -> BudgetStatus:
    return msgspec.structs.replace(status, disrupted_pods=without(status.disrupted_pods, keys))
