"""Instance ids: the last five characters of a pod's name and of its claims' names (cloneset.md §4.5).

Ids look random but are derived from what exists, so that planning the same view twice plans the same names: a plan
that is repeated, after a crash or on a view that is behind, meets AlreadyExists instead of making a second pod.

The CloneSet's resourceVersion is part of the view. Without it a set that comes back to what it was, empty for instance,
would give a new pod the name of a dead one, and everybody's logs and graphs would take the two for one.
"""

import hashlib
import itertools
from collections.abc import Collection, Iterable, Iterator

from flotilla_common.api.meta import ObjectMeta
from flotilla_common.workload.podnames import suffix


def fresh_ids(owner: ObjectMeta, existing: Iterable[str], taken: Collection[str]) -> Iterator[str]:
    """Endless ids that are not `taken`, determined by the version of the CloneSet and the names of what exists."""
    seed = hashlib.sha256("\n".join((owner.uid, owner.resource_version, *sorted(existing))).encode()).digest()
    used = set(taken)
    for counter in itertools.count():
        candidate = suffix(seed, counter)
        if candidate not in used:
            used.add(candidate)
            yield candidate
