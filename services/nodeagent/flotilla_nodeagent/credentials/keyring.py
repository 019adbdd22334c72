"""Matches logins with images by the rules of the kubelet (cri.md §11).

Keys of entries are hosts with an optional port and path; a `*` matches a part of one label of the host, and a path is a
plain prefix. Longer keys are tried first. All secrets form one keyring, all plugins another one.
"""

import fnmatch
import re
from collections.abc import Iterable
from typing import Protocol
from urllib.parse import urlsplit

from flotilla_nodeagent.cri.types import Login

HUB = "docker.io"
_HUB_KEY = "index.docker.io"
_WILD_ONLY = re.compile(r"[?\[\]]")

Entry = tuple[str, Login]
"""A key as written in a document, and the login for images that it matches."""


class LoginSource(Protocol):
    """A source of logins for all images of the node."""

    async def logins(self, repository: str) -> list[Login]:
        """Return the logins that match the full repository, in the order of trial. Log errors, never raise them."""
        ...


class Keyring:
    """Entries that belong together."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: dict[str, list[Login]] = {}
        for key, login in entries:
            parsed = _key(key)
            if parsed is not None:
                self._entries.setdefault(parsed, []).append(login)

    def logins(self, repository: str) -> list[Login]:
        """Return the logins that match the full repository (`docker.io/library/nginx`), in the order of trial."""
        keys = sorted((key for key in self._entries if matches(key, repository)), reverse=True)
        if not keys and repository.startswith(HUB + "/"):
            keys = [key for key in self._entries if key in (_HUB_KEY, f"{_HUB_KEY}/")]
        logins = [login for key in keys for login in self._entries[key]]
        return list(dict.fromkeys(logins))


def matches(key: str, repository: str) -> bool:
    """Report whether the entry with this (parsed) key is for the repository."""
    key_host, _, key_path = key.partition("/")
    host, _, path = repository.partition("/")
    key_name, _, key_port = key_host.partition(":")
    name, _, port = host.partition(":")
    if key_port != port or not path.startswith(key_path):
        return False
    wanted, given = key_name.split("."), name.split(".")
    return len(wanted) == len(given) and all(map(_label_matches, wanted, given))


def _label_matches(wanted: str, given: str) -> bool:
    if _WILD_ONLY.search(wanted):
        return False  # only the star is a wildcard
    return fnmatch.fnmatchcase(given, wanted)


def _key(text: str) -> str | None:
    """Return host[:port][/path] of an entry's key, without scheme and without the version of old registries."""
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
    except ValueError:
        return None
    path = parts.path
    if path in ("/v1/", "/v2/"):
        path = "/"
    for version in ("/v1/", "/v2/"):
        path = path.removeprefix(version) if path.startswith(version) and path != version else path
    return f"{parts.netloc}/{path.lstrip('/')}" if path.lstrip("/") else parts.netloc
