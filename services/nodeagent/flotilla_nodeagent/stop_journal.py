"""The stops in progress, on the node's own disk, so that a restart of the agent loses and repeats nothing.

One small file per stop, written before the first step and after each one. It records what the runtime cannot: that a
hook has run, when the grace period began, and on whose behalf a container was stopped. A file outlives the agent; the
caller of the stop removes it when its outcome is reported.
"""

import os
import re
from datetime import datetime
from pathlib import Path

import msgspec
import structlog


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The progress of one stop."""

    container_id: str
    begun: datetime
    hook_done: bool = False
    stopped: bool = False


_decode = msgspec.json.Decoder(Entry).decode
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


class Journal:
    """Entries by cause (the uid of the object that requires the stop) and container name.

    Without a writable folder they are kept in memory only, which is logged once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: dict[tuple[str, str], Entry] = {}
        self._log = structlog.get_logger(folder=str(folder))
        self._durable = True

    def load(self) -> None:
        """Read the entries of an earlier process. An unreadable file counts as missing."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            files = sorted(self._folder.glob("*.json"))
        except OSError as error:
            self._log_failure(error)
            return
        for file in files:
            try:
                cause, _, container = file.stem.partition("+")
                self._entries[cause, container] = _decode(file.read_bytes())
            except (OSError, msgspec.DecodeError) as error:
                self._log.warning("unreadable journal entry", file=file.name, error=str(error))

    def get(self, cause: str, container: str) -> Entry | None:
        """Return the stop if one was started, or None."""
        return self._entries.get((cause, container))

    def causes(self) -> set[str]:
        """Return the causes of all stops."""
        return {cause for cause, _ in self._entries}

    def put(self, cause: str, container: str, entry: Entry) -> None:
        """Store the entry; it is on disk when this returns."""
        self._entries[cause, container] = entry
        if not self._durable:
            return
        file = self._file(cause, container)
        try:
            with file.with_suffix(".new").open("wb") as new:
                new.write(msgspec.json.encode(entry))
                new.flush()
                os.fsync(new.fileno())
            file.with_suffix(".new").replace(file)
        except OSError as error:
            self._log_failure(error)

    def forget(self, cause: str) -> None:
        """Drop the stops of a cause: their outcome is reported, or is no longer needed."""
        for key in [key for key in self._entries if key[0] == cause]:
            del self._entries[key]
            try:
                self._file(*key).unlink(missing_ok=True)
            except OSError as error:
                self._log_failure(error)

    def _file(self, cause: str, container: str) -> Path:
        return self._folder / f"{_UNSAFE.sub('_', cause)}+{_UNSAFE.sub('_', container)}.json"

    def _log_failure(self, error: OSError) -> None:
        if self._durable:
            self._log.warning("the journal cannot be written; a restart may repeat a preStop hook", error=str(error))
        self._durable = False
