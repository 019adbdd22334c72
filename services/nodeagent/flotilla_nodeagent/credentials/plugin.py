"""A kubelet credential plugin, which returns logins for an image and how long to cache them (cri.md §11).

Requests are sent one at a time: when twenty images of a registry are pulled at once, the first answer mostly serves
all. A plugin that has timed out is skipped for a while, or all pulls behind it would wait as long.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec
import structlog

from flotilla_common.clock import Clock
from flotilla_common.settings import readers
from flotilla_nodeagent import metrics
from flotilla_nodeagent.credentials import trust
from flotilla_nodeagent.credentials.keyring import Entry, matches
from flotilla_nodeagent.credentials.program import ProgramFailed, run
from flotilla_nodeagent.credentials.providers import Provider
from flotilla_nodeagent.cri.types import Login

ANSWER_SECONDS = 60.0
"""Timeout of an answer, as in the kubelet (cri.md §11)."""

SILENCE_SECONDS = 30.0
"""Time for which a plugin that has timed out is skipped."""

ANSWERS = 1000
"""Limit of cached answers; a NodeImage has up to 256 images."""


class _Auth(msgspec.Struct, frozen=True):
    username: str = ""
    password: str = ""


class _Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str
    kind: str
    cache_key_type: str
    cache_duration: str | None = None
    auth: dict[str, _Auth] | None = None


class _Kept(msgspec.Struct, frozen=True):
    entries: list[Entry]
    until: float


_Key = tuple[str, str]  # Image, Registry or Global, and its name


class Plugin:
    """One provider of the configuration."""

    def __init__(self, provider: Provider, folder: Path, clock: Clock, env: Mapping[str, str]) -> None:
        self._provider = provider
        self._program = folder / provider.name
        self._clock = clock
        self._env = {**env, **{one.name: one.value for one in provider.env or []}}
        self._kept: dict[_Key, _Kept] = {}
        self._silent_until = 0.0
        self._lock = asyncio.Lock()
        self._log = structlog.get_logger(part="credential plugin", plugin=provider.name)

    async def entries(self, repository: str) -> list[Entry]:
        """Return its logins for the full repository, [] if it does not match or has no usable answer."""
        if not any(matches(pattern, repository) for pattern in self._provider.match_images):
            return []
        async with self._lock:
            kept = self._find(repository)
            if kept is not None:
                return kept
            if self._clock.monotonic() < self._silent_until:
                return []
            return await self._ask(repository)

    def _find(self, repository: str) -> list[Entry] | None:
        now = self._clock.monotonic()
        self._kept = {key: kept for key, kept in self._kept.items() if kept.until > now}
        for key in _keys(repository).items():
            if key in self._kept:
                return self._kept[key].entries
        return None

    async def _ask(self, repository: str) -> list[Entry]:
        try:
            answer = self._read(await self._run(repository))
            seconds = self._seconds(answer)
        except ProgramFailed as error:
            metrics.PLUGIN_CALLS.labels(self._provider.name, "silent" if error.silent else "failed").inc()
            self._log.warning("no credentials from the plugin", image=repository, why=str(error))
            if error.silent:
                self._silent_until = self._clock.monotonic() + SILENCE_SECONDS
            return []
        metrics.PLUGIN_CALLS.labels(self._provider.name, "answered").inc()
        entries = [(key, Login(auth.username, auth.password)) for key, auth in (answer.auth or {}).items()]
        if seconds > 0 and len(self._kept) < ANSWERS:
            key = answer.cache_key_type, _keys(repository)[answer.cache_key_type]
            self._kept[key] = _Kept(entries, self._clock.monotonic() + seconds)
        return entries

    async def _run(self, repository: str) -> bytes:
        question = {
            "apiVersion": self._provider.api_version,
            "kind": "CredentialProviderRequest",
            "image": repository,
        }
        try:
            program = trust.program(self._program)
        except (OSError, trust.Untrusted) as error:
            raise ProgramFailed(str(error)) from error
        return await run(program, self._provider.args or [], self._env, msgspec.json.encode(question), ANSWER_SECONDS)

    def _read(self, text: bytes) -> _Answer:
        """Parse the answer. Errors give the position, and nothing of its content."""
        try:
            answer = msgspec.json.decode(text, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ProgramFailed(f"its answer cannot be read: {error}") from error
        if answer.kind != "CredentialProviderResponse" or answer.api_version != self._provider.api_version:
            raise ProgramFailed(f"its answer is not a CredentialProviderResponse of {self._provider.api_version}")
        if answer.cache_key_type not in _keys(""):
            raise ProgramFailed("the cacheKeyType of its answer is not Image, Registry or Global")
        return answer

    def _seconds(self, answer: _Answer) -> float:
        if answer.cache_duration is None:
            return self._provider.cache_seconds
        try:
            return readers.duration(answer.cache_duration)
        except ValueError as error:
            raise ProgramFailed("the cacheDuration of its answer is invalid") from error


def _keys(repository: str) -> dict[str, str]:
    """Return the cache key of the repository by cacheKeyType."""
    return {"Image": repository, "Registry": repository.partition("/")[0], "Global": ""}
