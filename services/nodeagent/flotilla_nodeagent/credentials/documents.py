"""Docker's documents with logins: config.json and .dockercfg, from pull secrets and from files (cri.md §11).

Only a document's map of keys to entries counts; credsStore, credHelpers and HttpHeaders have no effect, as in the
kubelet. One bad entry invalidates the whole document. Errors quote nothing of the content.
"""

import base64
import binascii
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import structlog

from flotilla_common.node.reports import PullSecret
from flotilla_nodeagent.credentials import trust
from flotilla_nodeagent.credentials.keyring import Entry, Keyring
from flotilla_nodeagent.cri.types import Login

CONFIG_JSON, CONFIG = "kubernetes.io/dockerconfigjson", "kubernetes.io/dockercfg"


class BadDocument(Exception):
    """A document cannot be read; the text gives the reason."""


class BadSecret(Exception):
    """A pull secret cannot be read: the attempt fails with this text."""


class _Entry(msgspec.Struct):
    username: str | None = None
    password: str | None = None
    auth: str | None = None


class _Config(msgspec.Struct):
    auths: dict[str, _Entry] | None = None


def of_config_json(text: bytes) -> list[Entry]:
    """Return the entries of a config.json. Raises BadDocument when it cannot be read."""
    try:
        return _logins(msgspec.json.decode(text, type=_Config).auths or {})
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDocument(str(error)) from error


def of_dockercfg(text: bytes) -> list[Entry]:
    """Return the entries of a .dockercfg. Raises BadDocument when it cannot be read."""
    try:
        return _logins(msgspec.json.decode(text, type=dict[str, _Entry]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadDocument(str(error)) from error


def of_secret(secret: PullSecret) -> list[Entry]:
    """Return the entries of a secret, [] if it is of an unknown type. Raises BadSecret when they cannot be read."""
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


LIMIT = 1 << 20
"""Size limit of a document in bytes, that of a Secret."""

Read = Callable[[bytes], list[Entry]]


class DockerFiles:
    """The logins of the node's docker config files, which apply to all its images.

    The first place with a readable document is used: config.json everywhere before any .dockercfg. Places in the home
    are left out if there is no home. The document is read at each pull, so a change takes effect at once.
    """

    def __init__(self, kubelet_root: Path, working: Path, home: Path | None) -> None:
        homes = [] if home is None else [home]
        root = Path("/")
        new = (kubelet_root, working, *(folder / ".docker" for folder in homes), root / ".docker")
        old = (kubelet_root, working, *homes, root)
        self._places = list(_places(new, "config.json", of_config_json)) + list(
            _places(old, ".dockercfg", of_dockercfg)
        )
        self._log = structlog.get_logger(part="docker config")
        self._logged: dict[Path, str] = {}

    async def logins(self, repository: str) -> list[Login]:
        """Return the logins that match the full repository, in the order in which to try them."""
        for path, read in self._places:
            try:
                entries = read(trust.read(path, LIMIT))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, trust.Untrusted, BadDocument) as error:
                self._log_once(path, str(error))
            else:
                return Keyring(entries).logins(repository)
        return []

    def _log_once(self, path: Path, why: str) -> None:
        """Log the problem once, not at every pull."""
        if self._logged.get(path) != why:
            self._logged[path] = why
            self._log.warning("docker config file not used", file=str(path), why=why)


def _places(folders: Iterable[Path], name: str, read: Read) -> Iterable[tuple[Path, Read]]:
    return ((path, read) for path in dict.fromkeys(folder / name for folder in folders))
