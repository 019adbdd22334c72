"""A small cluster around EphemeralJobs, in which tests act as the kubelets."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB, EphemeralJob, EphemeralJobStatus
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.clock import ManualClock
from flotilla_common.control.plan import Action, Create, Outcome, OutcomeKind, Patch, Plan
from flotilla_common.model.writes import Write
from flotilla_jobs.ephemeraljob.controller import CONTROLLER, Gatherer
from flotilla_jobs.ephemeraljob.snapshot import EphemeralJobSnapshot
from tests.testkit import pods as pods_of
from tests.testkit.cluster import ControllerCluster
from tests.testkit.documents import Json, decoded, metadata

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


class World(ControllerCluster[EphemeralJobSnapshot, Gatherer]):
    """Pods `p1`, `p2`, … and jobs; `refusals` are those of injections, by pod."""

    def __init__(self, pods: int = 5, **spec: Any) -> None:
        super().__init__(CONTROLLER, "j", namespace="ns", clock=ManualClock(NOW))
        self.refusals: dict[str, str] = {}
        self.refuse = self._refusal
        for number in range(1, pods + 1):
            self.pod(f"p{number}", age=number)
        self.job(**spec)

    # What people and kubelets do.

    def job(self, name: str = "j", containers: Sequence[Json] | None = None, **spec: Any) -> None:
        """Create a job, with a finalizer from an earlier pass."""
        template = {"ephemeralContainers": [container()] if containers is None else list(containers)}
        given = {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}
        self.put(EPHEMERAL_JOB, {"metadata": metadata(name, uid=f"uid-{name}", finalizers=[FINALIZER]), "spec": given})

    def change(self, name: str = "j", *, meta: Json | None = None, status: Json | None = None, **spec: Any) -> None:
        """Patch a job from outside."""
        patch = {"spec": spec, "metadata": meta or {}, "status": status or {}}
        self.put(EPHEMERAL_JOB, merge(self.jobs[name], patch))

    def pod(self, name: str, age: int = 0, phase: str = "Running", **labels: str) -> None:
        """Create a pod that matches, unless its labels differ."""
        made = rfc3339(NOW - timedelta(hours=1) + timedelta(seconds=age))
        meta = {"created": made, "labels": labels or {"app": "web"}, "uid": f"uid-{name}-{next(self._numbers)}"}
        spec: Json = {"ephemeralContainers": []}
        self.put(POD, pods_of.pod(name, "ns", node="n1", spec=spec, phase=phase, **meta))

    def edit_pod(self, name: str, patch: Json) -> None:
        """Patch a pod from outside."""
        self.put(POD, merge(self.pods[name], patch))

    def kubelet(self, *those: str, state: str, name: str = "dbg") -> None:
        """Report the container's state in these pods, as a kubelet does."""
        for pod in those:
            statuses = self.pods[pod]["status"].get("ephemeralContainerStatuses", [])
            others = [one for one in statuses if one["name"] != name]
            told = {"name": name, "state": STATES[state]}
            self.edit_pod(pod, {"status": {"ephemeralContainerStatuses": [*others, told]}})

    def catch_up(self) -> None:
        """Update the tables completely."""
        self.lagging.clear()
        for document in self.pods.values():
            self.show(POD, document)

    # What is there.

    @property
    def pods(self) -> dict[str, Json]:
        return {one["metadata"]["name"]: one for one in self.objects.all(POD)}

    @property
    def jobs(self) -> dict[str, Json]:
        return {one["metadata"]["name"]: one for one in self.objects.all(EPHEMERAL_JOB)}

    @property
    def injections(self) -> list[list[str]]:
        """Return the pods that were injected at the same time, in order."""
        return [[one.name for one in batch] for batch in self.batches if batch[0].resource == POD]

    def status(self, name: str = "j") -> EphemeralJobStatus:
        return decoded(self.jobs[name], EphemeralJob).status

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

    def later(self, seconds: float) -> Plan:
        """Time passes, then the job is planned until nothing changes."""
        self.wait(seconds)
        return self.settle()

    def write(self, action: Action) -> Write:
        assert not isinstance(action, Create), f"nothing like that is planned: {action}"
        assert action.uid
        if isinstance(action, Patch):
            assert action.resource_version
        if isinstance(action, Patch) and action.resource == POD:
            assert action.subresource == "ephemeralcontainers"
            there, new = (one["spec"]["ephemeralContainers"] for one in (self.pods[action.name], action.body))
            assert not {one["name"] for one in there} & {one["name"] for one in new}, "a container would be merged"
        return super().write(action)

    def _refusal(self, action: Action) -> Outcome | None:
        text = self.refusals.get(action.name, "") if action.resource == POD else ""
        return Outcome(kind=OutcomeKind.INVALID, message=text) if text else None


def owned_by(pod: Json, uid: str) -> list[str]:
    """Return the names of the containers of the job with this uid."""
    mark = {"name": "KRUISE_EJOB_ID", "value": uid}
    return [one["name"] for one in pod["spec"]["ephemeralContainers"] if mark in one.get("env", [])]
