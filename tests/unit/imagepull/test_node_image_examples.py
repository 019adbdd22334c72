"""The worked examples of imagepull.md §12 for NodeImages, and the rules behind them (§4)."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from flotilla_common.api.kinds.nodeimage.types import NodeImage, NodeImageStatus
from flotilla_common.control.plan import Plan
from flotilla_jobs.nodeimage.controller import concerns
from flotilla_jobs.nodeimage.plan import plan
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot, Options
from flotilla_jobs.nodeimage.status import report_problem, reported
from tests.testkit.documents import Json, decoded
from tests.testkit.plans import codes
from tests.unit.imagepull.build import NOW, entry, node, node_image, owner, status_of, summary, tag


def passed(image: NodeImage | None = None, on: Any = "node", **members: Any) -> Plan:
    held = node("n1") if on == "node" else on
    return plan(NodeImageSnapshot(name="n1", node=held, image=image, **members), NOW)


def tags_after(plan: Plan, image: NodeImage) -> Json:
    """Return the spec's images after the pass."""
    before = msgspec.to_builtins(image.spec.images)
    for action in plan.actions:
        body: Any = getattr(action, "body", {})
        for name, change in body.get("spec", {}).get("images", {}).items():
            if change is None:
                del before[name]
            else:
                before[name] = {**before[name], **change}
    return before


def seconds(plan: Plan) -> float | None:
    return None if plan.wake_at is None else (plan.wake_at - NOW).total_seconds()


FAKE = {"apps.kruise.io/fake-nodeimage": ""}
GONE = node("n1", deletionTimestamp="2026-03-01T11:00:00Z")


@pytest.mark.parametrize(
    ("image", "on", "writes", "wakes"),
    [
        pytest.param(None, node("n1", ready=10), [], 20, id="27: not yet"),
        pytest.param(None, node("n1", ready=30), ["create NodeImage n1"], None, id="27: now"),
        pytest.param(None, node("n1", ready=None), [], None, id="28: not ready"),
        pytest.param(node_image(), node("n1", ready=None), [], None, id="28: an existing one is kept"),
        pytest.param(node_image(labels=FAKE), None, [], None, id="30"),
        pytest.param(node_image(), None, ["delete NodeImage n1"], None, id="31"),
        pytest.param(node_image(), GONE, ["delete NodeImage n1"], None, id="node on its way out"),
        pytest.param(None, GONE, [], None, id="no NodeImage for a node on its way out"),
        pytest.param(None, node("n1", labels={"type": "virtual-kubelet"}), [], None, id="32"),
        pytest.param(
            node_image(deletionTimestamp="2026-03-01T11:00:00Z"), node("n1"), [], None, id="NodeImage on its way out"
        ),
        pytest.param(
            node_image(deletionTimestamp="2026-03-01T11:00:00Z"), None, [], None, id="on its way out, and no node"
        ),
    ],
)
def test_life(image: NodeImage | None, on: Any, writes: list[str], wakes: float | None):
    result = passed(image, on)
    assert summary(result) == writes
    assert seconds(result) == wakes


def test_29_labels_are_the_nodes():
    result = passed(node_image(labels={"mine": "x", "kept": "1"}), node("n1", labels={"zone": "a", "kept": "1"}))
    (action,) = result.actions
    body: Any = getattr(action, "body", {})
    assert body == {"metadata": {"labels": {"mine": None, "zone": "a"}}}


@pytest.mark.parametrize(
    ("image", "members", "kept"),
    [
        pytest.param(node_image("n1", [tag("J"), tag("K", name="2")]), {}, ["1.25", "2"], id="all wanted"),
        pytest.param(
            node_image("n1", [tag("J", "K")]), {"lost_owners": frozenset({"uid-J"})}, ["1.25"], id="16: one owner left"
        ),
        pytest.param(node_image("n1", [tag("J")]), {"lost_owners": frozenset({"uid-J"})}, [], id="last owner gone"),
        pytest.param(node_image("n1", [tag()]), {"lost_owners": frozenset({"uid-J"})}, ["1.25"], id="36: never any"),
        pytest.param(
            node_image("n1", [tag() | {"ownerReferences": [owner("J", kind="Pod")]}]),
            {"lost_owners": frozenset({"uid-J"})},
            ["1.25"],
            id="37: another kind",
        ),
        pytest.param(
            node_image("n1", [tag() | {"ownerReferences": [owner("J", version="batch/v1")]}]),
            {"lost_owners": frozenset({"uid-J"})},
            ["1.25"],
            id="37: another group",
        ),
        pytest.param(node_image("n1", [tag("J") | {"createdAt": None}]), {}, [], id="without creation time"),
        pytest.param(
            node_image("n1", [tag("J")], [entry("Succeeded", ended=900)]), {}, [], id="its time after the end is over"
        ),
        pytest.param(
            node_image("n1", [tag("J", version=1)], [entry("Succeeded", ended=900)]), {}, ["1.25"], id="another round"
        ),
        pytest.param(
            node_image("n1", [tag("J")], [entry("Succeeded", ended=900)]),
            {"running_owners": frozenset({"uid-J"})},
            ["1.25"],
            id="its job still runs",
        ),
    ],
)
def test_cleaning(image: NodeImage, members: Json, kept: list[str]):
    after = tags_after(passed(image, **members), image)
    assert [one["tag"] for one in after.get("nginx", {}).get("tags", [])] == kept
    assert ("nginx" in after) == bool(kept), "an image without tags goes with its secrets"


