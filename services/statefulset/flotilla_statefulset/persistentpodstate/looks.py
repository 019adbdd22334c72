"""Asking the apiserver itself before records or a PersistentPodState are thrown away for the sake of a workload.

A workload and what remembers its pods come in different streams, so a mirror may hear of one before the other. An
answer counts for the version of the PersistentPodState that was held when it was asked for: what is written because of
it is written on that version.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from flotilla_common.api.kinds.persistentpodstate.types import PersistentPodState
from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.controller import Key
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_statefulset.persistentpodstate.snapshot import Said

RETRY_SECONDS = 2.0
"""Between questions that were not answered."""


class Question(NamedTuple):
    """What is asked, and at which version of the PersistentPodState."""

    resource: Resource
    name: str
    version: str


class Looks:
    """The questions that are open, and the last answer for each PersistentPodState."""

    def __init__(
        self,
        get: Callable[[Resource, str, str], Awaitable[bytes]],
        clock: Clock,
        again: Callable[[str, str], None],
    ) -> None:
        """`get` reads an object; `again` plans whoever has asked."""
        self._get = get
        self._clock = clock
        self._again = again
        self._open: dict[Key, Question] = {}
        self._answers: dict[Key, tuple[Question, Said]] = {}
        self._wake = asyncio.Event()
        self._log = structlog.get_logger()

    def of(self, state: PersistentPodState, resource: Resource, name: str) -> Said | None:
        """What the apiserver says of the workload; None until it has answered, which has the asker planned again."""
        key = (state.metadata.namespace, state.metadata.name)
        question = Question(resource, name, state.metadata.resource_version)
        asked, said = self._answers.get(key, (None, None))
        if asked == question:
            return said
        self._open[key] = question
        self._wake.set()
        return None

    def forget(self, key: Key) -> None:
        """The PersistentPodState needs no answer any more."""
        self._open.pop(key, None)
        self._answers.pop(key, None)

    async def run(self) -> None:
        """Answer until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            for key, question in list(self._open.items()):
                await self._ask(key, question)
            if self._open and not self._wake.is_set():
                await self._clock.sleep(RETRY_SECONDS)
                self._wake.set()

    async def _ask(self, key: Key, question: Question) -> None:
        try:
            said = await self._look(question.resource, key[0], question.name)
        except (ApiError, Unreachable) as error:
            self._log.warning("cannot look a workload up", workload=f"{key[0]}/{question.name}", error=str(error))
            return
        if self._open.get(key) == question:
            del self._open[key]
            self._answers[key] = (question, said)
        self._again(*key)

    async def _look(self, resource: Resource, namespace: str, name: str) -> Said:
        try:
            return Said(metadata_of(await self._get(resource, namespace, name)))
        except ApiError as error:
            if error.code == 404:
                return Said(None)
            raise
