"""Whole lives of jobs on a simulated cluster: invariants under any behaviour of nodes and pods."""

from collections import Counter
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, BroadcastJob
from flotilla_common.api.resources import NODE, POD
from flotilla_common.clock import ManualClock
from flotilla_common.control.plan import Action, Create, Delete, Plan
from flotilla_common.model.writes import Write
from flotilla_jobs.broadcastjob.controller import CONTROLLER, JOBS, Gatherer
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot, Options
from tests.testkit.cluster import ControllerCluster
from tests.testkit.documents import Json, decoded
from tests.testkit.plans import node_of
from tests.unit.broadcastjob.build import NOW, completion, job, node, policy

NODES = 4
ENDINGS = ("Succeeded", "Failed")


class World(ControllerCluster[BroadcastJobSnapshot, Gatherer]):
    """A cluster with one job. Deleted pods are gone at once."""

    def __init__(self, one: BroadcastJob) -> None:
        super().__init__(CONTROLLER, "j", namespace="default", clock=ManualClock(NOW), options=Options())
        self.made = Counter[str]()
        self.most_active = 0
        for number in range(1, NODES + 1):
            self.node(f"n{number}")
        self.put(BROADCAST_JOB, decoded(one, dict))

    @property
    def job(self) -> BroadcastJob | None:
        return self.context.table(JOBS).get("default", "j")

    @property
    def pods(self) -> dict[str, Json]:
        return {pod["metadata"]["name"]: pod for pod in self.objects.all(POD)}

    def node(self, name: str, *, cordoned: bool = False) -> None:
        self.put(NODE, decoded(node(name, cordoned=cordoned), dict))

    def end(self, name: str, phase: str) -> None:
        """Set the phase of a pod."""
        self.put(POD, merge(self.pods[name], {"status": {"phase": phase}}))

    def reconcile(self, name: str = "") -> Plan:
        made = super().reconcile(name)
        self.most_active = max(self.most_active, len(self.where("Pending", "Running")))
        return made

    def write(self, action: Action) -> Write:
        if isinstance(action, Create):
            place = node_of(action.body)
            assert place not in [pod["spec"]["nodeName"] for pod in self.pods.values()], "two pods on a node"
            self.made[place] += 1
            action = msgspec.structs.replace(action, body=merge(action.body, {"spec": {"nodeName": place}}))
        write = super().write(action)
        if isinstance(action, Delete) and write.after is not None:
            self.vanish(action.resource, action.name)
        return write

    def where(self, *phases: str) -> list[str]:
        return [name for name, pod in self.pods.items() if pod["status"]["phase"] in phases]

    def step(self, what: str, number: int) -> None:
        """Apply one event."""
        names = sorted(self.pods)
        chosen = names[number % len(names)] if names else ""
        spot = f"n{1 + number % NODES}"
        match what:
            case "Running" | "Succeeded" | "Failed" if chosen in self.where("Pending", "Running"):
                self.end(chosen, what)
            case "delete" if chosen:
                self.vanish(POD, chosen)
            case "cordon" | "uncordon":
                self.node(spot, cordoned=what == "cordon")
            case "wait":
                self.wait(number)
            case _:
                pass
        self.settle()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["Running", "Succeeded", "Succeeded", "Failed", "delete", "cordon", "uncordon", "wait"]),
        st.integers(0, 20),
    ),
    max_size=25,
)


@st.composite
def jobs(draw: st.DrawFn) -> BroadcastJob:
    spec: dict[str, Any] = {}
    if draw(st.booleans()):
        spec["parallelism"] = draw(st.sampled_from([1, 2, "50%", "26%"]))
    spec |= policy(draw(st.sampled_from(["FailFast", "Continue", "Pause"])))
    spec |= completion(
        "Always", **draw(st.sampled_from([{}, {"activeDeadlineSeconds": 30}, {"ttlSecondsAfterFinished": 15}]))
    )
    return job(**spec)


@settings(max_examples=150, deadline=None)
@given(jobs(), STEPS)
def test_no_node_has_two_pods_parallelism_holds_and_the_end_is_final(
    one: BroadcastJob, steps: list[tuple[str, int]]
) -> None:
    """The world itself checks that no node has two pods, and that it settles."""
    world = World(one)
    world.settle()
    limit = {1: 1, 2: 2, "50%": 2, "26%": 2}.get(one.spec.parallelism or "", NODES)
    ended = None
    for what, number in steps:
        world.step(what, number)
        assert world.most_active <= limit
        if world.job is None:
            break
        if ended is not None:
            assert world.job.status == ended
        if world.job.status.verdict:
            ended = world.job.status
            assert not (world.job.status.verdict == "Failed" and world.where("Pending", "Running"))
            assert world.job.status.completion_time is not None


@settings(max_examples=50, deadline=None)
@given(st.sampled_from([None, 1, 3, "30%"]))
def test_a_job_that_nothing_disturbs_has_one_pod_per_node(parallelism: int | str | None) -> None:
    world = World(job(parallelism=parallelism))
    world.settle()
    while running := world.where("Pending", "Running"):
        world.end(running[0], "Succeeded")
        world.settle()
    assert world.made == Counter({f"n{number}": 1 for number in range(1, NODES + 1)})
    assert world.job is not None
    assert (world.job.status.phase, world.job.status.succeeded, world.job.status.desired) == ("completed", NODES, NODES)
