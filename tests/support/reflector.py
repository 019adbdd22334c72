"""Lists one resource and then watches it, for as long as a test runs.

An apiserver ends the watches of a kind whose CRD changes, some time after the change, and answers one that starts
before it with 410. The reflector resumes from the last version that it saw, or lists again, as clients do.
"""

import http.client
import threading
import time
from collections.abc import Iterator
from typing import Protocol

import msgspec

from flotilla_common.api.resources import Resource
from tests.support.rest import PATIENCE, RETRY_SECONDS, Refused
from tests.testkit.documents import Json


class Events(Protocol):
    """The events of one watch."""

    def __iter__(self) -> Iterator[Json]: ...

    def stop(self) -> None:
        """End the watch from another thread."""
        ...


class Source(Protocol):
    """The apiserver, as `rest.Rest` reaches it."""

    def send(self, method: str, path: str) -> Json:
        """Return the response to one request."""
        ...

    def follow(self, path: str) -> Events:
        """Return the events of a watch."""
        ...


class Sink(Protocol):
    """The receiver of the reflector's events, called from a thread of the reflector."""

    def listed(self, kind: str, documents: list[Json]) -> None:
        """Receive all objects at a moment."""
        ...

    def happened(self, change: str, document: Json) -> None:
        """Receive ADDED, MODIFIED or DELETED."""
        ...

    def failed(self, reason: str) -> None:
        """Receive the final failure."""
        ...


class Reflector:
    """The objects of one resource in one namespace, or in all."""

    def __init__(self, source: Source, resource: Resource, sink: Sink, namespace: str = "") -> None:
        self._source = source
        self._resource = resource
        self._path = resource.path(namespace)
        self._sink = sink
        self._thread = threading.Thread(target=self._run)
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._watch: Events | None = None

    def start(self) -> None:
        """List, and watch from then on."""
        self._thread.start()

    def stop(self) -> None:
        """End, and leave no thread behind."""
        with self._lock:
            self._stopped.set()
            if self._watch is not None:
                self._watch.stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            version = ""
            while not self._stopped.is_set():
                version = self._follow(version or self._list())
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait, not to this thread
            if not self._stopped.is_set():
                self._sink.failed(f"{self._resource.plural}: {error!r}")

    def _list(self) -> str:
        """List all objects; return their version."""
        answer = self._answer()
        self._sink.listed(self._resource.kind, [self._typed(item) for item in answer["items"]])
        return answer["metadata"]["resourceVersion"]

    def _answer(self) -> Json:
        """Return a list. An apiserver answers 429 while it sets up the storage of a kind whose CRD has just changed."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return self._source.send("GET", self._path)
            except Refused as refusal:
                if refusal.status != 429 or self._stopped.is_set() or time.monotonic() > deadline:
                    raise
            self._stopped.wait(RETRY_SECONDS)

    def _typed(self, item: Json) -> Json:
        """Return the item with its kind and version, which items of built-in kinds lack in a list."""
        return {"kind": self._resource.kind, "apiVersion": self._resource.api_version, **item}

    def _follow(self, version: str) -> str:
        """Watch from a version until the watch ends; the last version, or "" when only a list helps."""
        query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
        try:
            watch = self._source.follow(self._path + query)
            with self._lock:
                self._watch = watch
                if self._stopped.is_set():
                    watch.stop()
            for event in watch:
                if event["type"] == "ERROR":
                    return ""
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._sink.happened(event["type"], event["object"])
        except (OSError, http.client.HTTPException, msgspec.DecodeError, Refused):
            return ""  # if the apiserver is away, the list fails
        return version
