"""Reads and merges kubeconfig files.

For each name the first file wins, as for kubectl. An error names the file and the field, because "invalid
configuration" costs people an afternoon, and contains no credentials. Users with a plugin or an identity provider log
in by `logins.py`; all others need nothing but the files.
"""

import base64
import os
import tempfile
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
import yaml

from flotilla_common.kube.credentials import Access, ConfigError

Members = dict[str, Any]

LISTS = ("clusters", "contexts", "users")
"""The members of a kubeconfig that are lists of named entries."""


class Entry(msgspec.Struct, frozen=True):
    """A part of a kubeconfig: its file, its path for messages, its members. A null or empty part counts as absent."""

    file: str
    where: str
    members: Members

    @classmethod
    def of(cls, file: str, where: str, found: object) -> "Entry":
        """Create an entry. Raises ConfigError unless `found` has members."""
        if not isinstance(found or {}, dict):
            raise ConfigError(f"kubeconfig {file}: {where}: is of type {type(found).__name__}")
        return cls(file, where, cast("Members", found or {}))

    def part(self, name: str) -> "Entry":
        """Return a member that has members of its own."""
        return Entry.of(self.file, f"{self.where}.{name}", self.members.get(name))

    def text(self, name: str) -> str:
        """Return a text member. As for kubectl, text that looks like a number has to be quoted."""
        found = self.members.get(name) or ""
        if not isinstance(found, str):
            raise self.error(name, f"is of type {type(found).__name__}, not text")
        return found

    def error(self, field: str, problem: str) -> ConfigError:
        """Return the error about one field."""
        return ConfigError(f"kubeconfig {self.file}: {self.where}.{field}: {problem}")

    def path(self, name: str) -> str:
        """Return a member that names a file: relative to the kubeconfig's own folder."""
        value = self.text(name)
        return str(Path(self.file).absolute().parent / Path(value).expanduser()) if value else ""

    def pem(self, name: str) -> str:
        """Return certificates or a key, inline or from a file; inline wins, as in kubectl."""
        try:
            if inline := self.text(f"{name}-data"):
                return base64.b64decode(inline, validate=True).decode("latin-1")
            return Path(path).read_text("latin-1") if (path := self.path(name)) else ""
        except ValueError as error:
            raise self.error(f"{name}-data", f"is not base64 ({error})") from error
        except OSError as error:
            raise self.error(name, f"cannot read {error.filename}: {error.strerror}") from error


class Files:
    """The merged files, of a list that colons separate; missing ones are left out."""

    def __init__(self, paths: str) -> None:
        named = [str(Path(path).expanduser()) for path in paths.split(os.pathsep) if path]
        self._documents = {path: _document(path) for path in named if Path(path).exists()}
        if not self._documents:
            raise ConfigError(f"kubeconfig {paths}: cannot be read: No such file or directory")

    def save(self, path: str) -> None:
        """Replace a file atomically with its present content: other services may be reading it."""
        target = Path(path).resolve()
        try:
            with tempfile.NamedTemporaryFile("w", dir=target.parent, delete=False) as file:
                yaml.safe_dump(self._documents[path], file)
            Path(file.name).replace(target)
        except OSError as error:
            raise ConfigError(f"kubeconfig {path}: a new ID token cannot be saved: {error.strerror}") from error

    def context(self, name: str) -> Entry:
        """Return a context by name, or the current one of the first file that has it."""
        files = ", ".join(self._documents)
        wanted = name or next((one for found in self._documents.values() if (one := found.get("current-context"))), "")
        missing = f"there is no {wanted!r}" if wanted else "no current-context is set, and no context was given"
        return self._entry("context", wanted, ConfigError(f"kubeconfig {files}: contexts: {missing}"))

    def part_of(self, context: Entry, kind: str) -> Entry:
        """Return the cluster or user of a context."""
        name = context.text(kind)
        return self._entry(kind, name, context.error(kind, f"there is no {name!r}" if name else "is not set"))

    def _entry(self, kind: str, name: str, otherwise: ConfigError) -> Entry:
        for file, document in self._documents.items():
            for found in document[f"{kind}s"]:
                if found["name"] == name:
                    return Entry.of(file, f"{kind}s[{name}]", found.get(kind))
        raise otherwise


def _named(entries: list[Members] | None) -> list[Members]:
    """Return the entries, whose names have been looked up. Raises KeyError or TypeError if one has none."""
    return [{**entry, "name": entry["name"]} for entry in entries or []]


def _document(path: str) -> Members:
    """Read one file, and check its lists of names."""
    try:
        with Path(path).open(encoding="utf-8") as file:  # an error about a string or bytes would quote its text
            document = cast("Members", yaml.safe_load(file))
    except OSError as error:
        raise ConfigError(f"kubeconfig {path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"kubeconfig {path}: is not YAML: {' '.join(str(error).split())}") from error
    try:
        lists = {item: _named(document.get(item)) for item in LISTS}
    except (AttributeError, KeyError, TypeError) as error:
        raise ConfigError(f"kubeconfig {path}: is empty or not a kubeconfig") from error
    return {**document, **lists}


class Context(msgspec.Struct, frozen=True):
    """One context of merged files: its cluster and user, and the access that they give without a login."""

    files: Files
    access: Access
    cluster: Entry
    user: Entry

    @property
    def needs_login(self) -> bool:
        """Report whether a plugin or an identity provider has to prove who the user is."""
        return bool(self.user.part("exec").members or self.user.part("auth-provider").members)


def read(files: str, context: str) -> Context:
    """Read a context (empty: the current one) of kubeconfig files, which colons separate. Raises ConfigError."""
    found = Files(files)
    at = found.context(context)
    cluster = found.part_of(at, "cluster")
    user = found.part_of(at, "user") if at.text("user") else Entry(at.file, at.where, {})
    if not cluster.text("server"):
        raise cluster.error("server", "is not set")
    for name in ("server", "proxy-url"):
        url = cluster.text(name)
        if url and urlsplit(url).scheme not in ("http", "https"):
            raise cluster.error(name, f"{url!r} is not an http or https URL")
    certificate, key = user.pem("client-certificate"), user.pem("client-key")
    if certificate and not key:
        raise user.error("client-key", "is not set, but client-certificate is")
    basic = base64.b64encode(f"{user.text('username')}:{user.text('password')}".encode()).decode()
    bearer = user.text("token").strip()
    access = Access(
        server=cluster.text("server").rstrip("/"),
        namespace=at.text("namespace") or "default",
        proxy=cluster.text("proxy-url"),
        tls_server_name=cluster.text("tls-server-name"),
        insecure=cluster.members.get("insecure-skip-tls-verify") is True,
        authority=cluster.pem("certificate-authority"),
        certificate=certificate,
        key=key,
        headers=_impersonation(user),
        authorization=f"Bearer {bearer}" if bearer else f"Basic {basic}" if user.text("username") else "",
        token_file=user.path("tokenFile"),
    )
    return Context(found, access, cluster, user)


def _impersonation(user: Entry) -> dict[str, str]:
    groups: list[str] = user.members.get("as-groups") or []
    if len(groups) > 1:
        raise user.error("as-groups", "more than one group is not supported")
    given = {"User": user.text("as"), "Uid": user.text("as-uid"), "Group": "".join(groups)}
    return {f"Impersonate-{name}": value for name, value in given.items() if value}
