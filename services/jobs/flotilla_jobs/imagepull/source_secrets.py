"""Pull secrets in the namespaces of their jobs, read one by one by name.

The service may get secrets, not list or watch them, so that it can see only what jobs name. Secrets of running jobs are
read again every few seconds; a change requeues their jobs. A job that begins does not rely on a read for another job:
its secrets may have been created a moment before it.
"""

import asyncio
from collections.abc import Callable, Mapping

import msgspec
import structlog

from flotilla_common.api.core import Secret
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.resources import SECRET
from flotilla_common.clock import Clock
from flotilla_common.control.keystate import Key
from flotilla_common.control.questions import Get
from flotilla_common.kube.interface import ApiError, Unreachable

LOOK_SECONDS = 5.0
"""Interval of reading a secret again: a change of the source reaches the copy within this time."""


class SourceSecrets:
    """A cache of the secrets that jobs name."""

    def __init__(
        self,
        *,
        get: Get,
        clock: Clock,
        wanted: Callable[[], Mapping[Key, set[str]]],
        changed: Callable[[Key], object],
    ) -> None:
        """Store the accessors.

        `get` reads an object; `wanted` returns the secrets of running jobs, each with the jobs' uids; `changed` is
        called when the job's view of a secret has changed.
        """
        self._get = get
        self._clock = clock
        self._wanted = wanted
        self._changed = changed
        self._known: dict[Key, Secret | None] = {}
        self._seen_for: dict[Key, set[str]] = {}  # the jobs that had asked before the last read
        self._waiting: dict[Key, set[str]] = {}  # the jobs that have asked since
        self._asked: dict[Key, None] = {}
        self._wake = asyncio.Event()
        self._decode = msgspec.json.Decoder(Secret).decode
        self._log = structlog.get_logger()

    def of(self, job: ImagePullJob) -> Mapping[str, Secret | None]:
        """Return the job's pull secrets by name, None for one that does not exist.

        A secret that was not read for this job is missing, and is read soon.
        """
        uid, found = job.metadata.uid, dict[str, Secret | None]()
        for name in job.spec.pull_secrets:
            key = (job.metadata.namespace, name)
            if uid in self._seen_for.get(key, ()):
                found[name] = self._known[key]
            else:
                self._waiting.setdefault(key, set()).add(uid)
                self._asked[key] = None
                self._wake.set()
        return found

    async def run(self) -> None:
        """Read requested secrets at once and those of running jobs periodically, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._answer())
            group.create_task(self._refresh())

    async def _answer(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._asked:
                await self._look(next(iter(self._asked)))

    async def _refresh(self) -> None:
        while True:
            await self._clock.sleep(LOOK_SECONDS)
            wanted = self._wanted()
            self._forget(wanted)
            for key in sorted(wanted):
                await self._look(key)

    def _forget(self, wanted: Mapping[Key, set[str]]) -> None:
        for key in self._known.keys() - wanted.keys():
            del self._known[key], self._seen_for[key]
        for key, uids in self._seen_for.items():
            uids.intersection_update(wanted[key])
        self._waiting = {key: uids & wanted[key] for key, uids in self._waiting.items() if key in wanted}

    async def _look(self, key: Key) -> None:
        self._asked.pop(key, None)
        waiting = set(self._waiting.get(key, ()))  # jobs that ask during this read wait for the next one
        try:
            secret = await self._read(key)
        except (ApiError, Unreachable, msgspec.MsgspecError) as error:
            self._log.warning("cannot read a pull secret", secret="/".join(key), error=str(error))
            return  # the next round reads again
        news = key not in self._known or _version(self._known[key]) != _version(secret)
        self._known[key] = secret
        self._seen_for.setdefault(key, set()).update(waiting)
        self._waiting[key] = self._waiting.get(key, set()) - waiting
        if news or waiting:
            self._changed(key)

    async def _read(self, key: Key) -> Secret | None:
        found = await found_or_none(self._get(SECRET, *key))
        return None if found is None else self._decode(found)


def _version(secret: Secret | None) -> tuple[str, str]:
    return ("", "") if secret is None else (secret.metadata.uid, secret.metadata.resource_version)
