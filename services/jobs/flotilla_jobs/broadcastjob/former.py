"""The names of pods that are gone, so that the next pod of their node gets another one.

They are remembered by the process alone, and may be lost at any time: then a pod may be called like one before it.
"""

from collections.abc import Mapping

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.broadcastjob.types import BroadcastJob
from flotilla_common.api.meta import controller_of
from flotilla_common.mirror.table import Table
from flotilla_common.workload.placement import node_of


class FormerNames:
    """Of all jobs, from the tables' changes."""

    def __init__(self, jobs: Table[BroadcastJob], pods: Table[Pod]) -> None:
        self._jobs = jobs
        self._known: dict[str, dict[str, str]] = {}  # by the job's uid, and by node
        jobs.listen(self._forget)
        pods.listen(self._note)

    def of(self, uid: str) -> Mapping[str, str]:
        """By node: the name of the last pod that the job with that uid had there."""
        return self._known.get(uid, {})

    def _forget(self, old: BroadcastJob | None, new: BroadcastJob | None) -> None:
        if new is None and old is not None:
            self._known.pop(old.metadata.uid, None)

    def _note(self, old: Pod | None, new: Pod | None) -> None:
        if old is None or new is not None:
            return
        owner = controller_of(old.metadata)
        if owner is not None and self._jobs.by_uid(owner.uid) is not None:
            self._known.setdefault(owner.uid, {})[node_of(old)] = old.metadata.name
