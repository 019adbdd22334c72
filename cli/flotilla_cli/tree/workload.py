"""The common view of sets with revisions and pods, for all kinds.

A kind joins with a function that reads its objects into this (`flotilla_cli/views`).
"""

from collections.abc import Callable

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import IntOrString, LabelSelector, ObjectMeta
from flotilla_common.api.rollout import Lifecycle
from flotilla_common.workload.causes import Around

OrderKey = tuple[int | str, ...]


class Numbers(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Numbers of pods, or of nodes with their pods."""

    desired: int
    total: int
    ready: int
    available: int
    updated: int
    updated_ready: int | None = None  # None: the kind does not count them
    updated_available: int | None = None
    expected_updated: int


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """One set, by its spec and its status."""

    kind: str
    metadata: ObjectMeta
    selector: LabelSelector
    numbers: Numbers
    observed_generation: int
    update_revision: str
    current_revision: str
    partition: IntOrString = 0  # pods kept on old revisions, as written
    paused: bool = False
    on_delete: bool = False  # pods are updated when a user deletes them
    min_ready_seconds: int = 0
    lifecycle: Lifecycle = Lifecycle()
    details: tuple[str, ...] = ()  # further facts for people, a line each
    revision_of: Callable[[Pod], str] = lambda pod: pod.revision  # the revision in a pod's labels
    belongs: Callable[[str, str], bool] = str.__eq__  # (a pod's revision, name of a revision)
    order: Callable[[str], OrderKey] = lambda name: (name,)  # of pods of the same state, by their name or node
    by_node: bool = False  # pods are identified by their nodes, of which each has one, and not by their names

    def around(self, basis: Around) -> Around:
        """Return the context with what the spec says of all pods."""
        return msgspec.structs.replace(basis, lifecycle=self.lifecycle, min_ready_seconds=self.min_ready_seconds)
