"""Image pulls on real nodes: interrupted, under clock changes, shared by jobs, on leaving nodes, and many at once."""

import time
from datetime import datetime
from itertools import pairwise

import pytest

from tests.cluster.conftest import Staffed
from tests.support.pull_jobs import about_image, counts, ended, job_status, pull, tag_entry
from tests.support.registry_front import BLOBS, MANIFESTS, Front, hang, refuse
from tests.support.workspace import Workspace, moment

pytestmark = pytest.mark.usefixtures("staffed")
NODE = "real-0"
REGISTRY = "slow.example"
CPU_PER_PULL = 0.05
"""Seconds of the agent, at most."""


async def image(staffed: Staffed, front: Front, name: str, held: str = BLOBS) -> str:
    """Push an image whose content (or the `held` part) is withheld until `front.heal`. Returns its name."""
    front.serve(REGISTRY)
    front.spoil(name, hang(held))
    await staffed.cluster.registry.push(f"{REGISTRY}/{name}:v1", ["/bin/sh"], {"/name": name.encode()})
    return f"{REGISTRY}/{name}"


def successes(staffed: Staffed, what: str) -> int:
    """Return how often a node has reported that it pulled the image."""
    events = about_image(staffed.cluster, "NodeImage", "PullImageSucceed", what)
    return sum(one["count"] for one in events)


@pytest.mark.parametrize("victim", ["agent", "containerd"])
async def test_killed_in_the_middle_of_a_pull(space: Workspace, staffed: Staffed, front: Front, victim: str) -> None:
    """It costs no attempt: the pull restarts, and succeeds once."""
    what = await image(staffed, front, f"killed-{victim}")
    pull(space, f"{what}:v1", nodes=(NODE,), pullPolicy={"backoffLimit": 0})
    space.until(lambda: NODE in front.wanted(f"killed-{victim}"))
    if victim == "agent":
        await staffed.agents.kill(NODE)
        await staffed.agents.start(NODE)
    else:
        await staffed.cluster.kill(NODE, "containerd")
        await staffed.cluster.repair()
    space.until(lambda: len(front.attempts(f"killed-{victim}", NODE)) == 2, 60)
    assert counts(job_status(space)) == {"desired": 1, "active": 1, "succeeded": 0, "failed": 0}
    front.heal(f"killed-{victim}")
    assert counts(ended(space)) == {"desired": 1, "active": 0, "succeeded": 1, "failed": 0}
    assert "message" not in tag_entry(staffed.cluster, NODE, what)
    space.until(lambda: successes(staffed, what) == 1)


async def test_the_clock_is_set_in_the_middle_of_pulls(space: Workspace, staffed: Staffed, front: Front) -> None:
    """The clock is set an hour forward, then two hours back.

    Attempts, pauses and deadlines use real time, nothing is pulled twice, and no pull ends before it began. It is the
    agent's clock (tests.support.set_clock).
    """
    what = {name: await image(staffed, front, name) for name in ("quick", "mute", "slow", "sick")}
    front.heal("quick")
    front.spoil("sick", refuse(500))

    def begin(name: str, deadline: int, **policy: int) -> None:
        completion = {"type": "Always", "activeDeadlineSeconds": deadline}
        pull(space, f"{what[name]}:v1", name, nodes=(NODE,), pullPolicy=policy, completionPolicy=completion)

    async with staffed.agents.wrong_clock(NODE) as wrong:
        begin("mute", 11, timeoutSeconds=7, backoffLimit=1)
        begin("slow", 900, timeoutSeconds=600)
        begin("sick", 900, backoffLimit=2, timeoutSeconds=600)
        space.until(lambda: all(front.attempts(name, NODE) for name in ("mute", "slow", "sick")))
        wrong(3600)
        begin("quick", 900, timeoutSeconds=600)
        ended(space, "quick")
        wrong(-3600)
        space.until(lambda: "completionTime" in tag_entry(staffed.cluster, NODE, what["mute"]), 30)
        status = {name: ended(space, name) for name in ("quick", "mute", "sick")}
        front.heal("slow")
        status["slow"] = ended(space, "slow")
    assert {name: counts(one)["succeeded"] for name, one in status.items()} == {
        "quick": 1,
        "mute": 0,
        "sick": 0,
        "slow": 1,
    }
    pauses = {name: [later - earlier for earlier, later in pairwise(front.attempts(name, NODE))] for name in what}
    (mute,), (first, second) = pauses["mute"], pauses["sick"]
    assert 7.5 < mute < 20  # 7 of the attempt, 1 of the pause; the deadline ends the second attempt
    assert 0.9 < first < 10
    assert 1.9 < second < 10
    assert pauses["quick"] == pauses["slow"] == []
    began, lasted = times(staffed, what)
    assert (began["quick"] - began["slow"]).total_seconds() > 3500, "the agent reports by the clock that was set"
    assert lasted["mute"] >= 12  # 11 to the deadline, 2 of the pause after it; whole seconds
    assert lasted["sick"] >= 6
    assert all(0 <= one < 60 for one in lasted.values())


