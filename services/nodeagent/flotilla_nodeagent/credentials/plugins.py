"""The kubelet credential plugins of the node, which return logins for an image and how long to cache them (cri.md §11).

The kubelet's configuration is read once, at the start, as in the kubelet. A plugin gets few variables of the agent's
own environment: PATH, HOME, proxies, certificate authorities. The configuration may add others. Requests to a plugin
are sent one at a time: when twenty images of a registry are pulled at once, the first answer mostly serves all. A
plugin that has timed out is skipped for a while, or all pulls behind it would wait as long.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
import structlog

from flotilla_common.clock import Clock
from flotilla_common.settings import readers
from flotilla_nodeagent import metrics
from flotilla_nodeagent.credentials import trust
from flotilla_nodeagent.credentials.keyring import Entry, Keyring, matches
from flotilla_nodeagent.credentials.program import ProgramFailed, run
from flotilla_nodeagent.credentials.providers import BadConfig, Provider, parse
from flotilla_nodeagent.cri.types import Login

ANSWER_SECONDS = 60.0
"""Timeout of an answer, as in the kubelet (cri.md §11)."""

SILENCE_SECONDS = 30.0
"""Time for which a plugin that has timed out is skipped."""

ANSWERS = 1000
"""Limit of cached answers; a NodeImage has up to 256 images."""

CONFIG_LIMIT = 1 << 20
"""Size limit of the configuration in bytes, that of a ConfigMap."""

_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")

PASSED_ON = frozenset(
    {"PATH", "HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", *_PROXIES, *(name.lower() for name in _PROXIES)}
)
"""Variables of the agent that a plugin gets."""


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
        self._env = {**env, **{variable.name: variable.value for variable in provider.env or []}}
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


Report = Callable[[str], None]


class Plugins:
    """The logins of the plugins. They form one keyring; earlier plugins come first within a key."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self._plugins = plugins

    async def logins(self, repository: str) -> list[Login]:
        """Return the logins that match the full repository, in the order in which to try them."""
        lists = await asyncio.gather(*(plugin.entries(repository) for plugin in self._plugins))
        return Keyring(entry for entries in lists for entry in entries).logins(repository)


def load(file: Path, folder: Path, clock: Clock, env: Mapping[str, str], report: Report) -> Plugins:
    """Return the plugins in the folder that the file lists, none without the file; report and log a bad file."""
    log = structlog.get_logger(part="credential plugins", file=str(file))
    try:
        providers = parse(trust.read(file, CONFIG_LIMIT))
    except (FileNotFoundError, NotADirectoryError):
        return Plugins()
    except (OSError, trust.Untrusted, BadConfig) as error:
        log.warning("credential plugins not used", why=str(error))
        report(f"plugins not used: {error}")
        return Plugins()
    usable = [provider for provider in providers if _usable(provider, folder, log)]
    report(f"plugins {', '.join(provider.name for provider in usable) or 'none'}")
    passed = {name: value for name, value in env.items() if name in PASSED_ON}
    return Plugins([Plugin(provider, folder, clock, passed) for provider in usable])


def _usable(provider: Provider, folder: Path, log: structlog.stdlib.BoundLogger) -> bool:
    """Report whether the plugin can be used. A missing program is only logged: it may be installed later."""
    if provider.needs_pod:
        log.warning("plugin not used: it needs a pod's service account", plugin=provider.name)
        return False
    try:
        trust.program(folder / provider.name)
    except (OSError, trust.Untrusted) as error:
        log.warning("plugin cannot be run now", plugin=provider.name, why=str(error))
    return True
