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
from flotilla_common.control.reads import Get, Reads
from flotilla_common.kube.interface import ApiError, Unreachable

REFRESH_SECONDS = 5.0
"""Interval of reading a secret again: a change of the source reaches the copy within this time."""


class SourceSecrets:
    """A cache of the secrets that jobs name."""

    def __init__(
        self,
        *,
        get: Get,
        clock: Clock,
        requeue: Callable[[str, str], None],
        wanted: Callable[[], Mapping[Key, set[str]]],
        changed: Callable[[Key], object],
    ) -> None:
        """Store the accessors.

        `get` reads an object; `requeue` plans a job for which a secret was read; `wanted` returns the secrets of
        running jobs, each with the jobs' uids; `changed` is called when a secret has changed.
        """
        self._get = get
        self._clock = clock
        self._wanted = wanted
        self._changed = changed
        self._reads: Reads[Key, None] = Reads(self._read, clock, requeue)
        self._known: dict[Key, Secret | None] = {}
        self._seen_for: dict[Key, set[str]] = {}  # the jobs that had asked before the last read
        self._waiting: dict[Key, set[str]] = {}  # the jobs that have asked since
        self._decode = msgspec.json.Decoder(Secret).decode
        self._log = structlog.get_logger()

    def of(self, job: ImagePullJob) -> Mapping[str, Secret | None]:
        """Return the job's pull secrets by name, None for one that does not exist.

        A secret that was not read for this job is missing, and is read soon.
        """
        uid, secrets = job.metadata.uid, dict[str, Secret | None]()
        for name in job.spec.pull_secrets:
            key = (job.metadata.namespace, name)
            if uid in self._seen_for.get(key, ()):
                secrets[name] = self._known[key]
            else:
                self._waiting.setdefault(key, set()).add(uid)
                self._reads.ask(job.metadata.key, key)
        return secrets

    async def run(self) -> None:
        """Read requested secrets at once and those of running jobs periodically, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reads.run())
            group.create_task(self._refresh())

    async def _refresh(self) -> None:
        while True:
            await self._clock.sleep(REFRESH_SECONDS)
            wanted = self._wanted()
            self._forget(wanted)
            for key in sorted(wanted):
                try:
                    await self._update(key)
                except (ApiError, Unreachable, msgspec.MsgspecError) as error:  # the next round reads again
                    self._log.warning("cannot read a pull secret", secret="/".join(key), error=str(error))

    def _forget(self, wanted: Mapping[Key, set[str]]) -> None:
        for key in self._known.keys() - wanted.keys():
            del self._known[key], self._seen_for[key]
        for key, uids in self._seen_for.items():
            uids.intersection_update(wanted[key])
        self._waiting = {key: uids & wanted[key] for key, uids in self._waiting.items() if key in wanted}

    async def _read(self, key: Key) -> None:
        if self._waiting.get(key):  # else the jobs have ended meanwhile
            await self._update(key)

    async def _update(self, key: Key) -> None:
        """Read the secret. Raises ApiError, Unreachable, MsgspecError."""
        waiting = set(self._waiting.get(key, ()))  # jobs that ask during this read wait for the next one
        body = await found_or_none(self._get(SECRET, *key))
        secret = None if body is None else self._decode(body)
        news = key in self._known and _version(self._known[key]) != _version(secret)
        self._known[key] = secret
        self._seen_for.setdefault(key, set()).update(waiting)
        self._waiting[key] = self._waiting.get(key, set()) - waiting
        if news:
            self._changed(key)


def _version(secret: Secret | None) -> tuple[str, str]:
    return ("", "") if secret is None else (secret.metadata.uid, secret.metadata.resource_version)
