"""Asking the apiserver itself before records or a PersistentPodState are thrown away for the sake of a workload.

A workload and what remembers its pods come in different streams, so a mirror may hear of one before the other. An
answer counts for the version of the PersistentPodState that was held when it was asked for: what is written because of
it is written on that version.
"""

from collections.abc import Callable
from typing import NamedTuple

from flotilla_common.api.errors import found_or_none
from flotilla_common.api.kinds.persistentpodstate.types import PersistentPodState
from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.controller import Key
from flotilla_common.control.questions import Get, Questions
from flotilla_statefulset.persistentpodstate.snapshot import Said


class Question(NamedTuple):
    """What is asked, and at which version of the PersistentPodState."""

    resource: Resource
    name: str
    version: str


class Looks:
    """Asks for the workloads of PersistentPodStates."""

    def __init__(self, get: Get, clock: Clock, again: Callable[[str, str], None]) -> None:
        """`again` plans whoever has asked."""
        self._get = get
        self._questions = Questions(self._read, clock, again)
        self.forget, self.run = self._questions.forget, self._questions.run

    def of(self, state: PersistentPodState, resource: Resource, name: str) -> Said | None:
        """What the apiserver says of the workload; None until it has answered, which has the asker planned again."""
        meta = state.metadata
        return self._questions.ask((meta.namespace, meta.name), Question(resource, name, meta.resource_version))

    async def _read(self, key: Key, question: Question) -> Said:
        found = await found_or_none(self._get(question.resource, key[0], question.name))
        return Said(None if found is None else metadata_of(found))
