"""Texts of events, conditions and messages of the jobs service and node agents that the specification fixes.

A text that is changed in the code fails here. broadcastjob.md §5.3, §6; ephemeraljob.md §7.2, §9; imagepull.md §4.4,
§8, §9; advancedcronjob.md §6.
"""

from collections.abc import Callable

import pytest

from flotilla_common.control.plan import Create, Plan
from tests.unit.advancedcronjob import world as acj
from tests.unit.broadcastjob import build as bcj
from tests.unit.ephemeraljob import world as ejob
from tests.unit.imagepull import build as pull
from tests.unit.imagepull.test_list_examples import child
from tests.unit.imagepull.test_list_examples import passed as listed
from tests.unit.imagepull.test_node_image_examples import passed as on_node
from tests.unit.texts.told import actions, conditions, events


def ran(present: str, phase: str = "running", *, seconds: float = 5, **spec: object) -> Plan:
    """Plan a pass of a BroadcastJob that has pods on all its nodes."""
    status = bcj.running(seconds, phase=phase)
    return bcj.planned(bcj.job(status=status, **spec), bcj.pods(present), bcj.nodes(len({*present.split()}))).plan


EVENTS: list[tuple[str, Callable[[], Plan], list[str]]] = [
    (
        "broadcastjob: misfit",
        lambda: bcj.planned(bcj.job(status=bcj.running()), bcj.pods("1R"), [bcj.node("n1", cordoned=True)]).plan,
        ["Normal SuccessfulDelete: Delete pod: j-1"],
    ),
    (
        "broadcastjob: two pods on a node",
        lambda: ran("1R 1R"),
        ["Warning DuplicatePodCreatedOnSameNode: Duplicated pod j-1 found on same node n1"],
    ),
    (
        "broadcastjob: too many",
        lambda: ran("1R 2R", parallelism=1),
        ["Warning TooManyActivePods: Number of active pods exceed parallelism limit"],
    ),
    (
        "broadcastjob: paused",
        lambda: ran("1F 2R", **bcj.policy("Pause")),
        ["Warning Paused: job is paused, due to failed pod"],
    ),
    (
        "broadcastjob: goes on",
        lambda: ran("1F 2R", "paused", **bcj.policy("Continue")),
        ["Normal Continue: continue to process job"],
    ),
    (
        "broadcastjob: fails fast",
        lambda: ran("1S 2R 3F"),
        [
            "Normal SuccessfulDelete: Delete pod: j-2",
            (
                "Warning failed pod is found: failure policy is FailurePolicyTypeFailFast and failed pod is found: "
                "1 pods succeeded, 1 pods failed"
            ),
            (
                "Warning failed pod is found: failure policy is FailurePolicyTypeFailFast and failed pod is found: "
                "1 pods succeeded, 2 pods failed"
            ),
        ],
    ),
    (
        "broadcastjob: deadline",
        lambda: ran("1S 2R", seconds=99, **bcj.completion(activeDeadlineSeconds=10)),
        [
            "Normal SuccessfulDelete: Delete pod: j-2",
            (
                "Warning DeadlineExceeded: Job default/j was active longer than specified deadline: "
                "1 pods succeeded, 1 pods failed"
            ),
        ],
    ),
    (
        "broadcastjob: complete",
        lambda: ran("1S 2S 3F", **bcj.policy("Continue")),
        ["Normal JobComplete: Job default/j is completed, 2 pods succeeded, 1 pods failed"],
    ),
    (
        "ephemeraljob",
        lambda: ejob.World(1).plan(),
        ["Warning CreateFailed: failed to create ephemeral container in pod ns/p1: ERR"],
    ),
    (
        "nodeimage: no answer",
        lambda: on_node(pull.node_image("n1", [pull.tag("J", created=660)])),
        [
            (
                "Warning PullImageFailed: "
                "Failed to pull image nginx:1.25 on node n1 for node has not responded for a long time"
            )
        ],
    ),
    (
        "nodeimage: deadline",
        lambda: on_node(
            pull.node_image("n1", [pull.tag("J", created=999, activeDeadlineSeconds=5)], [pull.entry("Pulling")])
        ),
        [
            (
                "Warning PullImageFailed: "
                "Failed to pull image nginx:1.25 on node n1 for pulling exceeds the activeDeadlineSeconds"
            )
        ],
    ),
    (
        "imagelistpulljob: create",
        lambda: listed(pull.list_job("a", "b")),
        ["Normal Successful create ImagePullJob: Create 2 ImagePullJob"],
    ),
    (
        "imagelistpulljob: delete",
        lambda: listed(pull.list_job("a"), [child(one, pull.list_job("a")) for one in "abc"]),
        ["Normal Successful delete ImagePullJob: Delete 2 ImagePullJob"],
    ),
]


