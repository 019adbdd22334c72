"""Which node each object concerns, and which objects concern a node."""

from collections.abc import Set

Key = tuple[str, str]
"""Namespace and name."""


class NodeIndex:
    """Objects that concern no node are not in it."""

    def __init__(self) -> None:
        self._node: dict[Key, str] = {}
        self._keys: dict[str, set[Key]] = {}

    def put(self, key: Key, node: str) -> None:
        """The object concerns that node; with an empty name, none."""
        held = self._node.get(key, "")
        if node == held:
            return
        if held:
            keys = self._keys[held]
            keys.remove(key)
            if not keys:
                del self._keys[held]
            del self._node[key]
        if node:
            self._node[key] = node
            self._keys.setdefault(node, set()).add(key)

    def of(self, node: str) -> frozenset[Key]:
        """The objects that concern the node."""
        return frozenset(self._keys.get(node, ()))

    def without(self, keys: Set[Key]) -> list[Key]:
        """The objects that are not among these."""
        return [key for key in self._node if key not in keys]
