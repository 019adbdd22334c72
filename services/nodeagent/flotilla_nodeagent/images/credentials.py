"""Which user names and passwords fit an image: the rules of the kubelet (cri.md §11).

All secrets form one keyring. Keys of its entries are hosts with an optional port and path; a `*` stands for a part of
one label of the host, and a path is a plain prefix. Longer keys are tried first.
"""

import base64
import binascii
import fnmatch
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

import msgspec

from flotilla_common.node.reports import PullSecret
from flotilla_nodeagent.cri.types import Login

CONFIG_JSON, CONFIG = "kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"
HUB = "docker.io"
_HUB_KEY = "index.docker.io"
_WILD_ONLY = re.compile(r"[?\[\]]")


class BadSecret(Exception):
    """A pull secret that cannot be read: the attempt fails with this text."""


class _Entry(msgspec.Struct):
    username: str | None = None
    password: str | None = None
    auth: str | None = None


class _Config(msgspec.Struct):
    auths: dict[str, _Entry] | None = None


class Keyring:
    """The entries of all usable secrets."""

    def __init__(self, secrets: Iterable[PullSecret] = ()) -> None:
        self._entries: dict[str, list[Login]] = {}
        for secret in secrets:
            for key, entry in _entries(secret).items():
                parsed = _key(key)
                if parsed is not None:
                    self._entries.setdefault(parsed, []).append(_login(entry, secret))

    def logins(self, repository: str) -> list[Login]:
        """What fits the full repository (`docker.io/library/nginx`), in the order in which to try it."""
        keys = sorted((key for key in self._entries if matches(key, repository)), reverse=True)
        if not keys and repository.startswith(HUB + "/"):
            keys = [key for key in self._entries if key in (_HUB_KEY, f"{_HUB_KEY}/")]
        found = [login for key in keys for login in self._entries[key]]
        return list(dict.fromkeys(found))


def matches(key: str, repository: str) -> bool:
    """Whether the entry with this (parsed) key is for the repository."""
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
    """host[:port][/path] of an entry's key: without scheme, and without the version that old registries had."""
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


def _entries(secret: PullSecret) -> dict[str, _Entry]:
    """The entries of a secret of a known type; of another type none."""
    try:
        if secret.type == CONFIG_JSON and ".dockerconfigjson" in secret.data:
            return msgspec.json.decode(_text(secret, ".dockerconfigjson"), type=_Config).auths or {}
        if secret.type == CONFIG and ".dockercfg" in secret.data:
            return msgspec.json.decode(_text(secret, ".dockercfg"), type=dict[str, _Entry])
    except (msgspec.DecodeError, binascii.Error, UnicodeDecodeError) as error:
        raise BadSecret(f"pull secret {secret.namespace}/{secret.name} cannot be read: {error}") from error
    return {}


def _text(secret: PullSecret, key: str) -> bytes:
    return base64.b64decode(secret.data[key], validate=True)


def _login(entry: _Entry, secret: PullSecret) -> Login:
    if not entry.auth:
        return Login(entry.username or "", entry.password or "")
    try:
        padded = entry.auth + "=" * (-len(entry.auth) % 4)
        username, _, password = base64.b64decode(padded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise BadSecret(f"pull secret {secret.namespace}/{secret.name} has a bad auth entry") from error
    return Login(username, password)