@pytest.mark.parametrize(("plan", "expected"), [pytest.param(plan, rows, id=name) for name, plan, rows in EVENTS])
def test_events(plan: Callable[[], Plan], expected: list[str]) -> None:
    assert events(plan()) == set(expected)


def test_events_of_creates() -> None:
    plan = bcj.planned(bcj.job(), (), bcj.nodes(1)).plan
    (pod,) = (one for one in actions(plan) if isinstance(one, Create))
    assert events(plan) == {
        f"Normal SuccessfulCreate: Created pod: {pod.name}",
        "Warning FailedCreate: Error creating: ERR",
    }


def after(state: str) -> Plan:
    """Plan a pass of an EphemeralJob whose container has reached that state."""
    world = ejob.World(1)
    world.reconcile()
    world.kubelet("p1", state=state)
    return world.plan()


def late() -> Plan:
    """Plan a pass of an EphemeralJob that has exceeded its deadline."""
    world = ejob.World(1, activeDeadlineSeconds=5)
    world.reconcile()
    world.reconcile()
    world.wait(9)
    return world.plan()


BEGUN = "Initialized True Initialized: "
FAST = "failure policy is FailurePolicyTypeFailFast and failed pod is found"
SLOW = "Job default/j was active longer than specified deadline"

CONDITIONS: list[tuple[str, Callable[[], Plan], str, list[str]]] = [
    ("failed", lambda: ran("1F"), "BroadcastJob", [f"Failed True Failed: {FAST}"]),
    (
        "took too long",
        lambda: ran("1R", seconds=99, **bcj.completion(activeDeadlineSeconds=10)),
        "BroadcastJob",
        [f"Failed True Failed: {SLOW}"],
    ),
    (
        "complete",
        lambda: ran("1S 2S 3F", **bcj.policy("Continue")),
        "BroadcastJob",
        ["Complete True Complete: Job completed, 2 pods succeeded, 1 pods failed"],
    ),
    (
        "no pods",
        lambda: ejob.World(0).plan(),
        "EphemeralJob",
        [BEGUN, "MatchedEmpty True MatchEmpty: job match no pods"],
    ),
    (
        "no containers",
        lambda: ejob.World(1, containers=[]).plan(),
        "EphemeralJob",
        [BEGUN, "JobError True Error: job spec invalid fields."],
    ),
    (
        "succeeded",
        lambda: after("done"),
        "EphemeralJob",
        [BEGUN, "JobSucceeded True JobSucceeded: job success to run all tasks"],
    ),
    (
        "failed containers",
        lambda: after("broken"),
        "EphemeralJob",
        [BEGUN, "JobFailed True CreateFailed: EphemeralJob ns/j failed to create ephemeral container"],
    ),
    (
        "late",
        late,
        "EphemeralJob",
        [BEGUN, "JobFailed True DeadlineExceeded: EphemeralJob ns/j was active longer than specified deadline"],
    ),
]


@pytest.mark.parametrize(
    ("plan", "kind", "expected"), [pytest.param(plan, kind, rows, id=name) for name, plan, kind, rows in CONDITIONS]
)
def test_conditions(plan: Callable[[], Plan], kind: str, expected: list[str]) -> None:
    assert conditions(plan(), kind) == set(expected)


@pytest.mark.parametrize(
    ("completion", "nodes", "message"),
    [
        ({}, [pull.pulling("n1")], "job is running, progress 0.0%"),
        ({}, [pull.succeeded("n1"), pull.pulling("n2"), pull.pulling("n3")], "job is running, progress 33.3%"),
        ({"type": "Never"}, [], "job is running, no progress"),
        ({}, [pull.succeeded("n1")], "job has completed"),
        ({"activeDeadlineSeconds": 60}, [pull.pulling("n1")], "job exceeds activeDeadlineSeconds"),
    ],
    ids=str,
)
def test_messages_of_image_pulls(completion: pull.Json, nodes: list[pull.NodeImage], message: str) -> None:
    job = pull.job(status=pull.begun(90), completionPolicy={"type": "Always"} | completion)
    assert pull.status_of(pull.planned(job, nodes))["message"] == message


def test_warnings_of_schedules() -> None:
    missed = acj.World()
    missed.down_until("11:41:45")
    text = "more than 100 runs missed since 2026-03-04T10:00:30Z; they are skipped, next run at 2026-03-04T11:42:00Z"
    assert missed.events == [("TooManyMissedTimes", text)]
    wrong = acj.World(acj.cron_job("61 * * * *"))
    assert [reason for reason, _ in wrong.events] == ["UnparseableSchedule"]
    denied = acj.World()
    denied.verdict = lambda action: acj.DENIED if isinstance(action, Create) else acj.OK
    denied.until("10:02")
    name = f"a-{acj.unix('10:01')}"
    error = 'admission webhook "v" denied the request: no'
    assert denied.events[0] == ("FailedCreate", f"creating Job {name} is refused: {error}")
