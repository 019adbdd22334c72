"""Short words for UnitedDeployments, their workloads and pods in tests of the planner."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.documents import merge
from flotilla_common.api.kinds.uniteddeployment.types import UnitedDeployment
from flotilla_common.api.workload import Workload
from flotilla_common.control.plan import Create, Delete, Patch, Plan
from flotilla_topology.uniteddeployment.children import CLONE_SETS, ChildKind
from flotilla_topology.uniteddeployment.plan import plan
from flotilla_topology.uniteddeployment.snapshot import UnitedDeploymentSnapshot
from tests.testkit import pods as pods_of
from tests.testkit.documents import Json, decoded, owner

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
OWNER = owner("UnitedDeployment", "ud", "u-ud")
REVISION = "apps.kruise.io/controller-revision-hash"
SUBSET = "apps.kruise.io/subset-name"


def at(seconds: float) -> str:
    """Return a time that many seconds after NOW."""
    return (NOW + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


class World:
    """A UnitedDeployment of CloneSets and its dependents. `step()` plans, and executes the plan."""

    def __init__(
        self, subsets: Sequence[Json], *, replicas: int = 4, kind: ChildKind = CLONE_SETS, **spec: Any
    ) -> None:
        self.kind = kind
        self.now = NOW
        self.version = 1
        self.owner: Json = {
            "metadata": {"name": "ud", "namespace": "ns", "uid": "u-ud", "generation": 1, "resourceVersion": "1"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "ud"}},
                "template": {kind.template: template("nginx:1")},
                "topology": {"subsets": list(subsets)},
                **spec,
            },
            "status": {},
        }
        self.workloads: list[Json] = []
        self.pods: list[Json] = []
        self.revisions: list[Json] = []

    def snapshot(self) -> UnitedDeploymentSnapshot:
        """Return the snapshot that the planner gets."""
        kinds = {one["kind"] for one in self.workloads}
        return UnitedDeploymentSnapshot(
            owner=decoded(self.owner, UnitedDeployment),
            workloads={
                name: [decoded(one, Workload) for one in self.workloads if one["kind"] == name] for name in kinds
            },
            pods={one["metadata"]["uid"]: self.pods_of(one) for one in self.workloads},
            taken_names={one["metadata"]["name"] for one in self.workloads},
            revisions=[decoded(one, ControllerRevision) for one in self.revisions],
        )

    def pods_of(self, workload: Json) -> list[Pod]:
        """Return the pods of a workload."""
        mine = workload["metadata"]["labels"][SUBSET]
        return [decoded(pod, Pod) for pod in self.pods if pod["metadata"]["labels"][SUBSET] == mine]

    def plan(self) -> Plan:
        """Plan a pass."""
        return plan(self.snapshot(), self.now)

    def step(self) -> Plan:
        """Plan a pass and carry it out."""
        made = self.plan()
        for action in made.actions:
            self._carry_out(action)
        if made.status is not None:
            self._patch(self.owner, made.status.body)
        return made

    def settle(self) -> None:
        """Plan until nothing is left to do; pods come, and are ready, at once."""
        for _ in range(10):
            self.run_pods()
            made = self.step()
            if not made.actions and made.status is None:
                return
        raise AssertionError("it does not come to rest")

    def run_pods(self, *, broken: Iterable[str] = ()) -> None:
        """Let each workload have the pods that it wants, ready but in the `broken` subsets.

        There they are pending since NOW. Existing pods of its revision stay unchanged.
        """
        for workload in self.workloads:
            labels, wanted = workload["spec"]["template"]["metadata"]["labels"], workload["spec"]["replicas"]
            subset = labels[SUBSET]
            names = [f"{subset}-{number}" for number in range(wanted)]
            held = [pod["metadata"] for pod in self.pods]
            kept = {
                meta["name"]: pod
                for meta, pod in zip(held, self.pods, strict=True)
                if labels.items() <= meta["labels"].items()
            }
            self.pods = [pod for pod in self.pods if pod["metadata"]["labels"][SUBSET] != subset]
            self.pods += [kept.get(name) or pod_of(name, labels, ready=subset not in broken) for name in names]
            ready = sum(pod.ready for pod in self.pods_of(workload))
            workload["status"] = {"replicas": wanted, "readyReplicas": ready}

    def replicas(self) -> dict[str, int]:
        """Return the replicas by subset, as the workloads have them."""
        return {one["metadata"]["labels"][SUBSET]: one["spec"]["replicas"] for one in self.workloads}

    def workload(self, subset: str) -> Json:
        """Return the workload of a subset."""
        (found,) = (one for one in self.workloads if one["metadata"]["labels"][SUBSET] == subset)
        return found

    def change(self, patch: Json) -> None:
        """Change the spec."""
        self._patch(self.owner, {"spec": patch})
        self.owner["metadata"]["generation"] += 1

    def subset_condition(self, name: str) -> Json:
        """Return the condition of a subset; empty without one."""
        (found,) = (one for one in self.owner["status"]["subsetStatuses"] if one["name"] == name)
        conditions: list[Json] = found.get("conditions", [])
        return conditions[0] if conditions else {}

    def _carry_out(self, action: Create | Patch | Delete) -> None:
        held = {"ControllerRevision": self.revisions, "Pod": self.pods}.get(action.resource.kind, self.workloads)
        if isinstance(action, Create):
            self.version += 1
            meta = {"uid": f"u-{action.name}", "creationTimestamp": at(self.version), "resourceVersion": "1"}
            body = action.body | {"metadata": action.body["metadata"] | meta}
            if held is self.workloads:
                body["kind"] = self.kind.name
            held.append(body)
            return
        found = next((one for one in held if one["metadata"]["uid"] == action.uid), None)
        if found is None:  # a patch of nothing that makes sure of the owner
            assert action.uid == "u-ud"
        elif isinstance(action, Delete):
            held.remove(found)
        else:
            self._patch(found, action.body)

    def _patch(self, document: Json, patch: Json) -> None:
        self.version += 1
        after = merge(document, patch)
        document.clear()
        document.update(after)
        document["metadata"]["resourceVersion"] = str(self.version)


def template(image: str) -> Json:
    """Return the template of a workload."""
    pod = {"metadata": {"labels": {"app": "ud"}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    spec = {"selector": {"matchLabels": {"app": "ud"}}, "template": pod}
    return {"metadata": {"labels": {"app": "ud"}}, "spec": spec}


def pod_of(name: str, labels: Json, *, ready: bool = True, since: float = 0) -> Json:
    """Return a pod that is ready since NOW, or finds no node."""
    found = {"type": "Ready", "status": "True", "lastTransitionTime": at(since)}
    lost = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": at(since)}
    return pods_of.pod(
        name,
        "ns",
        uid=f"u-{name}",
        labels=dict(labels),
        created=at(since),
        node="node-1" if ready else "",
        phase="Running" if ready else "Pending",
        conditions=[found if ready else lost],
    )


def intents(made: Plan) -> list[str]:
    """Return the intents of the plan's writes, each with its kind."""
    return [f"{action.intent.value} {action.resource.kind}" for action in made.actions]