def test_16_the_version_stays():
    image = node_image("n1", [tag("J", "K", version=4)])
    (one,) = tags_after(passed(image, lost_owners=frozenset({"uid-J"})), image)["nginx"]["tags"]
    assert (one["version"], [owner["name"] for owner in one["ownerReferences"]]) == (4, ["K"])


@pytest.mark.parametrize(
    ("mode", "kept"), [pytest.param("", False, id="39: empty mode"), pytest.param("batch", True, id="39: batch")]
)
def test_references_to_lost_secrets(mode: str, kept: bool):
    secret = {"namespace": "kruise-daemon-config", "name": "s", "mode": mode}
    image = node_image("n1", [tag("J")], secrets=[secret])
    result = passed(image, lost_secrets=frozenset({("kruise-daemon-config", "s")}))
    assert bool(summary(result)) != kept


@pytest.mark.parametrize(
    ("image", "wakes"),
    [
        pytest.param(node_image("n1", [tag("J")], [entry("Succeeded", ended=800)]), 100, id="TTL"),
        pytest.param(node_image("n1", [tag("J")], [entry("Succeeded", ended=899)]), 3, id="not sooner than 3 s"),
        pytest.param(node_image("n1", [tag("J", created=100)]), 500, id="silence"),
        pytest.param(node_image("n1", [tag("J", created=1)], [entry("Pulling")]), None, id="the agent is at work"),
    ],
)
def test_waits(image: NodeImage, wakes: float | None):
    assert seconds(passed(image)) == wakes


NO_ANSWER = "node has not responded for a long time"


@pytest.mark.parametrize(
    ("image", "message"),
    [
        pytest.param(node_image("n1", [tag("J", created=660)]), NO_ANSWER, id="33"),
        pytest.param(node_image("n1", [tag("J", created=660, version=2)], [entry("Succeeded")]), NO_ANSWER, id="34"),
        pytest.param(
            node_image("n1", [tag("J", created=540, activeDeadlineSeconds=60)], [entry("Pulling")]), "", id="35"
        ),
        pytest.param(
            node_image("n1", [tag("J", created=660, activeDeadlineSeconds=60)], [entry("Pulling")]),
            "pulling exceeds the activeDeadlineSeconds",
            id="deadline and ten minutes",
        ),
        pytest.param(node_image("n1", [tag("J", created=9999)], [entry("Pulling")]), "", id="no deadline"),
        pytest.param(node_image("n1", [tag("J", created=9999)], [entry("Failed")]), "", id="final"),
        pytest.param(node_image("n1", [tag("J", created=-3600)]), "", id="the clock was set back"),
    ],
)
def test_time_outs(image: NodeImage, message: str):
    result = passed(image)
    status = status_of(result)
    if not message:
        assert (result.status, result.events) == (None, ())
        return
    (one,) = status["imageStatuses"]["nginx"]["tags"]
    assert (one["phase"], one["message"], one["completionTime"]) == ("Failed", message, "2026-03-01T12:00:00Z")
    assert one.get("version", 0) == image.spec.images["nginx"].tags[0].version
    assert (status["desired"], status["failed"], status["pulling"]) == (1, 1, 0)
    text = f"Failed to pull image nginx:1.25 on node n1 for {message}"
    assert [(event.reason, event.message, event.warning) for event in result.events] == [
        ("PullImageFailed", text, True)
    ] * 2
    about = [event.about and (event.about.resource.kind, event.about.key) for event in result.events]
    assert about == [None, ("ImagePullJob", "ns/J")]
    assert result.urgent_status


