"""The oracles of CloneSets: each rule is checked with small histories that break it, or nearly do."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from flotilla_common.api.resources import CLAIM, POD, REVISION
from tests.simulation.restored_copies import RESTORED_NAMESPACE, RESTORER
from tests.testkit.tables import cases
from tests.unit.simulation.history_builder import OWNER, HistoryBuilder

Story = Callable[[HistoryBuilder], object]
HOOKS = {
    "lifecycle": {
        "preDelete": {"labelsHandler": {"hold": "delete"}},
        "inPlaceUpdate": {"labelsHandler": {"hold": "update"}},
        "preNormal": {"labelsHandler": {"checked": "yes"}},
    }
}
KEEP = {"scaleStrategy": {"enablePVCReuse": True}}


def three(**settings: Any) -> HistoryBuilder:
    history = HistoryBuilder(**{"maxUnavailable": 1, **settings})
    history.revision("web-1", 1, "one")
    history.pods("a", "b", "c")
    return history


def update(history: HistoryBuilder, name: str, **change: Any) -> None:
    """Update a pod in place correctly."""
    history.pod(name, gate="False", ready=False)
    history.pod(
        name,
        **{
            "gate": "False",
            "ready": False,
            "state": "Updating",
            "revision": "web-2",
            "image": "two",
            **change,
            "runs": "one",
        },
    )
    history.pod(name, by="kubelet", gate="False", ready=False, state="Updating", revision="web-2", image="two")
    history.pod(name, gate="True", ready=False, state="Updating", revision="web-2", image="two")
    history.pod(name, gate="True", ready=False, revision="web-2", image="two")
    history.pod(name, by="kubelet", revision="web-2", image="two")


def roll(history: HistoryBuilder, *names: str) -> None:
    history.revision("web-2", 2, "two")
    for name in names:
        update(history, name)


def test_a_right_life_breaks_nothing() -> None:
    history = three(partition=1, top=KEEP)
    history.claim("a")
    roll(history, "a", "b")
    history.spec(replicas=2)
    history.delete("a")
    history.remove(POD, "a", by="kubelet")
    history.remove(CLAIM, "data-a")
    history.delete("b", by="user")
    history.remove(POD, "b", by="kubelet")
    history.pods("d")
    history.end()
    assert history.breaches() == []


BROKEN: dict[str, tuple[dict[str, Any], Story, str]] = {
    "two deleted at once": ({}, lambda t: (t.delete("a"), t.delete("b"))[0], "1 are left, 2 must be"),
    "two marked unready at once": (
        {},
        lambda t: (t.pod("a", gate="False"), t.pod("b", gate="False")),
        "1 are left, 2 must be",
    ),
    "unready by gates that were closed long ago": (
        {},
        lambda t: (t.pod("a", gate="False", ready=False), t.pod("b", ready=False, containers=True, by="kubelet")),
        "1 are Ready, 2 must be",
    ),
    "spent when its gate was open, and it was not Ready": (
        {},
        lambda t: (
            t.pod("a", gate="False", ready=False),
            t.pod("a", gate="True", ready=False),
            t.pod("b", gate="False", ready=False),
        ),
        "2 pods of web are not Ready because of us, 1 may be",
    ),
    "deleted long after a user's deletion": (
        {},
        lambda t: (t.delete("a", by="user"), t.delete("b")),
        "1 are left, 2 must be",
    ),
    "deleted long after maxUnavailable was lowered": (
        {"maxUnavailable": 2},
        lambda t: (t.delete("a"), t.spec(maxUnavailable=1), t.delete("b")),
        "1 are left, 2 must be",
    ),
    "state that is not available": (
        {},
        lambda t: (t.pod("a", state="PreparingDelete"), t.pod("b", state="PreparingDelete")),
        "1 are left, 2 must be",
    ),
    "image changed in service": (
        {},
        lambda t: t.pod("a", image="two", state="Updating"),
        "while the pod is in service",
    ),
    "changed though recreated": (
        {"podUpdatePolicy": "ReCreate"},
        lambda t: (t.pod("a", gate="False"), t.pod("a", gate="False", image="two", state="Updating")),
        "pods are to be recreated",
    ),
    "back in service too early": (
        {},
        lambda t: (
            t.pod("a", gate="False"),
            t.pod("a", gate="False", image="two", runs="one", state="Updating"),
            t.pod("a", gate="True", image="two", runs="one", state="Updating"),
        ),
        "before it runs",
    ),
    "a pod too many": ({}, lambda t: t.pods("d"), "makes pod number 4 of web, 3 may be"),
    "a pod too many with surge": (
        {"maxSurge": 1},
        lambda t: (t.pods("d"), t.pods("e")),
        "makes pod number 5 of web, 4 may be",
    ),
    "one instance twice": (
        {"replicas": 4},
        lambda t: t.pods("d", instance="a"),
        "2 pods of web have the instance id 'a'",
    ),
    "past the partition": (
        {"partition": 2},
        lambda t: roll(t, "a", "b"),
        "moves pod number 2 of web to web-2, the partition lets 1 through",
    ),
    "made past the partition": (
        {"partition": 3, "replicas": 4},
        lambda t: (roll(t, "a"), t.pods("d", revision="web-2")),
        "moves pod number 2 of web to web-2",
    ),
    "unknown arrow": ({}, lambda t: t.pod("a", state="Updated"), "from state 'Normal' to 'Updated'"),
    "made normal": ({"replicas": 4}, lambda t: t.pod("d", ready=False), "makes a pod in state 'Normal'"),
    "held by preDelete": (
        {"top": HOOKS},
        lambda t: (t.pod("a", by="user", labels={"hold": "delete"}), t.delete("a")),
        "its preDelete hook holds",
    ),
    "held by inPlaceUpdate": (
        {"top": HOOKS},
        lambda t: (
            t.pod("a", by="user", labels={"hold": "update"}, gate="False"),
            t.pod("a", labels={"hold": "update"}, gate="False", image="two", state="Updating"),
        ),
        "its inPlaceUpdate hook holds",
    ),
    "normal without preNormal": (
        {"top": HOOKS, "replicas": 4},
        lambda t: (t.pod("d", ready=False, state="PreparingNormal"), t.pod("d")),
        "lacks a part of its preNormal hook",
    ),
    "made for a deleting owner": ({"replicas": 4}, lambda t: (t.end(), t.pods("d"))[0], "though web is being deleted"),
    "deleted for a deleting owner": ({}, lambda t: (t.end(), t.delete("a"))[0], "though web is being deleted"),
    "made for nobody": (
        {},
        lambda t: t.pod("x", state="PreparingNormal", owners=[OWNER | {"uid": "other"}]),
        "for an owner that does not exist",
    ),
    "somebody else's pod deleted": (
        {},
        lambda t: (t.pod("x", by="user", owners=[]), t.delete("x")),
        "that no workload controls",
    ),
    "a stray deleted": (
        {},
        lambda t: (t.pod("a", by="user", labels={"app": "mine"}), t.delete("a")),
        "its workload's selector does not match",
    ),
    "a selected pod let go": ({}, lambda t: t.pod("a", owners=[]), "lets a pod go that web selects"),
    "a stranger taken in": (
        {"replicas": 4},
        lambda t: (t.pod("x", by="user", owners=[]), t.pod("x")),
        "takes a pod in that does not belong to web",
    ),
    "a revision twice": ({}, lambda t: t.revision("web-9", 2, "one"), "a second revision of the template of web-1"),
    "a needed revision deleted": (
        {},
        lambda t: (roll(t, "a"), t.remove(REVISION, "web-1")),
        "deletes revision web-1, which is in use",
    ),
    "a living pod's claim": ({}, lambda t: (t.claim("a"), t.remove(CLAIM, "data-a"))[0], "the claim of a living pod"),
    "a waiting claim": (
        {"top": KEEP},
        lambda t: (t.claim("a"), t.delete("a", by="user"), t.remove(POD, "a", by="kubelet"), t.remove(CLAIM, "data-a")),
        "waits for a pod to use it again",
    ),
    "without the lease": ({}, lambda t: (t.lease("cloneset-1-1"), t.delete("a")), "while cloneset-1-1 holds shard 0"),
    "done, undone and done again": (
        {},
        lambda t: (t.pod("a", labels={"x": "1"}), t.pod("a"), t.pod("a", labels={"x": "1"})),
        "is the same write once more",
    ),
    "a lease that ran out": ({}, lambda t: t.delete("a", after=61), "on a lease that ran out"),
}


@pytest.mark.parametrize(("settings", "story", "text"), cases(BROKEN))
def test_what_breaks_a_rule_is_found(settings: dict[str, Any], story: Story, text: str) -> None:
    history = three(**settings)
    assert history.breaches() == []
    story(history)
    assert any(text in breach for breach in history.breaches()), history.breaches()


INNOCENT: dict[str, tuple[dict[str, Any], Story]] = {
    "containers that fail are nobody's doing": (
        {},
        lambda t: (t.pod("a", gate="False", ready=False), t.pod("b", ready=False, containers=False, by="kubelet")),
    ),
    "spent when it was Ready again": (
        {},
        lambda t: (
            t.pod("a", gate="False", ready=False),
            t.pod("a", gate="True", ready=False),
            t.pod("a", by="kubelet"),
            t.pod("b", gate="False", ready=False),
        ),
    ),
    "an unready pod may go at any time": ({}, lambda t: (t.pod("a", by="kubelet", ready=False), t.delete("a"))),
    "a user's deletion a moment ago": ({}, lambda t: (t.delete("a", by="user"), t.delete("b", after=0.02))),
    "maxUnavailable lowered a moment ago": (
        {"maxUnavailable": 2},
        lambda t: (t.delete("a"), t.spec(maxUnavailable=1), t.delete("b", after=0.02)),
    ),
    "users may delete what they like": ({}, lambda t: (t.delete("a", by="user"), t.delete("b", by="user"))),
    "created before the owner's end was seen": (
        {"replicas": 4},
        lambda t: (t.end(), t.pod("d", state="PreparingNormal", ready=False, after=0.01)),
    ),
    "a failed pod does not count": ({}, lambda t: (t.pod("a", by="kubelet", phase="Failed", ready=False), t.pods("d"))),
    "a stray is let go": (
        {},
        lambda t: (t.pod("a", by="user", labels={"app": "mine"}), t.pod("a", labels={"app": "mine"}, owners=[])),
    ),
    "a pod that refers to us is taken in": (
        {"replicas": 4},
        lambda t: (t.pod("x", by="user", owners=[OWNER | {"controller": False}]), t.pod("x")),
    ),
    "the hook let go": ({"top": HOOKS}, lambda t: (t.pod("a", by="user", labels={"hold": "no"}), t.delete("a"))),
    "a claim of a pod that a user deleted a moment before": (
        {"top": KEEP},
        lambda t: (t.claim("a"), t.delete("a", by="user"), t.remove(CLAIM, "data-a", after=0.02))[0],
    ),
    "a claim without reuse": (
        {},
        lambda t: (t.claim("a"), t.delete("a", by="user"), t.remove(POD, "a", by="kubelet"), t.remove(CLAIM, "data-a"))[
            0
        ],
    ),
}


@pytest.mark.parametrize(("settings", "story"), cases(INNOCENT))
def test_what_is_right_passes(settings: dict[str, Any], story: Story) -> None:
    history = three(**settings)
    story(history)
    assert history.breaches() == []


def test_nobody_may_write_on_a_stranger_of_another_namespace() -> None:
    history = three()
    history.delete("a", by="user")
    made = msgspec.structs.replace(history.versions[-1], namespace=RESTORED_NAMESPACE, writer=RESTORER)
    history.versions.append(made)
    assert history.breaches() == []
    history.versions.append(msgspec.structs.replace(made, writer="cloneset-0"))
    assert "a stranger of another namespace" in history.breaches()[0]


def test_availability_counts_from_min_ready_seconds_on() -> None:
    history = three(top={"minReadySeconds": 5})
    history.pod("a", by="kubelet", since="2026-03-01T00:00:00Z")
    history.pod("b", by="kubelet", since="2026-03-01T00:00:00Z")
    history.pod("c", by="kubelet", since="2026-03-01T00:00:08Z", after=10)
    history.delete("c")  # ready, not available: no loss
    assert history.breaches() == []
    history.delete("a")
    assert "1 are left, 2 must be" in history.breaches()[0]
