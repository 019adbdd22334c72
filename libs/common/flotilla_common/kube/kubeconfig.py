"""Kubeconfig files as values: read, merged as kubectl merges them, and resolved to one context.

Every complaint names the file and the field, because "invalid configuration" costs people an afternoon.
"""

import base64
import binascii
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec


class ConfigError(Exception):
    """The way to the apiserver is not configured, or not readable; the message says which file and which field."""


class _Kebab(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Base of the structures in kubeconfig files. A member that is written as null counts as absent."""


class Cluster(_Kebab, frozen=True):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None


class EnvVar(_Kebab, frozen=True):
    name: str
    value: str = ""


class ExecPlugin(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A credential plugin, as `users[].user.exec` describes it."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(_Kebab, frozen=True):
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    exec: ExecPlugin | None = None
    auth_provider: object = None
    impersonate: str | None = msgspec.field(default=None, name="as")
    impersonate_uid: str | None = msgspec.field(default=None, name="as-uid")
    impersonate_groups: list[str] | None = msgspec.field(default=None, name="as-groups")


class ContextRef(_Kebab, frozen=True):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _NamedCluster(_Kebab, frozen=True):
    name: str
    cluster: Cluster | None = None


class _NamedUser(_Kebab, frozen=True):
    name: str
    user: User | None = None


class _NamedContext(_Kebab, frozen=True):
    name: str
    context: ContextRef | None = None


class _File(_Kebab, frozen=True):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


T = TypeVar("T")


class Entry(msgspec.Struct, frozen=True):
    """Where a value stands: the file, and the path of the field for messages."""

    file: Path
    where: str

    def error(self, field: str, problem: str) -> ConfigError:
        """A complaint about one field."""
        return ConfigError(f"kubeconfig {self.file}: {self.where}.{field}: {problem}")

    def path(self, value: str) -> Path:
        """A file that the kubeconfig names: relative to the kubeconfig's own folder."""
        return self.file.parent / Path(value).expanduser()

    def decode(self, field: str, value: str) -> bytes:
        """A `…-data` member."""
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError) as error:
            raise self.error(field, f"is not base64 ({error})") from error

    def read(self, field: str, value: str) -> bytes:
        """The content of a file that the kubeconfig names."""
        path = self.path(value)
        try:
            return path.read_bytes()
        except OSError as error:
            raise self.error(field, f"cannot read {path}: {error.strerror}") from error


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """One context with its cluster and user, and where each was found."""

    cluster: Cluster
    cluster_entry: Entry
    user: User
    user_entry: Entry
    namespace: str


def read(paths: Sequence[Path], context: str = "") -> Resolved:
    """Read and merge the files and pick a context: `context`, or the current one. Raises ConfigError."""
    files = [(path, _read_file(path)) for path in paths if len(paths) == 1 or path.exists()]
    if not files:
        raise ConfigError(f"kubeconfig: none of these files exists: {os.pathsep.join(map(str, paths))}")
    names = ", ".join(str(path) for path, _ in files)
    wanted = context or next((file.current_context for _, file in files if file.current_context), "")
    if not wanted:
        raise ConfigError(f"kubeconfig {names}: current-context: is not set, and no context was asked for")
    contexts = _first((path, "contexts", one.name, one.context) for path, file in files for one in file.contexts or [])
    found, entry = _pick(contexts, wanted, f"kubeconfig {names}: contexts: no context is named {wanted!r}")
    clusters = _first((path, "clusters", one.name, one.cluster) for path, file in files for one in file.clusters or [])
    users = _first((path, "users", one.name, one.user) for path, file in files for one in file.users or [])
    cluster, cluster_entry = _pick(clusters, found.cluster or "", str(entry.error("cluster", _missing(found.cluster))))
    if found.user:
        user, user_entry = _pick(users, found.user, str(entry.error("user", _missing(found.user))))
    else:
        user, user_entry = User(), entry
    return Resolved(
        cluster=cluster,
        cluster_entry=cluster_entry,
        user=user,
        user_entry=user_entry,
        namespace=found.namespace or "default",
    )


def _missing(name: str | None) -> str:
    return f"there is no {name!r}" if name else "is not set"


def _read_file(path: Path) -> _File:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"kubeconfig {path}: cannot be read: {error.strerror}") from error
    if not data.strip():
        raise ConfigError(f"kubeconfig {path}: is empty")
    try:
        return msgspec.yaml.decode(data, type=_File)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"kubeconfig {path}: {error}") from error


def _first(found: Iterable[tuple[Path, str, str, T | None]]) -> dict[str, tuple[T, Entry]]:
    """By name; of several entries with one name the first counts."""
    result: dict[str, tuple[T, Entry]] = {}
    for path, section, name, value in found:
        if value is not None:
            result.setdefault(name, (value, Entry(path, f"{section}[{name}]")))
    return result


def _pick(found: dict[str, tuple[T, Entry]], name: str, problem: str) -> tuple[T, Entry]:
    if name not in found:
        raise ConfigError(problem)
    return found[name]
