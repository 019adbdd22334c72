"""Lists one resource and then watches it through kubectl, for as long as a test runs.

An apiserver ends the watches of a kind whose CRD changes, some time after the change, and answers one that starts
before it with 410. The reflector resumes from the last version that it saw, or lists again, as clients do.
"""

import json
import subprocess
import threading
from typing import Protocol

from flotilla_common.api.resources import Resource
from tests.testkit.documents import Json


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

    def __init__(self, kubectl: list[str], resource: Resource, sink: Sink, namespace: str = "") -> None:
        self._get = [*kubectl, "get", "--raw"]
        self._resource = resource
        self._path = resource.path(namespace)
        self._sink = sink
        self._thread = threading.Thread(target=self._run)
        self._lock = threading.Lock()
        self._stopped = False
        self._watch: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """List, and watch from then on."""
        self._thread.start()

    def stop(self) -> None:
        """End, and leave no process behind."""
        with self._lock:
            self._stopped = True
            if self._watch:
                self._watch.kill()
        self._thread.join()

    def _run(self) -> None:
        try:
            version = ""
            while not self._stopped:
                version = self._follow(version or self._list())
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait, not to this thread
            if not self._stopped:
                self._sink.failed(f"{self._resource.plural}: {error!r}")

    def _list(self) -> str:
        """List all objects; return their version."""
        command = [*self._get, self._path]
        reply = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if reply.returncode:
            raise ConnectionError(reply.stderr)
        answer = json.loads(reply.stdout)
        self._sink.listed(self._resource.kind, [self._typed(item) for item in answer["items"]])
        return answer["metadata"]["resourceVersion"]

    def _typed(self, item: Json) -> Json:
        """Return the item with its kind and version, which items of built-in kinds lack in a list."""
        return {"kind": self._resource.kind, "apiVersion": self._resource.api_version, **item}

    def _follow(self, version: str) -> str:
        """Watch from a version until the watch ends; the last version, or "" when only a list helps."""
        query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
        command = [*self._get, self._path + query]
        with self._lock:
            if self._stopped:
                return version
            self._watch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        with self._watch as watch:
            for line in watch.stdout or ():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    watch.kill()
                    return ""
                version = event["object"]["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    self._sink.happened(event["type"], event["object"])
        return "" if watch.returncode else version
