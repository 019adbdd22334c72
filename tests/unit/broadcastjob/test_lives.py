"""Whole lives of jobs on a simulated cluster: invariants under any behaviour of nodes and pods."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.broadcastjob.types import BroadcastJob, BroadcastJobStatus
from flotilla_common.control.plan import Action, Create, Delete, Plan
from flotilla_jobs.broadcastjob.plan import plan
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot
from tests.testkit.documents import Json
from tests.unit.broadcastjob.build import NOW, completion, job, node, policy

NODES = 4
ENDINGS = ("Succeeded", "Failed")


class World:
    """A cluster with one job. Deleted pods are gone at once."""

    def __init__(self, one: BroadcastJob) -> None:
        self.job: BroadcastJob | None = one
        self.now: datetime = NOW
        self.nodes: dict[str, Node] = {f"n{number}": node(f"n{number}") for number in range(1, NODES + 1)}
        self.pods: dict[str, Json] = {}
        self.notes: dict[str, str] = {}
        self.made = Counter[str]()
        self.most_active = 0

    def settle(self) -> None:
        """Pass after pass, until nothing is written."""
        for _ in range(50):
            if self.job is None or not self._pass(self.job):
                return
        raise AssertionError("it does not come to rest")

    def _pass(self, one: BroadcastJob) -> bool:
        present = [msgspec.convert(document, Pod) for document in self.pods.values()]
        decided = plan(
            BroadcastJobSnapshot(
                job=one,
                nodes=list(self.nodes.values()),
                pods=present,
                taken_names=self.pods.keys(),
                notes=self.notes,
            ),
            self.now,
        )
        self.notes = decided.notes
        actions = _actions(decided)
        for action in actions:
            self._do(action)
        self.most_active = max(self.most_active, len(self.where("Pending", "Running")))
        return bool(actions)

    def _do(self, action: Action) -> None:
        if isinstance(action, Create):
            assert action.name not in self.pods
            self._create(action)
        elif isinstance(action, Delete) and action.resource.kind == "Pod":
            del self.pods[action.name]
        elif isinstance(action, Delete):
            self.job = None
        else:
            assert self.job is not None
            status = merge(msgspec.to_builtins(self.job.status), action.body["status"])
            self.job = msgspec.structs.replace(self.job, status=msgspec.convert(status, BroadcastJobStatus))

    def _create(self, action: Create) -> None:
        body = action.body
        demanded = body["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        (name,) = demanded["nodeSelectorTerms"][0]["matchFields"][0]["values"]
        assert name not in [pod["spec"]["nodeName"] for pod in self.pods.values()], "two pods on a node"
        self.made[name] += 1
        metadata = body["metadata"] | {"uid": f"uid-{action.name}-{self.made[name]}"}
        self.pods[action.name] = {
            "metadata": metadata,
            "spec": body["spec"] | {"nodeName": name},
            "status": {"phase": "Pending"},
        }

    def where(self, *phases: str) -> list[str]:
        return [name for name, pod in self.pods.items() if pod["status"]["phase"] in phases]

    def step(self, what: str, number: int) -> None:
        """Apply one event."""
        names = sorted(self.pods)
        chosen = names[number % len(names)] if names else ""
        spot = f"n{1 + number % NODES}"
        match what:
            case "Running" | "Succeeded" | "Failed" if chosen in self.where("Pending", "Running"):
                self.pods[chosen]["status"]["phase"] = what
            case "delete" if chosen:
                del self.pods[chosen]
            case "cordon":
                self.nodes[spot] = node(spot, cordoned=True)
            case "uncordon":
                self.nodes[spot] = node(spot)
            case "wait":
                self.now += timedelta(seconds=number)
            case _:
                pass
        self.settle()


def _actions(decided: Plan) -> list[Action]:
    actions = decided.actions
    return [*actions, *([decided.status] if decided.status is not None else [])]


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
        world.pods[running[0]]["status"]["phase"] = "Succeeded"
        world.settle()
    assert world.made == Counter({f"n{number}": 1 for number in range(1, NODES + 1)})
    assert world.job is not None
    assert (world.job.status.phase, world.job.status.succeeded, world.job.status.desired) == ("completed", NODES, NODES)
