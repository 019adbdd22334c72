"""The promises of DaemonSets: each rule is checked with small histories that break it, or nearly do."""

from collections.abc import Callable
from functools import partial

import pytest

from flotilla_common.api.resources import NODE, POD
from flotilla_common.control.plan import Json
from tests.testkit.tables import cases
from tests.unit.simulation.daemon_history_builder import DaemonHistoryBuilder

SEEN: Json = {"observedGeneration": 2}
Story = Callable[[DaemonHistoryBuilder], object]
ONE: Json = {"maxUnavailable": 1}
SURGE: Json = {"maxSurge": 1}
IN_PLACE: Json = {"rollingUpdateType": "InPlaceIfPossible", **ONE}
PROGRESSIVE: Json = {"top": {"scaleStrategy": {"partitionedScaling": True}}, **ONE}
CANARY: Json = {"selector": {"matchLabels": {"ring": "canary"}}, **ONE}


def three(**settings: Json) -> DaemonHistoryBuilder:
    history = DaemonHistoryBuilder(**settings)
    history.revision("web-a", 1, "one")
    history.pods("n1-a", "n2-a", "n3-a")
    return history


def newer(history: DaemonHistoryBuilder) -> None:
    """Change the template."""
    history.revision("web-b", 2, "two")


def taken(history: DaemonHistoryBuilder, *names: str, after: float = 1.0) -> None:
    """Change the template, and delete pods as the service."""
    newer(history)
    for name in names:
        history.delete(name, after=after)


def fail(history: DaemonHistoryBuilder, name: str) -> None:
    history.pod(name, by="kubelet", after=0.1, phase="Failed", ready=False)


def fails_again(history: DaemonHistoryBuilder, *, after: float, meanwhile: Callable[..., None] | None = None) -> None:
    """Let a pod fail, and its replacement as well."""
    fail(history, "n1-a")
    history.delete("n1-a", after=0.1)
    history.remove(POD, "n1-a", by="kubelet", after=0.1)
    history.pods("n1-a2")
    fail(history, "n1-a2")
    if meanwhile is not None:
        meanwhile(after=0.01)
    history.delete("n1-a2", after=after)


def in_place(history: DaemonHistoryBuilder, name: str, *, after: float = 1.0) -> None:
    """Take a pod of the first revision out of service and update it."""
    history.pod(name, after=after, gate="False", ready=False)
    history.pod(name, after=0.002, gate="False", ready=False, revision="web-b", image="two", runs="one")


def not_ready(history: DaemonHistoryBuilder, *names: str) -> None:
    for name in names:
        history.pod(name, by="kubelet", after=0.1, ready=False)


