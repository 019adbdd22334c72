"""The history of a simulated run: every committed change and every request, in order.

The apiserver writes the history while a scenario runs, and the oracles check it. A `Version` is a committed change,
whether or not its writer received the reply; a `Call` is a request with its outcome as its writer saw it. Objects are
shared with the apiserver's store and never change: a client that wants another version of one builds a new dict.
"""

from collections.abc import Callable, Iterator

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Json


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One committed change of one object. A no-op write makes no version, as in the real apiserver."""

    at: float  # fake seconds
    writer: str  # "cloneset-0", "watcher-0", "user", "kubelet", "scheduler", "gc", …
    verb: str  # "create", "update", or "delete" when the object is gone (marking it as deleted is an update)
    resource: Resource
    namespace: str
    name: str
    before: Json | None  # None for "create"
    after: Json | None  # None for "delete"
    revision: int  # the resourceVersion that the change got

    @property
    def key(self) -> tuple[str, str, str]:
        """The object's place: resource id, namespace, name. Namesakes share it."""
        return self.resource.id, self.namespace, self.name

    @property
    def uid(self) -> str:
        """The identity of the object itself."""
        found = self.before if self.after is None else self.after
        return str(found["metadata"]["uid"]) if found else ""


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it ended for its writer."""

    at: float  # fake seconds when it was sent
    until: float  # fake seconds when the writer had its answer
    writer: str
    verb: str  # "get", "list", "watch", "create", "patch", "replace", "delete"
    resource: Resource
    namespace: str
    name: str  # empty for a LIST, a WATCH and a generated name
    subresource: str
    dry_run: bool
    outcome: str  # "ok", the reason of the apiserver's refusal, "unreachable", or "cancelled"
    index: int  # the writer's nth request, from 0
    revision: int = 0  # the version that the request committed, whatever its writer learned; 0 for none


class History:
    """All versions and calls of one run. Listeners receive every version at once, in order of revision."""

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self.calls: list[Call] = []
        self.listeners: list[Callable[[Version], None]] = []
        self._requests: dict[str, int] = {}
        self._closed = False

    def close(self) -> None:
        """End the history: what processes do during the cleanup is no part of it."""
        self._closed = True

    def commit(self, version: Version) -> None:
        """Record a committed change."""
        if self._closed:
            return
        self.versions.append(version)
        for listener in self.listeners:
            listener(version)

    def answered(self, call: Call) -> None:
        """Record the end of a request."""
        if not self._closed:
            self.calls.append(call)

    def next_index(self, writer: str) -> int:
        """Return the number of the writer's next request."""
        index = self._requests.get(writer, 0)
        self._requests[writer] = index + 1
        return index

    def of(self, resource: Resource, namespace: str = "", name: str = "") -> Iterator[Version]:
        """Return the versions of one object, or of all objects of a namespace or a resource, in order."""
        for version in self.versions:
            placed = namespace in ("", version.namespace) and name in ("", version.name)
            if placed and version.resource == resource:
                yield version

    def by(self, writer: str) -> Iterator[Version]:
        """Return the changes of one writer, in order."""
        return (version for version in self.versions if version.writer == writer)
