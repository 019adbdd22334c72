"""The promises of StatefulSets: each rule is checked with small histories that break it, or nearly do."""

from collections.abc import Callable
from typing import Any

import pytest

from flotilla_common.api.keys import POD_NAME_LABEL
from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.control.plan import Json
from tests.testkit.tables import cases
from tests.unit.simulation.set_history_builder import SetHistoryBuilder

Story = Callable[[SetHistoryBuilder], object]
CHOSEN = {"apps.kruise.io/specified-delete": "true"}
RECREATE: Json = {"podUpdatePolicy": "ReCreate"}
PARALLEL: Json = {"ordered": False, **RECREATE}
SCALED: Json = {"claims": {"whenScaled": "Delete", "whenDeleted": "Delete"}}
KEPT: Json = {"claims": {"whenScaled": "Retain", "whenDeleted": "Retain"}}
HOOK: Json = {"top": {"lifecycle": {"preNormal": {"labelsHandler": {"checked": "yes"}}}}}


def three(**settings: Any) -> SetHistoryBuilder:
    history = SetHistoryBuilder(**settings)
    history.revision("web-a", 1, "one")
    history.pods("web-0", "web-1", "web-2", revision="web-a", labels={"checked": "yes"})
    return history


def again(history: SetHistoryBuilder, name: str, **change: Any) -> None:
    """Delete a pod as the service, and create it again."""
    history.delete(name)
    history.remove(POD, name, by="kubelet")
    history.pods(name, **{"revision": "web-b", "image": "two", **change})


def update(history: SetHistoryBuilder, *names: str) -> None:
    history.revision("web-b", 2, "two")
    for name in names:
        again(history, name)


def fail(history: SetHistoryBuilder, name: str) -> None:
    history.pod(name, by="kubelet", phase="Failed", ready=False, revision="web-a")