def report(*entries: Json, image: str = "nginx") -> NodeImageStatus:
    return decoded({"imageStatuses": {image: {"tags": list(entries)}}}, NodeImageStatus)


@pytest.mark.parametrize(
    ("held", "said", "phase"),
    [
        pytest.param([], [entry("Pulling")], "Pulling", id="begins"),
        pytest.param([entry("Pulling")], [entry("Succeeded")], "Succeeded", id="ends"),
        pytest.param([entry("Failed")], [entry("Pulling")], "Failed", id="what is final stays"),
        pytest.param([entry("Pulling")], [entry("Succeeded", version=3)], "Pulling", id="a round that is not ours"),
        pytest.param([entry("Pulling")], [], "Pulling", id="nothing said"),
        pytest.param([], [entry("Pulling", name="9")], "", id="a tag that nobody wants"),
    ],
)
def test_reports(held: list[Json], said: list[Json], phase: str):
    image = node_image("n1", [tag("J")], held)
    status = reported(image, report(*said))
    found = status.image_statuses["nginx"].tags[0].phase if status.image_statuses else ""
    assert found == phase
    assert status.desired == 1
    assert status.pulling == (phase == "Pulling")


def test_a_report_is_written_once():
    image = node_image("n1", [tag("J")])
    result = passed(image, report=report(entry("Pulling")))
    status = status_of(result)
    assert (status["desired"], status["pulling"], status["succeeded"]) == (1, 1, 0)
    assert result.status is not None
    assert (result.status.uid, result.status.resource_version, result.status.subresource) == ("uid-n1", "", "status")
    stored = msgspec.structs.replace(image, status=decoded(status, NodeImageStatus))
    assert passed(stored, report=report(entry("Pulling"))).status is None


def test_the_numbers_of_a_node_without_work_are_written_once():
    image = node_image("n1", [])
    assert passed(image).status is None
    status = status_of(passed(image, report=NodeImageStatus(desired=0)))
    assert status == {"desired": 0, "succeeded": 0, "failed": 0, "pulling": 0, "waiting": 0}
    stored = msgspec.structs.replace(image, status=decoded(status, NodeImageStatus))
    assert passed(stored, report=NodeImageStatus(desired=0)).status is None


def test_the_end_of_a_pull_is_urgent():
    image = node_image("n1", [tag("J")], [entry("Pulling")])
    assert passed(image, report=report(entry("Succeeded"))).urgent_status
    assert not passed(image, report=report(entry("Waiting"))).urgent_status


def test_reports_are_kept_within_bounds():
    (one,) = (
        reported(node_image("n1", [tag("J")]), report(entry("Failed", message="x" * 9999) | {"progress": 400}))
        .image_statuses["nginx"]
        .tags
    )
    assert (len(one.message), one.progress) == (1024, 100)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (entry("Pulling"), ""),
        (entry("Succeeded"), ""),
        ({"tag": "1", "phase": "Done"}, "nginx:1: there is no phase 'Done'"),
        ({"tag": "1", "phase": "Failed"}, "nginx:1: the completion time belongs to the final phases"),
    ],
)
def test_reports_that_are_none(said: Json, problem: str):
    assert report_problem(report(said)) == problem


def test_reasons():
    assert codes(passed(node_image("n1", [tag("J", created=5)]))) == {"PullingImages"}
    assert codes(passed(node_image("n1", [tag("J")], [entry("Pulling")]))) == {"PullingImages"}
    assert codes(passed(node_image("n1", [tag("J")], [entry("Succeeded")]))) == set()
    assert codes(passed(None, node("n1", ready=10))) == {"WaitingForReadyNode"}


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        pytest.param(None, node(), True, id="new"),
        pytest.param(node(), None, True, id="gone"),
        pytest.param(node(), node(ready=3000), False, id="heartbeat"),
        pytest.param(node(), node(ready=None), True, id="not ready any more"),
        pytest.param(node(), node(labels={"a": "b"}), True, id="labels"),
        pytest.param(node(), GONE, True, id="on its way out"),
    ],
)
def test_what_of_a_node_matters(old: Any, new: Any, wanted: bool):
    assert concerns(old, new) == wanted


def test_delay_is_a_setting():
    options = Options(creation_delay=timedelta(seconds=5))
    assert summary(passed(None, node("n1", ready=6), options=options)) == ["create NodeImage n1"]
