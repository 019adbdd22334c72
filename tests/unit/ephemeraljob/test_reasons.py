"""The reasons of a job, word by word: every reason code of docs/ephemeraljob.md."""

from collections.abc import Callable

import pytest

from tests.testkit.documents import Json
from tests.unit.ephemeraljob.world import BROKEN, DONE, RUNS, STATES, World, container


def begun(pods: int = 2, **spec: object) -> World:
    """Return a job that has injected its containers into as many pods as it may."""
    world = World(pods, **spec)
    world.settle()
    return world


def injecting() -> World:
    return World(3, parallelism=2, containers=[container("b"), container("a")])


def running() -> World:
    world = begun(3, parallelism=2)
    world.kubelet("p1", state=RUNS)
    return world


def held_back() -> World:
    return World(7, parallelism=0)


def paused() -> World:
    return World(2, paused=True)


def paused_late() -> World:
    world = begun(1)
    world.kubelet("p1", state=RUNS)
    world.change(paused=True)
    return world


def template_grew() -> World:
    world = begun(1, containers=[container("a")])
    world.kubelet("p1", state=DONE, name="a")
    world.change(template={"ephemeralContainers": [container("a"), container("b")]})
    return world


def no_pods() -> World:
    return World(0)


def no_pods_at_all() -> World:
    return World(0, selector={})


def no_replicas() -> World:
    return World(2, replicas=0)


def conflict() -> World:
    world = World(2)
    for name in world.pods:
        world.edit_pod(name, {"spec": {"ephemeralContainers": [container()]}})
    return world


def no_image() -> World:
    world = begun(parallelism=2)
    world.kubelet("p1", "p2", state="no image")
    return world


def no_config() -> World:
    world = begun(1)
    world.kubelet("p1", state="no config")
    return world


def on_its_way() -> World:
    world = begun(1)
    world.kubelet("p1", state="created")
    return world


def unscheduled() -> World:
    world = World(0)
    world.pod("p1", phase="Pending")
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit"}
    world.edit_pod("p1", {"spec": {"nodeName": None}, "status": {"conditions": [condition]}})
    world.settle()
    return world


def not_scheduled_yet() -> World:
    world = World(0)
    world.pod("p1", phase="Pending")
    world.edit_pod("p1", {"spec": {"nodeName": None}})
    world.settle()
    return world


def failed() -> World:
    world = begun(4, parallelism=4)
    world.kubelet("p1", "p2", state=BROKEN)
    world.kubelet("p3", state="no command")
    world.kubelet("p4", state=DONE)
    return world


def killed() -> World:
    world = begun(3, parallelism=3, replicas=4)
    ends: list[Json] = [
        {"exitCode": 137, "message": "first\nlast words\n"},
        {"exitCode": 137, "reason": "OOMKilled"},
        {"exitCode": 128, "reason": "StartError", "message": 'exec: "x": not found'},
    ]
    for number, end in enumerate(ends, 1):
        status = {"name": "dbg", "state": {"terminated": end}}
        world.edit_pod(f"p{number}", {"status": {"ephemeralContainerStatuses": [status]}})
    return world


def below_replicas() -> World:
    world = begun(1, replicas=3, activeDeadlineSeconds=60)
    world.kubelet("p1", state=DONE)
    return world


def succeeded() -> World:
    world = begun(2, parallelism=2, ttlSecondsAfterFinished=60)
    world.kubelet("p1", "p2", state=DONE)
    world.settle()
    return world


def all_failed() -> World:
    world = begun(1)
    world.kubelet("p1", state=BROKEN)
    world.settle()
    return world


def too_late() -> World:
    world = begun(2, activeDeadlineSeconds=30)
    world.kubelet("p1", state=RUNS)
    world.later(30)
    return world


def leaving() -> World:
    world = World()
    world.change(meta={"deletionTimestamp": "2026-03-01T12:00:00Z", "finalizers": ["mine", "yours"]})
    return world


def let_go() -> World:
    world = leaving()
    world.change(meta={"finalizers": None})
    return world


def empty() -> World:
    return World(1, containers=[])


FOREIGN = "another ephemeral container has a name of the template (dbg) there, and cannot be removed"
MIXED = "which is neither success nor failure"
UNTIL = "it ends at its deadline, 2026-03-01T12:01:00Z"
DELETED = "is deleted 1800 s after its end"
CONFIG = 'container dbg waits, CreateContainerConfigError: secret "s" not found'
GOING = "is being deleted; containers that it put into pods run on"
IMAGE = "image busybox of container dbg cannot be pulled (ErrImagePull): not found"


