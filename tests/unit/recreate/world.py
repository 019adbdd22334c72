"""A world of one pod and its requests, in which plans are executed at once and time passes when a test lets it.

The test acts as the kubelet and the node's agent: it changes the pod and reports.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST, RecreateState
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Action, Create, Delete, Plan
from flotilla_common.model.writes import Write
from flotilla_common.node.reports import RecreateReport
from flotilla_jobs.containerrecreate.controller import PODS, REQUESTS, Gatherer
from flotilla_jobs.containerrecreate.merge import absorbed
from flotilla_jobs.containerrecreate.plan import plan
from tests.support import fake_clock
from tests.support.controller_context import FakeContext
from tests.testkit import pods as pods_of
from tests.testkit.cluster import Cluster
from tests.testkit.documents import Json, conditions, metadata
from tests.testkit.pods import container

START = datetime(2026, 3, 1, 8, 0, 0, tzinfo=UTC)
ACTIVE, FINALIZER = "crr.apps.kruise.io/active", "crr.apps.kruise.io/unready-acquired"
PASSES = 10
"""More passes in a row than anything needs: a plan that never rests is a bug."""


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def status_of(name: str, identity: str, restarts: int = 0, *, ready: bool = True, since: str = "") -> Json:
    state = {"running": {"startedAt": since or stamp(START - timedelta(hours=1))}}
    return {"name": name, "containerID": identity, "restartCount": restarts, "ready": ready, "state": state}


def pod_document(*, gated: bool = True, uid: str = "p1") -> Json:
    gates = ["KruisePodReady"] if gated else []
    return pods_of.pod(
        "p",
        "ns",
        uid=uid,
        version=1,
        node="n",
        containers=[container("app"), container("side")],
        gates=gates,
        phase="Running",
        conditions=conditions(dict.fromkeys(("Ready", "ContainersReady", *gates), True)),
        statuses=[status_of("app", "containerd://c1"), status_of("side", "containerd://c2")],
    )


def request_document(*containers: str, name: str = "r", strategy: Json | None = None, **spec: Any) -> Json:
    """Return a request for the pod as admission leaves it."""
    contexts = {"app": "containerd://c1", "side": "containerd://c2"}
    labels = {"pod-uid": "p1", "node-name": "n", "active": "true"}
    return {
        "metadata": metadata(
            name,
            "ns",
            uid=f"uid-{name}",
            version=2,
            created=stamp(START),
            labels={f"crr.apps.kruise.io/{key}": value for key, value in labels.items()},
        ),
        "spec": {
            "podName": "p",
            "containers": [
                {"name": one, "statusContext": {"containerID": contexts[one], "restartCount": 0}} for one in containers
            ],
            "strategy": {"failurePolicy": "Fail"} | (strategy or {}),
            **spec,
        },
    }


class World(Cluster):
    """Requests and one pod, and the writes that were made."""

    def __init__(self, *requests: Json, pod: Json | None = None, heard_of_pod: bool = True) -> None:
        super().__init__((PODS, REQUESTS), clock=(context := FakeContext()).clock, context=context, namespace="ns")
        self.context.clock.time = (START - fake_clock.START).total_seconds()
        self.objects._version = 100  # recordings of plans name the versions of objects
        self.gatherer = Gatherer(self.context)
        self.requests, self.pods = self.context.table(REQUESTS), self.context.table(PODS)
        self.log: list[str] = []
        self.last = Plan()
        if heard_of_pod:
            self.put(POD, pod or pod_document())
        for request in requests:
            self.put(RECREATE_REQUEST, request)

    @property
    def pod(self) -> Json:
        return self.held(POD, "p")

    def request(self, name: str = "r") -> Json:
        return self.held(RECREATE_REQUEST, name)

    def status(self, name: str = "r") -> Json:
        return self.request(name).get("status", {})

    def holders(self) -> Json:
        """Return the pod's KruisePodReady condition."""
        return next(one for one in self.pod["status"]["conditions"] if one["type"] == "KruisePodReady")

    def codes(self) -> list[str]:
        return [reason.code for reason in self.last.reasons]

    def passes(self, seconds: float = 0, name: str = "r") -> list[str]:
        """Let time pass, then plan until there is nothing more to write; returns what was written."""
        self.context.clock.time += seconds
        begun = len(self.log)
        for _ in range(PASSES):
            snapshot = self.gatherer.gather(("ns", name), msgspec.UNSET)  # type: ignore[arg-type]
            if snapshot is None:
                return self.log[begun:]
            self.last = plan(snapshot, self.now)
            actions = self.last.actions
            actions += [self.last.status] if self.last.status else []
            for action in actions:
                self.write(action)
            if not actions:
                return self.log[begun:]
        raise AssertionError(f"never settles: {self.log[begun:]}")

    def report(self, *states: RecreateState, phase: str = "", message: str = "", name: str = "r") -> None:
        """Report states as the agent, and absorb them."""
        told = RecreateReport(uid=f"uid-{name}", phase=phase, message=message, states=list(states) or None)
        self.context.reports[name] = told
        self.passes(name=name)
        held = self.requests.get("ns", name)
        assert held is None or absorbed(held, told, self.now)
        del self.context.reports[name]

    def write(self, action: Action) -> Write:
        assert not isinstance(action, Create)
        kind = action.resource.kind.removeprefix("ContainerRecreate").lower()
        self.log.append("delete" if isinstance(action, Delete) else f"{kind} {action.cause}")
        return super().write(action)

    def restart(self, name: str, identity: str, restarts: int = 1, *, ready: bool = True) -> None:
        """Run a new container as the kubelet does."""
        new = status_of(name, identity, restarts, ready=ready, since=stamp(self.now))
        others = [one for one in self.pod["status"]["containerStatuses"] if one["name"] != name]
        self.put(POD, merge(self.pod, {"status": {"containerStatuses": [new, *others]}}))

    def stop(self, name: str) -> None:
        """Let the container exit, which is not running again yet."""
        statuses = self.pod["status"]["containerStatuses"]
        changed = [one | {"ready": False, "state": {"waiting": {}}} if one["name"] == name else one for one in statuses]
        self.put(POD, merge(self.pod, {"status": {"containerStatuses": changed}}))

    def delete_pod(self) -> None:
        self.vanish(POD, "p")

    def delete_request(self, name: str = "r") -> None:
        """Delete the request as a user does; finalizers hold it."""
        self.edit(RECREATE_REQUEST, name, {"metadata": {"deletionTimestamp": stamp(self.now)}})


def state(name: str, phase: str, message: str = "", *, killed: bool = False) -> RecreateState:
    return RecreateState(name=name, phase=phase, message=message, is_killed=killed)
