"""Small histories of objects of any kind, passed to an oracle version by version."""

from collections.abc import Callable, Iterable
from typing import Any

from flotilla_common.api.resources import Resource
from tests.simulation.history import Version
from tests.simulation.loop import EPOCH
from tests.simulation.oracles.view import Commit, View

Json = dict[str, Any]
Rule = Callable[[View, Commit], Iterable[str]]


class ObjectHistoryBuilder:
    """A history in namespace `shop`. Uids are names."""

    def __init__(self, rule: Rule) -> None:
        self._rule, self._scene = rule, View(EPOCH)
        self._held: dict[tuple[Resource, str], Json] = {}
        self.at = 0.0  # seconds from the beginning
        self.breaches: list[str] = []

    def held(self, resource: Resource, name: str) -> Json:
        """Return the newest version of an object that exists."""
        return self._held[resource, name]

    def put(self, resource: Resource, name: str, body: Json | None, *, by: str, at: float) -> None:
        """Write an object, or delete it."""
        self.at, before = at, self._held.get((resource, name))
        namespace = "shop" if resource.namespaced else ""
        own = {"name": name, "namespace": namespace, "uid": name, "creationTimestamp": f"{EPOCH:%Y-%m-%dT%H:%M:%SZ}"}
        document = None if body is None else {**body, "metadata": body.get("metadata", {}) | own}
        if document is None:
            self._held.pop((resource, name))
        else:
            self._held[resource, name] = document
        version = Version(
            at=at,
            writer=by,
            verb="update",
            resource=resource,
            namespace=namespace,
            name=name,
            before=before,
            after=document,
            revision=0,
        )
        self._scene.take(version)
        self.breaches += self._rule(self._scene, Commit(version=version))
