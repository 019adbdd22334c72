"""The node's docker config files, which apply to all its images (cri.md §11).

The first place that has a readable document is used: config.json everywhere before any .dockercfg. It is read at each
pull, so a change takes effect at once.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import structlog

from flotilla_nodeagent.credentials import trust
from flotilla_nodeagent.credentials.documents import BadDocument, of_config_json, of_dockercfg
from flotilla_nodeagent.credentials.keyring import Entry, Keyring
from flotilla_nodeagent.cri.types import Login

LIMIT = 1 << 20
"""Bytes of a document: as much as a Secret can hold."""

Read = Callable[[bytes], list[Entry]]


class DockerFiles:
    """The logins of the node's docker config files. Without a home the places in it are left out."""

    def __init__(self, kubelet_root: Path, working: Path, home: Path | None) -> None:
        homes = [] if home is None else [home]
        root = Path("/")
        new = (kubelet_root, working, *(one / ".docker" for one in homes), root / ".docker")
        old = (kubelet_root, working, *homes, root)
        self._places = list(_places(new, "config.json", of_config_json)) + list(
            _places(old, ".dockercfg", of_dockercfg)
        )
        self._log = structlog.get_logger(part="docker config")
        self._said: dict[Path, str] = {}

    async def logins(self, repository: str) -> list[Login]:
        """Logins that fit the full repository, in the order in which to try them."""
        for path, read in self._places:
            try:
                entries = read(trust.read(path, LIMIT))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except (OSError, trust.Untrusted, BadDocument) as error:
                self._say(path, str(error))
            else:
                return Keyring(entries).logins(repository)
        return []

    def _say(self, path: Path, why: str) -> None:
        """Log it once, not at every pull."""
        if self._said.get(path) != why:
            self._said[path] = why
            self._log.warning("docker config file not used", file=str(path), why=why)


def _places(folders: Iterable[Path], name: str, read: Read) -> Iterable[tuple[Path, Read]]:
    return ((path, read) for path in dict.fromkeys(folder / name for folder in folders))
