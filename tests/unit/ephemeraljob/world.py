"""A small cluster around EphemeralJobs: the controller's gatherer and planner over plain tables.

Writes happen as by the apiserver, and tests act as the kubelets.
"""

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.ephemeraljob.types import EphemeralJob, EphemeralJobStatus
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Action, Delete, Patch, Plan
from flotilla_common.model.deletion import Rules, ended
from flotilla_common.model.writes import patched
from flotilla_jobs.ephemeraljob.controller import CONTROLLER, JOBS, PODS
from flotilla_jobs.ephemeraljob.plan import plan
from flotilla_jobs.ephemeraljob.snapshot import EphemeralJobSnapshot
from tests.support.controller_context import FakeContext
from tests.testkit.documents import Json, decoded

NOW = datetime(2026, 3, 1, 12, 0, 0, 500_000, tzinfo=UTC)
FINALIZER = "apps.kruise.io/ephemeralcontainers-cleanup"
DONE, BROKEN, RUNS = "done", "broken", "runs"
STATES: dict[str, dict[str, Any]] = {
    DONE: {"terminated": {"exitCode": 0, "finishedAt": rfc3339(NOW)}},
    BROKEN: {"terminated": {"exitCode": 1, "finishedAt": rfc3339(NOW)}},
    RUNS: {"running": {"startedAt": rfc3339(NOW)}},
    "created": {"waiting": {"reason": "ContainerCreating"}},
    "no image": {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "busybox": not found'}},
    "no command": {"waiting": {"reason": "RunContainerError", "message": 'exec: "nope": not found'}},
    "no config": {"waiting": {"reason": "CreateContainerConfigError", "message": 'secret "s" not found'}},
}


def container(name: str = "dbg", **members: Any) -> Json:
    given = {"imagePullPolicy": "IfNotPresent", "terminationMessagePolicy": "File"}
    return {"name": name, "image": "busybox", **given, **members}


def marked(name: str = "dbg", uid: str = "uid-j") -> Json:
    """Return a container of the job with this uid."""
    return container(name, env=[{"name": "KRUISE_EJOB_ID", "value": uid}])


class World:
    """Pods `p1`, `p2`, … and jobs in one namespace."""

    def __init__(self, pods: int = 5, **spec: Any) -> None:
        self.context = FakeContext()
        self.gatherer = self.context.build(CONTROLLER)
        self.now = NOW
        self.pods: dict[str, Json] = {}
        self.jobs: dict[str, Json] = {}
        self.refusals: dict[str, str] = {}
        """The apiserver's refusals of injections, by pod."""
        self.lagging: set[str] = set()
        """Pods that the tables do not receive."""
        self.batches: list[list[str]] = []
        """Pods that were injected at the same time, in order."""
        self.conflicts = 0
        self.statuses = 0
        self.memory: dict[str, Memory] = {}
        self._owed: set[str] = set()
        self._versions = itertools.count(1)
        for number in range(1, pods + 1):
            self.pod(f"p{number}", age=number)
        self.job(**spec)

    # What people and kubelets do.

    def job(self, name: str = "j", containers: Sequence[Json] | None = None, **spec: Any) -> None:
        """Create a job, with a finalizer from an earlier pass."""
        template = {"ephemeralContainers": [container()] if containers is None else list(containers)}
        given = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
        meta = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "finalizers": [FINALIZER]}
        self._store_job({"metadata": meta, "spec": given})

    def change(self, name: str = "j", *, meta: Json | None = None, status: Json | None = None, **spec: Any) -> None:
        """Patch a job from outside."""
        patch = {"spec": spec, "metadata": meta or {}, "status": status or {}}
        self._store_job(merge(self.jobs[name], patch))

    def pod(self, name: str, *held: Json, age: int = 0, phase: str = "Running", **labels: str) -> None:
        """Create a pod that matches, unless its labels differ."""
        meta: Json = {"name": name, "namespace": "ns", "uid": f"uid-{name}-{next(self._versions)}"}
        meta["creationTimestamp"] = rfc3339(NOW - timedelta(hours=1) + timedelta(seconds=age))
        meta["labels"] = labels or {"app": "web"}
        spec = {"nodeName": "n1", "ephemeralContainers": list(held)}
        self._store_pod({"metadata": meta, "spec": spec, "status": {"phase": phase}})

    def edit(self, name: str, patch: Json) -> None:
        """Patch a pod from outside."""
        self._store_pod(merge(self.pods[name], patch))

    def remove(self, name: str) -> None:
        """Remove a pod."""
        self.pods.pop(name)
        self.context.table(PODS).remove("ns", name)

    def kubelet(self, *those: str, state: str, name: str = "dbg") -> None:
        """Report the container's state in these pods, as a kubelet does."""
        for pod in those:
            statuses = self.pods[pod]["status"].get("ephemeralContainerStatuses", [])
            others = [one for one in statuses if one["name"] != name]
            told = {"name": name, "state": STATES[state]}
            self.edit(pod, {"status": {"ephemeralContainerStatuses": [*others, told]}})

    def catch_up(self) -> None:
        """Update the tables completely."""
        self.lagging.clear()
        for name in list(self.pods):
            self._tell(name)

    # What is there.

    def status(self, name: str = "j") -> EphemeralJobStatus:
        return self._decoded(name).status

    def counts(self, name: str = "j") -> tuple[int, int, int, int, int]:
        """Match, running, succeeded, failed, waiting."""
        status = self.status(name)
        return status.match, status.running, status.succeeded, status.failed, status.waiting

    def conditions(self, name: str = "j") -> dict[str, str]:
        """Return the reasons of conditions by type."""
        assert all(one.status == "True" for one in self.status(name).conditions)
        return {one.type: one.reason for one in self.status(name).conditions}

    def injected(self, uid: str = "uid-j") -> list[str]:
        """Return the pods that have containers of the job, by name."""
        return sorted(name for name, pod in self.pods.items() if owned_by(pod, uid))

    # What the controller does.

    def snapshot(self, name: str = "j") -> EphemeralJobSnapshot | None:
        return self.gatherer.gather(("ns", name), self.memory.get(name, Memory()))

    def plan(self, name: str = "j") -> Plan:
        snapshot = self.snapshot(name)
        return Plan() if snapshot is None else plan(snapshot, self.now)

    def once(self, name: str = "j") -> Plan:
        """Run one pass with its writes.

        An urgent status that comes with writes is left to the next pass, which begins with it (see `StatusThrottle`).
        """
        made, failures = self.plan(name), dict[str, str]()
        early = name in self._owed and made.status is not None
        self._owed.discard(name)
        if early:
            self._write_status(made)
        self._carry_out(made, failures)
        self.memory[name] = Memory(failures=failures)
        if made.status is not None and not early:
            if made.stages and made.urgent_status:
                self._owed.add(name)
            else:
                self._write_status(made)
        return made

    def settle(self, name: str = "j") -> Plan:
        """Run passes until nothing changes; return the last plan."""
        for _ in range(60):
            made = self.once(name)
            if not made.stages and made.status is None and name not in self._owed:
                return made
        raise AssertionError(f"never settles: {self.plan(name)}")

    def later(self, seconds: float) -> Plan:
        """Time passes, then the job is planned until nothing changes."""
        self.now += timedelta(seconds=seconds)
        return self.settle()

    def _carry_out(self, made: Plan, failures: dict[str, str]) -> None:
        for stage in made.stages:
            size, chains = stage.slow_start or len(stage.chains), list(stage.chains)
            while chains:
                batch, chains = [chain[0] for chain in chains[:size]], chains[size:]
                size *= 2
                self.batches += [[one.name for one in batch]] if batch[0].resource == POD else []
                happened = [self._happened(action, failures) for action in batch]
                if not all(happened):
                    return

    def _happened(self, action: Action, failures: dict[str, str]) -> bool:
        match action:
            case Patch() if action.resource == POD:
                return self._inject(action, failures)
            case Patch():
                self._write_job(action)
            case Delete():
                assert action.uid == self.jobs[action.name]["metadata"]["uid"]
                self.change(action.name, meta={"deletionTimestamp": rfc3339(self.now)})
            case _:
                raise AssertionError(f"nothing like that is planned: {action}")
        return True

    def _inject(self, action: Patch, failures: dict[str, str]) -> bool:
        assert action.subresource == "ephemeralcontainers"
        held = self.pods.get(action.name)
        meta: Json = held["metadata"] if held is not None else {}
        if held is None or (action.uid, action.resource_version) != (meta["uid"], meta["resourceVersion"]):
            self.conflicts += 1
            self.lagging.discard(action.name)  # a refused write is followed by a look
            self._tell(action.name)
            return False
        if action.name in self.refusals:
            failures[action.phase] = self.refusals[action.name]
            return False
        there = held["spec"]["ephemeralContainers"]
        new = action.body["spec"]["ephemeralContainers"]
        assert not {one["name"] for one in there} & {one["name"] for one in new}, "a container would be merged"
        self.lagging.discard(action.name)  # own writes are seen at once
        self.edit(action.name, {"spec": {"ephemeralContainers": [*there, *new]}})
        return True

    def _write_status(self, made: Plan) -> None:
        assert made.status is not None
        self.statuses += 1
        self._write_job(made.status)

    def _write_job(self, action: Patch) -> None:
        held = self.jobs[action.name]
        meta = held["metadata"]
        assert (action.uid, action.resource_version) == (meta["uid"], meta["resourceVersion"])
        document = patched(held, action)
        if ended(Rules(), document):
            del self.jobs[action.name]
            self.context.table(JOBS).remove("ns", action.name)
        else:
            self._store_job(document)

    def _decoded(self, name: str) -> EphemeralJob:
        return decoded(self.jobs[name], EphemeralJob)

    def _store_job(self, document: Json) -> None:
        name = document["metadata"]["name"]
        document["metadata"] = document["metadata"] | {"resourceVersion": str(next(self._versions))}
        self.jobs[name] = document
        self.context.put(JOBS, self._decoded(name))

    def _store_pod(self, document: Json) -> None:
        document["metadata"] = document["metadata"] | {"resourceVersion": str(next(self._versions))}
        name = document["metadata"]["name"]
        self.pods[name] = document
        if name not in self.lagging:
            self._tell(name)

    def _tell(self, name: str) -> None:
        if name in self.pods:
            self.context.put(PODS, decoded(self.pods[name], Pod))


def owned_by(pod: Json, uid: str) -> list[str]:
    """Return the names of the containers of the job with this uid."""
    mark = {"name": "KRUISE_EJOB_ID", "value": uid}
    return [one["name"] for one in pod["spec"]["ephemeralContainers"] if mark in one.get("env", [])]
