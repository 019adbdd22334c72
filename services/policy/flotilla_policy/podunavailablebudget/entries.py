"""Decides which entries of a budget's maps are kept (podunavailablebudget.md §7.3).

An entry records that budget was taken for a pod. It is removed when the pod is terminating or was replaced by another,
or when it has expired and the apiserver has been asked about the pod since: the mirror may be older than the entry. An
unknown pod keeps its entry until the apiserver confirms that it is gone.

Units that replicas of the webhook have reserved are among the entries until a replica assigns them to pods or
returns them. One left behind is removed when it expires.
"""

from collections.abc import Container, Iterator, Mapping
from datetime import datetime

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.podunavailablebudget.types import (
    DISRUPTED_SECONDS,
    UNAVAILABLE_SECONDS,
    BudgetStatus,
    is_ahead,
)
from flotilla_common.api.meta import Moment, later
from flotilla_common.control.planbuilder import Deadlines
from flotilla_common.workload.budget import is_about
from flotilla_policy.podunavailablebudget.snapshot import BudgetSnapshot

FAST_SECONDS = 2.0
"""The tolerated clock skew of clients that take budget; entries have full seconds."""


class Entries(msgspec.Struct, frozen=True, kw_only=True):
    """The entries that are kept, and the pods that were not deleted in time."""

    disrupted: dict[str, Moment]
    unavailable: dict[str, Moment]
    not_deleted: list[Pod]  # pods that should have been deleted and still exist


def in_doubt(status: BudgetStatus, known: Container[str], now: datetime) -> Iterator[tuple[str, datetime]]:
    """Yield name and time of the entries about whose pods the apiserver must be asked.

    They have expired, or their pod is not among the `known` ones.
    """
    for entries, seconds in (
        (status.disruptions, DISRUPTED_SECONDS),
        (status.unavailable_pods, UNAVAILABLE_SECONDS),
    ):
        yield from ((name, at) for name, at in entries.items() if name not in known or later(at, seconds) <= now)


def keep_entries(snapshot: BudgetSnapshot, now: datetime, deadlines: Deadlines) -> Entries:
    """Return the entries that are kept, and wait for the expiry of each."""
    status = snapshot.budget.status
    disrupted = _Sorting(snapshot, now, deadlines)
    unavailable = _Sorting(snapshot, now, deadlines)
    return Entries(
        disrupted=disrupted.kept(status.disrupted_pods, DISRUPTED_SECONDS),
        unavailable=unavailable.kept(status.unavailable_pods, UNAVAILABLE_SECONDS),
        not_deleted=disrupted.over,
    )


class _Sorting:
    """The selection of entries from one map."""

    def __init__(self, snapshot: BudgetSnapshot, now: datetime, deadlines: Deadlines) -> None:
        self._snapshot = snapshot
        self._counted = {pod.metadata.name for pod in snapshot.pods}
        self._now = now
        self._deadlines = deadlines
        self.over: list[Pod] = []  # pods that still exist after their entries have expired

    def kept(self, entries: Mapping[str, Moment], seconds: float) -> dict[str, Moment]:
        """Return the entries that are kept for up to `seconds`."""
        known = {name: self._no_later_than_now(at) for name, at in entries.items()}
        return {name: at for name, at in known.items() if self._is_kept(name, at, seconds)}

    def _no_later_than_now(self, at: datetime) -> datetime:
        """Return the time of an entry, at most now: a fast clock would keep it for too long."""
        return min(at, self._now.replace(microsecond=0)) if at > later(self._now, FAST_SECONDS) else at

    def _is_kept(self, name: str, at: datetime, seconds: float) -> bool:
        if is_ahead(name):
            return not self._deadlines.passed(later(at, seconds), self._now)
        pod, asked = self._snapshot.named.get(name), name in self._snapshot.just_read
        if pod is None and asked:
            return False
        if pod is not None and not (name in self._counted and is_about(at, pod)):
            return False
        if not self._deadlines.passed(later(at, seconds), self._now) or not asked:
            return True
        if pod is not None:
            self.over.append(pod)
        return False