BROKEN: dict[str, tuple[Json, Story, str]] = {
    "an unwanted ordinal": ({}, lambda t: t.pods("web-3"), "makes web-3, which is not wanted"),
    "a reserved ordinal": ({}, lambda t: (t.spec(replicas=2), t.pods("web-5"))[0], "makes web-5, which is not wanted"),
    "another pod's name": (
        {"replicas": 4},
        lambda t: t.pods("web-3", labels={POD_NAME_LABEL: "web-1"}),
        "which says that it is",
    ),
    "made behind one that is not available": (
        {"replicas": 4},
        lambda t: (t.pod("web-1", by="kubelet", ready=False), t.pods("web-3")),
        "makes web-3, though 1 below it are not available",
    ),
    "made beyond what scaleStrategy allows": (
        {"ordered": False, "replicas": 6, "top": {"scaleStrategy": {"maxUnavailable": 2}}},
        lambda t: (t.pod("web-3", ready=False), t.pod("web-4", ready=False), t.pod("web-5", ready=False)),
        "makes web-5, though 2 below it are not available",
    ),
    "the lower one goes first": (
        {},
        lambda t: (t.spec(replicas=1), t.delete("web-1")),
        "takes web-1 away, though [2] above it are there",
    ),
    "before the one above is gone": (
        {},
        lambda t: (t.spec(replicas=1), t.delete("web-2"), t.delete("web-1")),
        "takes web-1 away, though [2] above it are there",
    ),
    "scaled in while one is missing": (
        {},
        lambda t: (t.spec(replicas=2), t.pod("web-0", by="kubelet", ready=False), t.delete("web-2")),
        "takes web-2 away, though 1 are missing",
    ),
    "updated from below": (RECREATE, lambda t: update(t, "web-1"), "updates web-1, though not all above it"),
    "updated before the one above is available": (
        {},
        lambda t: (
            update(t, "web-2"),
            t.pod("web-2", by="kubelet", ready=False, revision="web-b", image="two"),
            t.pod("web-1", gate="False", ready=False, revision="web-a"),
            t.pod("web-1", gate="False", ready=False, revision="web-b", image="two", state="Updating"),
        ),
        "updates web-1, though not all above it are available",
    ),
    "in place though it serves and the one above does not": (
        {},
        lambda t: (
            update(t, "web-2"),
            t.pod("web-2", by="kubelet", ready=False, revision="web-b", image="two"),
            t.pod("web-1", by="kubelet", ready=False, revision="web-a"),
            t.pod("web-1", by="kubelet", revision="web-a"),
            t.delete("web-1"),
        ),
        "updates web-1, though not all above it are available",
    ),
    "one too many unavailable": (
        PARALLEL,
        lambda t: (t.revision("web-b", 2, "two"), t.delete("web-2"), t.delete("web-1")),
        "1 are left, 2 must be",
    ),
    "a share rounded up": (
        {**PARALLEL, "maxUnavailable": "60%"},
        lambda t: (t.revision("web-b", 2, "two"), t.delete("web-2"), t.delete("web-1")),
        "1 are left, 2 must be",
    ),
    "an unwanted pod does not serve for a wanted one": (
        PARALLEL,
        lambda t: (t.spec(replicas=2), t.delete("web-0"), t.delete("web-1")),
        "0 are left, 1 must be",
    ),
    "deleted while paused": ({**PARALLEL, "paused": True}, lambda t: t.delete("web-2"), "2 are left, 3 must be"),
    "past the partition": (
        {**PARALLEL, "partition": 2},
        lambda t: update(t, "web-2", "web-1"),
        "moves web-1 to web-b, though the partition keeps it",
    ),
    "past the partition in any order": (
        {**PARALLEL, "partition": 2, "unorderedUpdate": {}},
        lambda t: update(t, "web-0", "web-1"),
        "moves pod number 2 of web to web-b, the partition lets 1 through",
    ),
    "made normal without its hook": (
        {**HOOK, "replicas": 4},
        lambda t: t.pods("web-3"),
        "makes a pod in state 'Normal'",
    ),
    "taken in by another name": (
        {},
        lambda t: (t.pod("other-1", by="user", owners=[]), t.pod("other-1")),
        "takes a pod in that does not belong to web",
    ),
    "a claim deleted": (
        {**KEPT},
        lambda t: (t.claim_of("web-1"), t.remove(CLAIM, "data-web-1"))[0],
        "deletes data-web-1",
    ),
    "a wanted claim tied": (
        {**SCALED},
        lambda t: (t.claim_of("web-1", "set"), t.claim_of("web-1", "pod")),
        "ties data-web-1 to a pod that is wanted",
    ),
    "a claim for a set that goes": (
        {**KEPT},
        lambda t: (t.end(), t.claim_of("web-1"))[0],
        "though web is being deleted",
    ),
    "gone before its claims were tied": (
        {**SCALED},
        lambda t: (t.claim_of("web-2", "set"), t.spec(replicas=2), t.delete("web-2")),
        "deletes web-2, whose claims are not tied as the policy says: ['data-web-2']",
    ),
    "tied though the policy keeps": (
        {**KEPT},
        lambda t: (t.claim_of("web-2", "pod", by="user"), t.spec(replicas=2), t.delete("web-2")),
        "whose claims are not tied as the policy says",
    ),
    "made on a claim that goes": (
        {**SCALED},
        lambda t: (t.claim_of("web-2", "pod", by="user"), again(t, "web-2", revision="web-a")),
        "makes web-2 on claims that are to go with an earlier pod",
    ),
}


@pytest.mark.parametrize(("settings", "story", "text"), cases(BROKEN))
def test_what_breaks_a_rule_is_found(settings: Json, story: Story, text: str) -> None:
    history = three(**settings)
    assert history.breaches() == []
    story(history)
    assert any(text in breach for breach in history.breaches()), history.breaches()


