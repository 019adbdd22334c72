"""What clients of a cluster see, in the order in which they see it: running `kubectl get --watch`, recorded.

Scenarios wait on the record instead of polling, and look back through it: that no moment had fewer than five available
pods can only be told by somebody who watched all the time.
"""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple, Self

Json = dict[str, Any]
Key = tuple[str, str, str]  # kind, namespace, name


class Event(NamedTuple):
    """One event of a watch, and when it arrived (seconds, monotonic)."""

    type: str
    object: Json
    at: float


def key(document: Json) -> Key:
    """Where an object stands in the record."""
    meta = document["metadata"]
    return document["kind"], meta.get("namespace", ""), meta["name"]


class Recorder:
    """Watches of some resources in all namespaces; the newest state of every object, and all events."""

    def __init__(self, kubectl: Path, kubeconfig: Path, *resources: str) -> None:
        self.objects: dict[Key, Json] = {}
        self.events: list[Event] = []
        self._changed = threading.Condition()
        options = ["--all-namespaces", "--watch", "--output-watch-events", "--output=json"]
        self._watches = [
            subprocess.Popen(
                [kubectl, "--kubeconfig", kubeconfig, "get", resource, *options],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for resource in resources
        ]
        self._readers = [threading.Thread(target=self._read, args=(watch.stdout,)) for watch in self._watches]

    def __enter__(self) -> Self:
        for reader in self._readers:
            reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for watch in self._watches:
            watch.kill()
            watch.wait()
        for reader in self._readers:
            reader.join()
        for watch in self._watches:
            if watch.stdout:
                watch.stdout.close()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._record(json.loads(line))

    def _record(self, event: Json) -> None:
        document = event["object"]
        with self._changed:
            self.events.append(Event(event["type"], document, time.monotonic()))
            if event["type"] == "DELETED":
                self.objects.pop(key(document), None)
            else:
                self.objects[key(document)] = document
            self._changed.notify_all()

    def until(self, check: Callable[[], bool], seconds: float) -> bool:
        """Wait until the check holds, looking after each event; False when time is up."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not check():
                rest = deadline - time.monotonic()
                if rest <= 0:
                    return False
                self._changed.wait(min(rest, 0.5))  # some checks ask for more than the record
            return True

    def moments(self, kind: str, namespace: str, since: int = 0) -> Iterator[dict[str, Json]]:
        """All objects of a kind in a namespace by name, after each event from `since` on."""
        state: dict[str, Json] = {}
        for number, event in enumerate(list(self.events)):
            found, where, name = key(event.object)
            if (found, where) != (kind, namespace):
                continue
            state.pop(name, None)
            if event.type != "DELETED":
                state[name] = event.object
            if number >= since:
                yield dict(state)