def times(staffed: Staffed, what: dict[str, str]) -> tuple[dict[str, datetime], dict[str, float]]:
    """Return when the node began with each image by its report, and how many seconds it took."""
    entries = {name: tag_entry(staffed.cluster, NODE, one) for name, one in what.items()}
    began = {name: moment(entry["startTime"]) for name, entry in entries.items()}
    return began, {
        name: (moment(entry["completionTime"]) - began[name]).total_seconds() for name, entry in entries.items()
    }


async def test_two_jobs_for_one_image(space: Workspace, staffed: Staffed, front: Front) -> None:
    """The second job begins a new round of the same tag, which serves both (imagepull.md §12, example 15)."""
    what = await image(staffed, front, "shared")
    pull(space, f"{what}:v1", "first", nodes=(NODE,))
    space.until(lambda: NODE in front.wanted("shared"))
    pull(space, f"{what}:v1", "second", nodes=(NODE,))
    space.until(lambda: tag_entry(staffed.cluster, NODE, what).get("version") == 1)
    front.heal("shared")
    for name in ("first", "second"):
        assert counts(ended(space, name)) == {"desired": 1, "active": 0, "succeeded": 1, "failed": 0}
    (tag,) = staffed.cluster.read("nodeimage", NODE)["spec"]["images"][what]["tags"]
    assert [(one["name"], tag["version"]) for one in tag["ownerReferences"]] == [("first", 1), ("second", 1)]
    space.until(lambda: successes(staffed, what) == 1)
    space.kubectl("delete", "imagepulljob", "first")
    space.until(lambda: owners(staffed, what) == ["second"])
    space.kubectl("delete", "imagepulljob", "second")
    space.until(lambda: owners(staffed, what) == [])


def owners(staffed: Staffed, what: str) -> list[str]:
    """Return the jobs that own the node's tag."""
    spec = staffed.cluster.read("nodeimage", NODE)["spec"]
    tags = spec.get("images", {}).get(what, {}).get("tags", [])
    return [owner["name"] for tag in tags for owner in tag["ownerReferences"]]


async def test_ten_images_for_every_node(space: Workspace, staffed: Staffed, front: Front) -> None:
    """All pulls wait for the registry at the same time, so nothing of ours holds one up; and the agents do little.

    (Of their content containerd gets three parts at a time.)
    """
    names = [f"many-{number}" for number in range(10)]
    images = [f"{await image(staffed, front, name, MANIFESTS)}:v1" for name in names]
    nodes = staffed.cluster.names
    document = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "ImageListPullJob",
        "metadata": {"name": "many"},
        "spec": {"images": images, "parallelism": 3, "completionPolicy": {"type": "Always"}},
    }
    before = {node: staffed.agents.cpu_seconds(node) for node in nodes}
    moments = [time.monotonic()]
    space.create(document)
    space.until(lambda: all(front.wanted(name, MANIFESTS) == set(nodes) for name in names), 60)
    moments.append(time.monotonic())
    for name in names:
        front.heal(name)
    space.until(lambda: space.read("imagelistpulljob", "many").get("status", {}).get("succeeded") == 10, 60)
    moments += [max(one.at for one in front.asked), time.monotonic()]
    used = {node: (staffed.agents.cpu_seconds(node) - before[node]) / len(names) for node in nodes}
    asked, pulled, known = (f"{later - earlier:.1f} s" for earlier, later in pairwise(moments))
    print(f"30 pulls: asked for within {asked}, last content asked for {pulled} later, all known as done after {known}")
    print(f"CPU of the agents per pull: {', '.join(f'{1000 * one:.1f} ms' for one in used.values())}")
    assert max(used.values()) <= CPU_PER_PULL


async def test_a_node_goes_away_with_pulls_pending(space: Workspace, staffed: Staffed, front: Front) -> None:
    """The job ends with the nodes that are left (imagepull.md §12, example 19); a node that comes back is pulled to."""
    what = await image(staffed, front, "orphan")
    pull(space, f"{what}:v1")
    space.until(lambda: front.wanted("orphan") == set(staffed.cluster.names))
    staffed.cluster.kubectl("delete", "node", "real-2")
    space.until(lambda: job_status(space).get("desired") == 2)
    front.heal("orphan")
    assert counts(ended(space)) == {"desired": 2, "active": 0, "succeeded": 2, "failed": 0}
    await staffed.cluster.repair()
    pull(space, f"{what}:v1", "back", nodes=("real-2",), completionPolicy={"type": "Never"})
    space.until(lambda: job_status(space, "back").get("succeeded") == 1, 60)