INNOCENT: dict[str, tuple[Json, Story]] = {
    "a pod that became unwanted a moment ago": (
        {"replicas": 4},
        lambda t: (t.spec(replicas=3), t.pod("web-3", ready=False, after=0.02)),
    ),
    "made in order": ({"replicas": 5}, lambda t: t.pods("web-3", "web-4")),
    "made behind one that somebody deleted a moment ago": (
        {"replicas": 4},
        lambda t: (t.delete("web-1", by="user"), t.pod("web-3", ready=False, after=0.02)),
    ),
    "made at once": (
        {"ordered": False, "replicas": 5},
        lambda t: (t.pod("web-3", ready=False), t.pod("web-4", ready=False)),
    ),
    "made as scaleStrategy allows": (
        {"ordered": False, "replicas": 6, "top": {"scaleStrategy": {"maxUnavailable": 2}}},
        lambda t: (t.pod("web-4", ready=False), t.pod("web-3", ready=False)),
    ),
    "made beside one whose claim is still to go": (
        {"ordered": False, "replicas": 4, "top": {"scaleStrategy": {"maxUnavailable": 1}}, **SCALED},
        lambda t: (
            *(t.claim_of("web-1", "pod", by="user"), t.delete("web-1", by="user")),
            *(t.remove(POD, "web-1", by="kubelet"), t.pods("web-3")),
        ),
    ),
    "scaled in one after the other": (
        {},
        lambda t: (*(t.spec(replicas=1), t.delete("web-2"), t.remove(POD, "web-2", by="kubelet")), t.delete("web-1")),
    ),
    "scaled in at once": (PARALLEL, lambda t: (t.spec(replicas=0), t.delete("web-1"), t.delete("web-2"))),
    "updated from above": (RECREATE, lambda t: update(t, "web-2", "web-1", "web-0")),
    "a failed one is replaced out of turn": (
        {},
        lambda t: (t.revision("web-b", 2, "two"), fail(t, "web-0"), t.delete("web-0")),
    ),
    "a broken one is updated out of turn": (
        {},
        lambda t: (
            *(t.revision("web-b", 2, "two"), t.pod("web-0", by="kubelet", ready=False, revision="web-a")),
            t.delete("web-0"),
        ),
    ),
    "made beside an old one that only users delete": (
        {"replicas": 4, "top": {"updateStrategy": {"type": "OnDelete"}}},
        lambda t: (
            *(t.revision("web-b", 2, "two"), t.pod("web-1", by="kubelet", ready=False, revision="web-a")),
            t.pods("web-3", revision="web-b", image="two"),
        ),
    ),
    "a chosen one goes out of turn": (
        {},
        lambda t: (
            t.revision("web-b", 2, "two"),
            t.pod("web-0", by="user", labels=CHOSEN, revision="web-a"),
            t.delete("web-0"),
        ),
    ),
    "two at once": (
        {**PARALLEL, "maxUnavailable": "70%"},
        lambda t: (t.revision("web-b", 2, "two"), t.delete("web-2"), t.delete("web-1")),
    ),
    "up to the partition": ({**PARALLEL, "partition": 1}, lambda t: update(t, "web-2", "web-1")),
    "up to the partition in any order": (
        {**PARALLEL, "partition": 1, "unorderedUpdate": {}},
        lambda t: update(t, "web-0", "web-1"),
    ),
    "made to be asked about": ({**HOOK, "replicas": 4}, lambda t: t.pods("web-3", state="PreparingNormal")),
    "an orphan of its name is taken in": (
        {"replicas": 4},
        lambda t: (t.pod("web-3", by="user", owners=[]), t.pod("web-3")),
    ),
    "garbage collection deletes claims": (
        {**SCALED},
        lambda t: (t.claim_of("web-1"), t.remove(CLAIM, "data-web-1", by="gc")),
    ),
    "an unwanted claim tied": (
        {**SCALED},
        lambda t: (t.claim_of("web-2", "set"), t.spec(replicas=2), t.claim_of("web-2", "pod"), t.delete("web-2")),
    ),
    "a pod goes for its update": ({**SCALED, **RECREATE}, lambda t: (t.claim_of("web-2", "set"), update(t, "web-2"))),
}


@pytest.mark.parametrize(("settings", "story"), cases(INNOCENT))
def test_what_is_right_passes(settings: Json, story: Story) -> None:
    history = three(**settings)
    story(history)
    assert history.breaches() == []