@pytest.mark.parametrize(
    ("situation", "said"),
    [
        (
            injecting,
            [
                "Injecting: progressing: injecting a, b into p1, p2",
                "WaitingForParallelism: waiting: parallelism is 2, 1 pod to go: p3",
            ],
        ),
        (
            running,
            [
                "Running: waiting: 2 pods at work: p1, p2",
                "WaitingForParallelism: waiting: parallelism is 2, 1 pod to go: p3",
            ],
        ),
        (held_back, ["WaitingForParallelism: held: parallelism is 0, 7 pods to go: p1, p2, p3, p4, p5 and 2 more"]),
        (paused, ["PausedByUser: held: paused by spec.paused: 2 pods to go: p1, p2"]),
        (
            paused_late,
            ["Running: waiting: 1 pod at work: p1", "PausedByUser: held: paused by spec.paused: 0 pods to go"],
        ),
        (template_grew, [f"Mixed: stuck: 0 of 1 pod succeeded and 0 failed, {MIXED}; without a deadline, it stays"]),
        (no_pods, ["MatchedEmpty: waiting: no active pod matches app=web"]),
        (no_pods_at_all, ["MatchedEmpty: waiting: no active pod matches the empty selector"]),
        (no_replicas, ["MatchedEmpty: held: replicas is 0"]),
        (
            conflict,
            [
                "MatchedEmpty: waiting: no active pod matches app=web and has the names of the containers free",
                f"Conflicts: note: 2 pods left alone: p1, p2; {FOREIGN}",
            ],
        ),
        (no_image, ["Running: waiting: 2 pods at work: p1, p2", f"WaitingForContainers: stuck: p1, p2: {IMAGE}"]),
        (no_config, ["Running: waiting: 1 pod at work: p1", f"WaitingForContainers: stuck: p1: {CONFIG}"]),
        (on_its_way, ["Running: waiting: 1 pod at work: p1"]),
        (
            unscheduled,
            ["Running: waiting: 1 pod at work: p1", "WaitingForContainers: stuck: p1: no node takes it: 0/3 nodes fit"],
        ),
        (not_scheduled_yet, ["Running: waiting: 1 pod at work: p1"]),
        (
            failed,
            [
                "FailedPods: stuck: p1, p2: container dbg ended with exit code 1",
                'FailedPods: stuck: p3: container dbg cannot be started: exec: "nope": not found',
                f"Mixed: stuck: 1 of 4 pods succeeded and 3 failed, {MIXED}; without a deadline, it stays",
            ],
        ),
        (
            killed,
            [
                'FailedPods: stuck: p1: container dbg ended with exit code 137 (SIGKILL) (last words: "last words")',
                "FailedPods: stuck: p2: container dbg is OOMKilled: the node had no memory left for it",
                'FailedPods: stuck: p3: container dbg cannot be started: exec: "x": not found',
                "BelowReplicas: waiting: 3 pods done, and no more match; replicas is 4; without a deadline, it stays",
            ],
        ),
        (below_replicas, [f"BelowReplicas: waiting: 1 pod done, and no more match; replicas is 3; {UNTIL}"]),
        (succeeded, ["Completed: done: completed: 2 of 2 pods succeeded, 0 failed; is deleted 60 s after its end"]),
        (
            all_failed,
            [
                "Completed: done: completed: 0 of 1 pod succeeded, 1 failed; is deleted 1800 s after its end",
                "FailedPods: stuck: p1: container dbg ended with exit code 1",
            ],
        ),
        (too_late, [f"DeadlineExceeded: stuck: ended at its deadline: 0 of 2 pods succeeded, 0 failed; {DELETED}"]),
        (let_go, [f"Terminating: progressing: {GOING}"]),
        (leaving, [f"Terminating: progressing: {GOING}; held by mine, yours"]),
        (empty, ["InvalidSpec: stuck: the template has no ephemeral containers: there is nothing to inject"]),
    ],
    ids=lambda one: one.__name__ if callable(one) else "",
)
def test_reasons(situation: Callable[[], World], said: list[str]):
    made = situation().plan()
    assert [f"{reason.code}: {reason.state}: {reason.message}" for reason in made.reasons] == said


@pytest.mark.parametrize(
    ("situation", "code", "pods"),
    [
        (injecting, "Injecting", ("p1", "p2")),
        (running, "Running", ("p1", "p2")),
        (running, "WaitingForParallelism", ("p3",)),
        (paused, "PausedByUser", ("p1", "p2")),
        (conflict, "Conflicts", ("p1", "p2")),
        (no_image, "WaitingForContainers", ("p1", "p2")),
        (all_failed, "FailedPods", ("p1",)),
    ],
)
def test_pods_are_named_to_scripts(situation: Callable[[], World], code: str, pods: tuple[str, ...]):
    assert [one.objects for one in situation().plan().reasons if one.code == code] == [pods]


def test_every_state_of_a_container_is_told_of():
    """Except states that need no explanation."""
    told: dict[str, set[str]] = {}
    for state in STATES:
        world = begun(1)
        world.kubelet("p1", state=state)
        told[state] = {reason.code for reason in world.plan().reasons}
    plain = {state for state, codes in told.items() if not codes & {"WaitingForContainers", "FailedPods"}}
    assert plain == {DONE, RUNS, "created"}
