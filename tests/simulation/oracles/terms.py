"""What a workload object promises at one moment, in numbers: the measure that the oracles judge by.

A workload kind joins by one function that reads its spec into `Terms`: `TERMS` in its file of scenarios. The functions
are deliberately not the planner's own: a mistake in there must not become the measure.
"""

from collections.abc import Callable

import msgspec

from flotilla_common.api.rollout import Lifecycle
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Json


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What may be asked of the controller while the object looks like this."""

    selector: Selector
    replicas: int
    max_unavailable: int = 0
    max_surge: int = 0
    partition: int = 0
    min_ready_seconds: int = 0
    lifecycle: Lifecycle | None = None
    keeps_claims: bool = False  # claims of pods that others deleted wait for a new pod
    spares_preparing: bool = False  # pods in PreparingDelete do not count against replicas
    to_delete: frozenset[str] = frozenset()  # pods that the user named
    recreates: bool = False  # running pods must never be changed
    current_revision: str = ""  # what the status says
    terminating: bool = False


Reader = Callable[[Json], Terms]
