"""What the tree needs to know of a set with revisions and pods, whatever its kind.

A kind joins with a function that reads its objects into this (`flotilla_cli/views/<kind>.py`).
"""

from collections.abc import Callable

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import IntOrString, LabelSelector, ObjectMeta
from flotilla_common.api.rollout import Lifecycle
from flotilla_common.workload.causes import Around

OrderKey = tuple[int | str, ...]


class Numbers(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Pods, or nodes with their pods, counted."""

    desired: int
    total: int
    ready: int
    available: int
    updated: int
    updated_ready: int | None = None  # None: the kind does not count them
    updated_available: int | None = None
    expected_updated: int


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """One set, as its spec and its status tell."""

    kind: str
    metadata: ObjectMeta
    selector: LabelSelector
    numbers: Numbers
    observed_generation: int
    update_revision: str
    current_revision: str
    partition: IntOrString = 0  # what stays on old revisions, as it is written
    paused: bool = False
    on_delete: bool = False  # pods are updated when somebody deletes them
    min_ready_seconds: int = 0
    lifecycle: Lifecycle = Lifecycle()
    details: tuple[str, ...] = ()  # what else people want to know of this kind, a line each
    revision_of: Callable[[Pod], str] = lambda pod: pod.revision  # what a pod says of its revision
    belongs: Callable[[str, str], bool] = str.__eq__  # (what a pod says, name of a revision)
    order: Callable[[str], OrderKey] = lambda name: (name,)  # of pods of the same state, by what they are known by
    by_node: bool = False  # pods are known by their nodes, of which each has one, and not by their names

    def around(self, basis: Around) -> Around:
        """Return the surroundings with what the spec says of all pods."""
        return msgspec.structs.replace(basis, lifecycle=self.lifecycle, min_ready_seconds=self.min_ready_seconds)
