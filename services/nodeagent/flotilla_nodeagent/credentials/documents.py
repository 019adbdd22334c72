"""Docker's documents with logins: config.json and .dockercfg, from pull secrets and from files (cri.md §11).

Of a document only the map of keys to entries counts; credsStore, credHelpers and HttpHeaders have no effect, as for the
kubelet. One bad entry makes the whole document bad. What goes wrong is told without a word of the content.
"""

import base64
import binascii

import msgspec

from flotilla_common.node.reports import PullSecret
from flotilla_nodeagent.credentials.keyring import Entry
from flotilla_nodeagent.cri.types import Login

CONFIG_JSON, CONFIG = "kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"


class BadDocument(Exception):
    """A document that cannot be read; the text says why."""


class BadSecret(Exception):
    """A pull secret that cannot be read: the attempt fails with this text."""


class _Entry(msgspec.Struct):
    username: str | None = None
    password: str | None = None
    auth: str | None = None


class _Config(msgspec.Struct):
    auths: dict[str, _Entry] | None = None


def of_config_json(text: bytes) -> list[Entry]:
    """The entries of a config.json. Raises BadDocument when it cannot be read."""
    try:
        return _logins(msgspec.json.decode(text, type=_Config).auths or {})
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDocument(str(error)) from error


def of_dockercfg(text: bytes) -> list[Entry]:
    """The entries of a .dockercfg. Raises BadDocument when it cannot be read."""
    try:
        return _logins(msgspec.json.decode(text, type=dict[str, _Entry]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDocument(str(error)) from error


def of_secret(secret: PullSecret) -> list[Entry]:
    """The entries of a secret of a known type; none of another type. Raises BadSecret when they cannot be read."""
    try:
        if secret.type == CONFIG_JSON and ".dockerconfigjson" in secret.data:
            return of_config_json(base64.b64decode(secret.data[".dockerconfigjson"], validate=True))
        if secret.type == CONFIG and ".dockercfg" in secret.data:
            return of_dockercfg(base64.b64decode(secret.data[".dockercfg"], validate=True))
    except (BadDocument, binascii.Error) as error:
        raise BadSecret(f"pull secret {secret.namespace}/{secret.name} cannot be read: {error}") from error
    return []


def _logins(entries: dict[str, _Entry]) -> list[Entry]:
    return [(key, _login(entry)) for key, entry in entries.items()]


def _login(entry: _Entry) -> Login:
    if not entry.auth:
        return Login(entry.username or "", entry.password or "")
    try:
        padded = entry.auth + "=" * (-len(entry.auth) % 4)
        username, _, password = base64.b64decode(padded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise BadDocument("it has a bad auth entry") from error
    return Login(username, password)
