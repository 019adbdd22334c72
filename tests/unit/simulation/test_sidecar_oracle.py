"""The oracle of sidecars: small histories in which we disturb pods that we must not, or nearly do."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.resources import POD, REVISION
from tests.testkit.tables import cases
from tests.unit.simulation.history_builder import US, HistoryBuilder, Json

HASH, INJECTED = "kruise.io/sidecarset-hash", "kruise.io/sidecarset-injected-list"
CONDITION = "SidecarSetUpgradable"
HOT = {"upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "idle"}}
Story = Callable[["SidecarHistoryBuilder"], object]


class SidecarHistoryBuilder(HistoryBuilder):
    """A history of SidecarSet `side`, which was injected at image p1 and now requires p2, one pod after the other.

    The pods a, b and c have no owner. Writes are the service's unless `by` names another writer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.strategy: Json = {"maxUnavailable": 1}
        self.container: Json = {"name": "proxy"}
        self.side("p1")
        for name in "abc":
            self.meshed(name, "p1", by="user")
        self.side("p2")

    def side(self, image: str, *, after: float = 1.0, latest: str = "", **spec: Any) -> None:
        """Write the SidecarSet as the user."""
        self.lease()
        body: Json = {
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "containers": [self.container | {"image": image}],
                "updateStrategy": dict(self.strategy),
                **spec,
            },
            "status": {"latestRevision": latest},
        }
        self.put(SIDECAR_SET, "side", body, by="user", after=after, uid="s")

    def meshed(self, name: str, image: str, *more: str, by: str = US, after: float = 1.0, **change: Any) -> None:
        """Write a version of a pod.

        `image` and `more` are the images of its sidecar containers, `runs` those that the kubelet reports.
        """
        self.lease()
        images = {"proxy": image} if not more else {"proxy-1": image, "proxy-2": more[0]}
        runs = images | change.get("runs", {})
        conditions = [{"type": "Ready", "status": str(change.get("ready", True))}]
        if "says" in change:
            conditions.append({"type": CONDITION, "status": "True", "message": change["says"]})
        injected = [{"name": "IS_INJECTED", "value": "true"}]
        annotations = {INJECTED: "other,side", HASH: change.get("records", '{"other": "h", "side": "h"}')}
        body: Json = {
            "metadata": {"labels": {"app": "web", **change.get("labels", {})}, "annotations": annotations},
            "spec": {
                "containers": [
                    {"name": "main", "image": "one"},
                    *({"name": one, "image": held, "env": injected} for one, held in images.items()),
                ]
            },
            "status": {
                "phase": "Running",
                "conditions": conditions,
                "containerStatuses": [
                    {"name": "main", "image": "one"},
                    *({"name": one, "image": held} for one, held in runs.items()),
                ],
            },
        }
        self.put(POD, name, body, by=by, after=after)

    def update(self, name: str, image: str = "p2", *, before: str = "p1", **change: Any) -> None:
        """Change the sidecar of a pod that is ready, as the service."""
        self.meshed(name, image, runs={"proxy": before}, **change)

    def restart(self, name: str, image: str = "p2", before: str = "p1") -> None:
        """Restart the sidecar as the kubelet."""
        self.meshed(name, image, by="kubelet", runs={"proxy": before}, ready=False, after=0.1)
        self.meshed(name, image, by="kubelet", after=0.1)

    def break_down(self, name: str, image: str, *, after: float = 1.0) -> None:
        """Make a pod not ready as the kubelet."""
        self.meshed(name, image, by="kubelet", ready=False, after=after)

    def hot(self) -> None:
        """Make the sidecar a hot-upgrade one, of two containers, and inject it into pod a."""
        self.container |= HOT
        self.side("p1")
        self.remove(POD, "a", by="user")
        self.meshed("a", "p1", "idle", by="user")

    def stored(self, name: str) -> None:
        """Write a revision of the SidecarSet."""
        owner = {"apiVersion": SIDECAR_SET.api_version, "kind": "SidecarSet", "name": "side", "uid": "s"}
        metadata = {"labels": {"kruise.io/sidecarset-name": "side"}, "ownerReferences": [owner | {"controller": True}]}
        self.lease()
        self.put(REVISION, name, {"metadata": metadata, "revision": len(self.versions), "data": {"spec": name}})

    def forget(self, name: str) -> None:
        """Delete a revision as the service."""
        self.lease()
        self.remove(REVISION, name)


def remembering(name: str) -> str:
    record = msgspec.json.encode({"side": {"hash": "h", "controllerRevision": name}, "other": "h"})
    return record.decode()


def choosing(history: SidecarHistoryBuilder, **strategy: Any) -> None:
    history.strategy |= strategy
    history.side("p2")


