"""Builders for BroadcastJobs, nodes, pods and plans, and the notation of the worked examples (broadcastjob.md §8).

`pods("1R 2S 3F")`: pods of job `j` on nodes `n1`, `n2`, `n3`. The letters: `P` pending without a node, `R` running, `S`
succeeded, `F` failed; behind them `T` terminating, and `*3` for three restarts.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from flotilla_common.api.core import Node, Pod
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, BroadcastJob
from flotilla_common.control.plan import Action, Create, Delete, Event, Patch, Plan
from flotilla_common.gates import Gates
from flotilla_jobs.broadcastjob.plan import plan
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot, Options
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, conditions, decoded, metadata, owner
from tests.testkit.plans import node_of
from tests.testkit.pods import container, container_status, on_node

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
PHASES = {"P": "Pending", "R": "Running", "S": "Succeeded", "F": "Failed"}
OWNER = owner("BroadcastJob", "j", "uid-j", blockOwnerDeletion=True)
ROOM = {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "10Gi", "pods": "110"}
_TOKEN = re.compile(r"(\d+)([PRSF])(T?)(?:\*(\d+))?")


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat()


def template(**spec: Any) -> Json:
    container = {"name": "main", "image": "busybox"}
    return {"metadata": {"labels": {"app": "j"}}, "spec": {"restartPolicy": "Never", "containers": [container], **spec}}


def job(
    *,
    meta: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    pod: Json | None = None,
    **spec: Any,
) -> BroadcastJob:
    """Build job `j`: FailFast and Always by default. `pod`: members of the template's spec."""
    document = {
        "metadata": metadata("j", "default", uid="uid-j", version=7, generation=1) | dict(meta or {}),
        "spec": {"template": template(**(pod or {})), **spec},
        "status": status or {},
    }
    return decoded(document, BroadcastJob)


def running(seconds: float = 5, **status: Any) -> Json:
    """Return the status of a job that started this many seconds ago."""
    return {"startTime": ago(seconds), "phase": "running", **status}


def policy(kind: str, limit: int = 0) -> Json:
    return {"failurePolicy": {"type": kind, "restartLimit": limit}}


def completion(kind: str = "Always", **limits: int) -> Json:
    return {"completionPolicy": {"type": kind, **limits}}


def node(name: str, *, taints: Iterable[Json] = (), cordoned: bool = False, **allocatable: str) -> Node:
    spec: Json = {"taints": [*taints]}
    if cordoned:
        spec["unschedulable"] = True
        spec["taints"].append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    document = {
        "metadata": metadata(name, uid=f"uid-{name}", version=1, labels={"kubernetes.io/hostname": name}),
        "spec": spec,
        "status": {"allocatable": {**ROOM, **allocatable}},
    }
    return decoded(document, Node)


def nodes(number: int = 5) -> list[Node]:
    return [node(f"n{place}") for place in range(1, number + 1)]


def pod(place: int, phase: str, *, terminating: bool = False, restarts: int = 0, **spec: Any) -> Pod:
    name = f"n{place}"
    document = pods_of.pod(
        f"j-{place}",
        uid=f"uid-{place}",
        version=3,
        labels={"app": "j", "broadcastjob-name": "j", "broadcastjob-controller-uid": "uid-j"},
        ownerReferences=[OWNER],
        created=ago(60),
        deleted=ago(-30) if terminating else None,
        node="" if phase == "P" else name,
        containers=[container("main", "busybox")],
        spec={"restartPolicy": "Never", "affinity": on_node(name), **spec},
        phase=PHASES[phase],
        conditions=conditions({"Ready": True} if phase == "R" else {}),
        statuses=[container_status("main", restartCount=restarts)],
    )
    return decoded(document, Pod)


def pods(text: str, **spec: Any) -> list[Pod]:
    found = (_TOKEN.fullmatch(token) for token in text.split())
    return [
        pod(int(match[1]), match[2], terminating=bool(match[3]), restarts=int(match[4] or 0), **spec)
        for match in found
        if match is not None
    ]


class Planned:
    """A plan, with accessors for tests."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.actions: list[Action] = plan.actions

    @property
    def created(self) -> list[str]:
        """Return the nodes that get a pod."""
        bodies = [action.body for action in self.actions if isinstance(action, Create)]
        return [node_of(body) for body in bodies]

    @property
    def deleted(self) -> list[str]:
        return [action.name for action in self.actions if isinstance(action, Delete)]

    @property
    def status(self) -> Json:
        """Return the written status."""
        patches = [one for one in self.actions if isinstance(one, Patch) and one.resource == BROADCAST_JOB]
        patches += [self.plan.status] if self.plan.status is not None else []
        assert len(patches) <= 1
        return patches[0].body["status"] if patches else {}

    @property
    def events(self) -> list[str]:
        """Return all events of a plan that succeeds, as `reason: message`."""
        actions = [*self.actions, *([self.plan.status] if self.plan.status is not None else [])]
        told: list[Event] = [*self.plan.events, *(one.on_success for one in actions if one.on_success is not None)]
        return [f"{event.reason}: {event.message}" for event in told]

    @property
    def codes(self) -> list[str]:
        return [reason.code for reason in self.plan.reasons]

    def reason(self, code: str) -> str:
        (message,) = (f"{reason.state}: {reason.message}" for reason in self.plan.reasons if reason.code == code)
        return message

    @property
    def wakes_in(self) -> float | None:
        return None if self.plan.wake_at is None else (self.plan.wake_at - NOW).total_seconds()


def planned(
    one: BroadcastJob,
    present: Iterable[Pod] = (),
    there: Iterable[Node] | None = None,
    *,
    now: datetime = NOW,
    gates: str = "",
    options: Options | None = None,
    **known: Any,
) -> Planned:
    """Plan one pass, by default with five nodes that fit."""
    found = list(present)
    snapshot = BroadcastJobSnapshot(
        job=one,
        nodes=nodes() if there is None else list(there),
        pods=found,
        taken_names={pod.metadata.name for pod in found},
        gates=Gates.parse(gates),
        options=options or Options(),
        **known,
    )
    return Planned(plan(snapshot, now))
