"""The results on the node's own disk, so that a restart of the agent alone changes none of them.

The NodePodProbe's status does not contain the container and the handler of a result. With both stored, an agent that
starts again keeps a result only for the same instance of the container and the same handler. The file is written before
a report. It need not survive a power cut, after which no container is the same, so it is not flushed.
"""

from pathlib import Path

import msgspec
import structlog

from flotilla_nodeagent.probes.definitions import Key
from flotilla_nodeagent.probes.states import Result


class StoredResult(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The result of one probe, with its container and handler."""

    uid: str
    name: str
    container_id: str
    handler: str  # its digest
    result: Result


_decode = msgspec.json.Decoder(list[StoredResult]).decode
FILE = "results.json"


class Results:
    """All results, in one file. Without a writable folder nothing is kept, which is logged once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = structlog.get_logger(folder=str(folder))
        self._durable = True
        self._written: list[StoredResult] | None = None

    def load(self) -> dict[Key, StoredResult]:
        """Return the results of an earlier process. An unreadable file counts as missing."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            found = _decode((self._folder / FILE).read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            self._log.warning("unreadable results of probes", error=str(error))
            return {}
        return {(one.uid, one.name): one for one in found}

    def keep(self, results: list[StoredResult]) -> None:
        """Write all results, if they differ from the last written ones."""
        if results == self._written or not self._durable:
            return
        new = self._folder / f"{FILE}.new"
        try:
            new.write_bytes(msgspec.json.encode(results))
            new.replace(self._folder / FILE)
        except OSError as error:
            self._log.warning("results of probes cannot be kept; a restart may reset some", error=str(error))
            self._durable = False
        self._written = results