BROKEN: dict[str, tuple[Json, Story, str]] = {
    "on a tainted node": (
        ONE,
        lambda t: (t.node("n3", "NoSchedule"), t.gone("n3-a", by="user"), t.pods("n3-a2")),
        "makes a pod for 'n3', which must not have one",
    ),
    "on a node of another pool": (
        ONE,
        lambda t: (t.node("n4", pool="db"), t.pods("n4-a"))[0],
        "makes a pod for 'n4', which must not have one",
    ),
    "on a node that is gone": (
        ONE,
        lambda t: (t.remove(NODE, "n3", by="user"), t.remove(POD, "n3-a", by="nodes"), t.pods("n3-a2")),
        "makes a pod for 'n3', which must not have one",
    ),
    "two of one revision": (SURGE, lambda t: t.pods("n1-a2"), "makes a second pod of one revision on n1"),
    "beside one that goes": (
        ONE,
        lambda t: (t.delete("n1-a", by="user"), t.pods("n1-a2")),
        "makes a pod beside n1-a on n1",
    ),
    "of an older revision": (
        ONE,
        lambda t: (newer(t), t.gone("n1-a", by="user"), t.pods("n1-a2")),
        "makes a pod of revision web-a, which is not the newest",
    ),
    "in a state": (
        ONE,
        lambda t: (t.gone("n1-a", by="user"), t.pods("n1-a2", state="PreparingNormal")),
        "makes a pod in state 'PreparingNormal'",
    ),
    "more than the partition lets through at first": (
        PROGRESSIVE,
        lambda t: (t.spec(partition=1), t.node("n4"), t.node("n5"), t.pods("n4-a", "n5-a")),
        "makes a pod on n5, the 5th, though the partition lets 4 through",
    ),
    "the newest one deleted": (ONE, lambda t: t.delete("n1-a"), "which has the newest revision"),
    "one too many deleted": (
        ONE,
        lambda t: taken(t, "n3-a", "n2-a", after=0.002),
        "takes n2 out of service: n2, n3 are, 1 may be",
    ),
    "a share rounded up": (
        {"maxUnavailable": "40%"},
        lambda t: taken(t, "n3-a", "n2-a", "n1-a"),
        "takes n1 out of service: n1, n2, n3 are, 2 may be",
    ),
    "before the new one is available": (
        ONE,
        lambda t: (newer(t), t.gone("n3-a"), t.pod("n3-b", ready=False), t.delete("n2-a")),
        "takes n2 out of service: n2, n3 are, 1 may be",
    ),
    "while a broken old one is replaced": (
        ONE,
        lambda t: (not_ready(t, "n2-a"), newer(t), t.delete("n2-a"), t.delete("n3-a", after=0.002)),
        "takes n3 out of service: n2, n3 are, 1 may be",
    ),
    "one too many in place": (
        IN_PLACE,
        lambda t: (newer(t), in_place(t, "n3-a"), in_place(t, "n2-a", after=0.002)),
        "takes n2 out of service: n2, n3 are, 1 may be",
    ),
    "while an update in place was overtaken": (
        IN_PLACE,
        lambda t: (newer(t), in_place(t, "n3-a"), t.revision("web-c", 3, "three"), t.delete("n2-a")),
        "takes n2 out of service: n2, n3 are, 1 may be",
    ),
    "in place though they are to be replaced": (
        ONE,
        lambda t: (newer(t), in_place(t, "n3-a")),
        "changes a running pod, though pods are to be recreated",
    ),
    "past the partition": (
        {"partition": 2, "maxUnavailable": 3},
        lambda t: taken(t, "n3-a", "n2-a"),
        "updates n2: 1 are left on old revisions, 2 must be",
    ),
    "past the share of the partition": (
        {"partition": "70%", "maxUnavailable": 3},
        lambda t: taken(t, "n3-a", "n2-a"),
        "updates n2: 1 are left on old revisions, 2 must be",
    ),
    "while paused": ({"paused": True, **ONE}, lambda t: taken(t, "n3-a"), "updates n3, which is not to be updated"),
    "where it is not chosen": (CANARY, lambda t: taken(t, "n3-a"), "updates n3, which is not to be updated"),
    "though users do it": (
        {"top": {"updateStrategy": {"type": "OnDelete"}}},
        lambda t: taken(t, "n3-a"),
        "updates n3, which is not to be updated",
    ),
    "nothing beside it": (SURGE, lambda t: taken(t, "n3-a"), "takes the old pod of n3 away before a new one"),
    "nothing available beside it": (
        SURGE,
        lambda t: (newer(t), t.pod("n3-b", ready=False), t.delete("n3-a")),
        "takes the old pod of n3 away before a new one is available",
    ),
    "one surging too many": (
        SURGE,
        lambda t: (newer(t), t.pod("n3-b", ready=False), t.pod("n2-b", ready=False)),
        "makes a second pod on 2 nodes, 1 may have one",
    ),
    "surging past the partition": (
        {"partition": 2, "maxSurge": 3},
        lambda t: (newer(t), t.pods("n3-b"), t.pods("n2-b")),
        "updates n2: 1 are left on old revisions, 2 must be",
    ),
    "failed again": (ONE, lambda t: fails_again(t, after=0.1), "deletes a failed pod on n1 again after 0.60 s"),
    "written too often": (
        ONE,
        lambda t: (t.pod("n1-a", labels={"one": ""}), t.pod("n1-a", labels={"two": ""})),
        "is one write more than the pod may cost",
    ),
}


@pytest.mark.parametrize(("settings", "story", "text"), cases(BROKEN))
def test_what_breaks_a_rule_is_found(settings: Json, story: Story, text: str) -> None:
    history = three(**settings)
    assert history.breaches() == []
    story(history)
    assert any(text in breach for breach in history.breaches()), history.breaches()