BROKEN: dict[str, tuple[Story, str]] = {
    "a second one while the first restarts": (
        lambda t: (t.update("a"), t.update("b")),
        "side: disturbs b, though a may be the only 1",
    ),
    "a second one, however new the spec is": (
        lambda t: (t.side("p3"), t.update("a", "p3", after=0.01), t.update("b", "p3", after=0.01)),
        "side: disturbs b, though a may be the only 1",
    ),
    "the next one while the first is down": (
        lambda t: (t.update("a"), t.meshed("a", "p2", by="kubelet", ready=False), t.update("b")),
        "side: disturbs b",
    ),
    "one while an updated one is broken": (
        lambda t: (t.update("a"), t.restart("a"), t.break_down("a", "p2"), t.update("b")),
        "side: disturbs b",
    ),
    "a third of three by a percentage": (
        lambda t: (choosing(t, maxUnavailable="50%"), t.update("a"), t.update("b"), t.update("c")),
        "may be the only 2",
    ),
    "none allowed": (lambda t: (choosing(t, maxUnavailable=0), t.update("a")), "nobody may be the only 0"),
    "more than the partition leaves": (
        lambda t: (choosing(t, partition=2), t.update("a"), t.restart("a"), t.update("b")),
        "side: updates one more, though 2 of 3 are to be kept",
    ),
    "paused": (lambda t: (choosing(t, paused=True), t.update("a")), "side: changes a sidecar, though it may not"),
    "not to be updated": (lambda t: (choosing(t, type="NotUpdate"), t.update("a")), "though it may not"),
    "one that is not chosen": (
        lambda t: (choosing(t, selector={"matchLabels": {"canary": "yes"}}), t.update("a")),
        "of a pod that it does not choose",
    ),
    "both idle": (lambda t: (t.hot(), t.meshed("a", "idle", "idle")), "side: both containers of proxy idle"),
    "another one's record lost": (lambda t: t.update("a", records='{"side": "h"}'), f"loses what {HASH} says of other"),
    "another one's word in the condition lost": (
        lambda t: (t.update("a", says='{"other":false,"side":true}'), t.meshed("a", "p2", says='{"side":true}')),
        "loses what the condition says of another SidecarSet",
    ),
    "a revision that a pod remembers": (
        lambda t: (t.stored("side-1"), t.meshed("a", "p1", records=remembering("side-1")), t.forget("side-1")),
        "deletes revision side-1, which a remembers",
    ),
    "the revision that pods are told of": (
        lambda t: (t.stored("side-1"), t.side("p2", latest="side-1"), t.stored("side-2"), t.forget("side-1")),
        "deletes revision side-1, which pods get",
    ),
    "the revision that new pods get": (
        lambda t: (
            t.stored("side-1"),
            t.side("p2", injectionStrategy={"revision": {"revisionName": "side-1"}}),
            t.stored("side-2"),
            t.forget("side-1"),
        ),
        "deletes revision side-1, which pods get",
    ),
}


@pytest.mark.parametrize(("story", "text"), cases(BROKEN))
def test_what_breaks_the_rule_is_found(story: Story, text: str) -> None:
    history = SidecarHistoryBuilder()
    assert history.breaches() == []
    story(history)
    assert any(text in breach for breach in history.breaches()), history.breaches()


INNOCENT: dict[str, Story] = {
    "one after the other": lambda t: [(t.update(name), t.restart(name)) for name in "abc"],
    "two of three by a percentage": lambda t: (choosing(t, maxUnavailable="50%"), t.update("a"), t.update("b")),
    "as many as the partition leaves": lambda t: (choosing(t, partition="50%"), t.update("a")),
    "one that was down anyway": lambda t: (t.break_down("a", "p1"), t.update("b"), t.meshed("a", "p2", ready=False)),
    "the others, while one that was down is updated": lambda t: (
        t.break_down("a", "p1"),
        t.meshed("a", "p2", ready=False),
        t.update("b", after=0.02),
    ),
    "one that an image has broken, by the next image": lambda t: (
        t.update("a"),
        t.meshed("a", "p2", by="kubelet", ready=False),
        t.side("p3"),
        t.meshed("a", "p3", ready=False),
        t.update("b", "p3", after=0.02),
    ),
    "one as an updated one breaks": lambda t: (
        t.update("a"),
        t.restart("a"),
        t.break_down("a", "p2"),
        t.update("b", after=0.02),
    ),
    "one when it had just been paused": lambda t: (
        t.strategy.update(paused=True),
        t.side("p2"),
        t.update("a", after=0.02),
    ),
    "one that is chosen": lambda t: (
        choosing(t, selector={"matchLabels": {"canary": "yes"}}),
        t.meshed("a", "p1", labels={"canary": "yes"}, by="user"),
        t.update("a", labels={"canary": "yes"}),
    ),
    "images that users change": lambda t: [t.update(name, by="user") for name in "abc"],
    "what replaced ones are let idle by": lambda t: (
        t.hot(),
        t.side("p2"),
        t.meshed("a", "p1", "p2", runs={"proxy-2": "idle"}),
        t.meshed("a", "p1", "p2", by="kubelet"),
        t.meshed("a", "idle", "p2", runs={"proxy-1": "p1"}),
    ),
    "both, by users": lambda t: (t.hot(), t.meshed("a", "idle", "idle", by="user")),
    "a revision that nobody remembers": lambda t: (t.stored("side-1"), t.stored("side-2"), t.forget("side-1")),
    "one that a pod remembered": lambda t: (
        t.stored("side-1"),
        t.meshed("a", "p1", records=remembering("side-1")),
        t.meshed("a", "p1", records=remembering("side-2")),
        t.stored("side-2"),
        t.forget("side-1"),
    ),
}


@pytest.mark.parametrize("story", [pytest.param(story, id=name) for name, story in INNOCENT.items()])
def test_what_nearly_breaks_it_is_not(story: Story) -> None:
    history = SidecarHistoryBuilder()
    story(history)
    assert history.breaches() == []


def test_sidecars_change_while_their_pods_are_in_service() -> None:
    """They are not what the readiness gate of an update in place is about."""
    history = SidecarHistoryBuilder()
    history.pods("x")
    document = history._stored[POD, "x"]

    def with_sidecar(image: str) -> Json:
        sidecar = {"name": "proxy", "image": image, "env": [{"name": "IS_INJECTED", "value": "true"}]}
        return document | {"spec": document["spec"] | {"containers": [*document["spec"]["containers"], sidecar]}}

    history.put(POD, "x", with_sidecar("p1"), by="user")
    history.put(POD, "x", with_sidecar("p2"))
    assert history.breaches() == []
    history.pod("x", image="two")
    assert any("while the pod is in service" in breach for breach in history.breaches())
