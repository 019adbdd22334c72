"""The oracle of copies: small histories in which we touch what we must not, or nearly do."""

from collections.abc import Callable
from typing import Any

import pytest

from flotilla_common.api.kinds.resourcedistribution.types import RESOURCE_DISTRIBUTION
from flotilla_common.api.resources import CONFIG_MAP, NAMESPACE
from tests.unit.simulation.history_builder import US, HistoryBuilder, Json

CONTROL = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "ResourceDistribution", "name": "r", "uid": "r"}
OURS: Json = CONTROL | {"controller": True}
QUERY = {"matchLabels": {"team": "one"}}
Story = Callable[["CopyHistoryBuilder"], object]


class CopyHistoryBuilder(HistoryBuilder):
    """A history of namespace `n` (label `team=one`), which ResourceDistribution `r` names. We write the copies."""

    def __init__(self) -> None:
        super().__init__()
        self.space(team="one")
        self.wish(includedNamespaces={"list": [{"name": "n"}]})

    def space(self, *, after: float = 1.0, **labels: str) -> None:
        """Create the namespace, or change its labels."""
        self.put(NAMESPACE, "n", {"metadata": {"labels": labels}}, by="user", after=after)

    def wish(self, *, value: str = "one", after: float = 1.0, metadata: Json | None = None, **targets: Any) -> None:
        """Write the ResourceDistribution as the user."""
        self.lease()
        source = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"k": value}}
        body = {"metadata": metadata or {}, "spec": {"resource": source, "targets": targets}}
        self.put(RESOURCE_DISTRIBUTION, "r", body, by="user", after=after, uid="r")

    def copy(self, value: str = "one", *, by: str = US, owner: Json | None = OURS, **meta: Any) -> None:
        """Write a version of the copy."""
        self.lease()
        owners = [] if owner is None else [owner]
        self.put(CONFIG_MAP, "s", {"metadata": {"ownerReferences": owners, **meta}, "data": {"k": value}}, by=by)

    def drop(self, by: str = US) -> None:
        """Delete the copy."""
        self.lease()
        self.remove(CONFIG_MAP, "s", by=by)


def theirs(history: CopyHistoryBuilder, owner: Json | None = None) -> None:
    history.copy("theirs", by="user", owner=owner)


BROKEN: dict[str, tuple[Story, str]] = {
    "somebody's is overwritten": (lambda t: (theirs(t), t.copy()), "touches an object that no"),
    "somebody's is deleted": (lambda t: (theirs(t), t.wish(), t.drop()), "touches an object that no"),
    "one that is not controlled by it": (lambda t: (theirs(t, CONTROL), t.copy()), "touches an object that no"),
    "another one's is overwritten": (lambda t: (theirs(t, OURS | {"uid": "q"}), t.copy()), "touches an object that no"),
    "another value": (lambda t: t.copy("two"), "writes something else"),
    "an old value": (
        lambda t: (t.copy(), t.wish(value="two", allNamespaces=True), t.copy("one")),
        "writes something else",
    ),
    "made where nobody wants it": (lambda t: (t.wish(), t.copy()), "in a namespace that is no target"),
    "made where it is excluded": (
        lambda t: (t.wish(allNamespaces=True, excludedNamespaces={"list": [{"name": "n"}]}), t.copy()),
        "in a namespace that is no target",
    ),
    "made after the label went": (
        lambda t: (t.wish(namespaceSelector=QUERY), t.space(), t.copy()),
        "in a namespace that is no target",
    ),
    "made in a namespace that is gone": (
        lambda t: (t.remove(NAMESPACE, "n", by="user"), t.copy()),
        "in a namespace that is no target",
    ),
    "deleted from a target": (lambda t: (t.copy(), t.drop()), "deletes the copy of a target"),
    "marked as deleted in a target": (
        lambda t: (t.copy(), t.copy(deletionTimestamp="2026-03-01T00:00:00Z")),
        "deletes the copy of a target",
    ),
    "made for one that is gone": (
        lambda t: (t.remove(RESOURCE_DISTRIBUTION, "r", by="user"), t.copy()),
        "that is gone, or goes",
    ),
    "made for one that goes": (
        lambda t: (t.wish(allNamespaces=True, metadata={"deletionTimestamp": "2026-03-01T00:00:00Z"}), t.copy()),
        "that is gone, or goes",
    ),
}
"""Each breaks one rule."""

SOUND: dict[str, Story] = {
    "made, changed and deleted as wished": lambda t: (
        t.copy(),
        t.copy("mine", by="user"),
        t.copy(),
        t.wish(value="two", allNamespaces=True),
        t.copy("two"),
        t.wish(),
        t.drop(),
    ),
    "made by a label": lambda t: (t.wish(namespaceSelector=QUERY), t.copy()),
    "made in the moment in which the label goes": lambda t: (
        t.wish(namespaceSelector=QUERY),
        t.space(after=0.99),
        setattr(t, "at", t.at - 0.98),
        t.copy(),
    ),
    "deleted by somebody": lambda t: (t.copy(), t.drop(by="user")),
    "somebody's is somebody's": lambda t: (theirs(t), t.copy("other", by="user", owner=None), t.drop(by="user")),
    "what bears another name": lambda t: (t.lease(), t.put(CONFIG_MAP, "other", {"data": {}})),
    "collected with its owner": lambda t: (t.copy(), t.remove(RESOURCE_DISTRIBUTION, "r", by="user"), t.drop(by="gc")),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_breaks_a_rule(name: str) -> None:
    story, text = BROKEN[name]
    history = CopyHistoryBuilder()
    story(history)
    breaches = history.breaches()
    assert [text in breach for breach in breaches] == [True], breaches


@pytest.mark.parametrize("name", SOUND)
def test_what_breaks_none(name: str) -> None:
    history = CopyHistoryBuilder()
    SOUND[name](history)
    assert history.breaches() == []