INNOCENT: dict[str, tuple[Json, Story]] = {
    "one after the other": (ONE, lambda t: (newer(t), *((t.gone(f"n{n}-a"), t.pods(f"n{n}-b")) for n in (3, 2, 1)))),
    "for a node that was tainted a moment ago": (
        ONE,
        lambda t: (t.gone("n3-a", by="user"), t.node("n3", "NoSchedule"), t.pod("n3-a2", after=0.02, ready=False)),
    ),
    "all nodes that do not keep theirs": (
        ONE,
        lambda t: (t.node("n3", "NoExecute"), t.node("n2", pool="db"), t.delete("n3-a"), t.delete("n2-a")),
    ),
    "for a node that is gone": (ONE, lambda t: (t.remove(NODE, "n3", by="user"), t.delete("n3-a"))),
    "broken ones are replaced at once": (
        ONE,
        lambda t: (*(not_ready(t, name) for name in ("n2-a", "n3-a")), newer(t), t.delete("n2-a"), t.delete("n3-a")),
    ),
    "another was lost a moment ago": (
        ONE,
        lambda t: (newer(t), t.delete("n1-a", by="user"), t.delete("n3-a", after=0.02)),
    ),
    "a node that wants none is not missed": (
        ONE,
        lambda t: (t.node("n1", "NoSchedule"), t.gone("n1-a", by="user"), taken(t, "n3-a")),
    ),
    "one of two on a node": (ONE, lambda t: (t.pod("n1-a2", by="user"), t.delete("n1-a2"))),
    "in place, one after the other": (
        IN_PLACE,
        lambda t: (
            *(newer(t), in_place(t, "n3-a"), t.pod("n3-a", revision="web-b", image="two")),
            *(in_place(t, "n2-a"), t.pod("n2-a", revision="web-b", image="two")),
        ),
    ),
    "an overtaken update that is changed once more": (
        IN_PLACE,
        lambda t: (
            *(newer(t), in_place(t, "n3-a"), t.revision("web-c", 3, "three")),
            t.pod("n3-a", gate="False", ready=False, revision="web-c", image="three", runs="one"),
        ),
    ),
    "as the hook asks": (ONE, lambda t: (newer(t), t.pod("n3-a", state="PreparingDelete"), t.delete("n3-a"))),
    "up to the partition": ({"partition": 1, "maxUnavailable": 3}, lambda t: taken(t, "n3-a", "n2-a")),
    "where it is chosen": (CANARY, lambda t: (t.node("n3", ring="canary"), taken(t, "n3-a"))),
    "where it was chosen a moment ago": (
        CANARY,
        lambda t: (newer(t), t.node("n3", ring="canary"), t.node("n3", after=0.01), t.delete("n3-a", after=0.02)),
    ),
    "an old one whose new one is available": (SURGE, lambda t: (newer(t), t.pods("n3-b"), t.delete("n3-a"))),
    "an old one that is not ready": (
        SURGE,
        lambda t: (newer(t), t.pod("n3-b", ready=False), not_ready(t, "n3-a"), t.delete("n3-a")),
    ),
    "new ones beside all that are not available": (
        SURGE,
        lambda t: (newer(t), not_ready(t, "n2-a", "n1-a"), *(t.pod(f"n{n}-b", ready=False) for n in (3, 2, 1))),
    ),
    "beside one that goes, surging": (SURGE, lambda t: (t.delete("n1-a", by="user"), t.pods("n1-a2"))),
    "failed again later": (ONE, lambda t: fails_again(t, after=0.6)),
    "failed again under another spec": (
        ONE,
        lambda t: fails_again(t, after=0.1, meanwhile=partial(t.spec, status=SEEN)),
    ),
    "taken in": (ONE, lambda t: (t.node("n4"), t.pod("n4-a", by="user", owners=[]), t.pod("n4-a"))),
}


@pytest.mark.parametrize(("settings", "story"), cases(INNOCENT))
def test_what_is_right_passes(settings: Json, story: Story) -> None:
    history = three(**settings)
    story(history)
    assert history.breaches() == []
