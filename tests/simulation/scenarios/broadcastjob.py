"""The terms and the final state of a BroadcastJob; its scenarios are in files of their own."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, NAME_LABEL, UID_LABEL
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.resources import POD, Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Frozen, Json
from tests.simulation.cluster.kubelet import EXITS_ANNOTATION
from tests.simulation.oracles.broadcasts import Broadcasts
from tests.simulation.oracles.node_history import node_of
from tests.simulation.oracles.terms import Terms
from tests.simulation.oracles.view import of_kind
from tests.simulation.oracles.write_budget import WriteBudget
from tests.simulation.scenarios.current_state import owner_name
from tests.simulation.scenarios.manifests import template
from tests.simulation.scenarios.node_steps import WaitStatus
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import NAMESPACE_NAME, ChangePod, Create, Remove, Stage, Step, until

EVERY = 48
"""The ordinary sweep tries each so-many-th fault: the machinery is that of CloneSets."""

LASTING = None
"""The exit of pods that do not end by themselves."""


def broadcastjob(
    *,
    name: str = "web",
    exits: int | list[int] | None = 0,
    policy: str = "Never",
    pods: Json | None = None,
    **spec: object,
) -> Json:
    """Return a BroadcastJob whose pods end with this code. `pods`: more of their spec; `policy`: of restarts."""
    metadata = {"name": name, "namespace": NAMESPACE_NAME}
    body = {"template": job_template(exits, policy, pods), **spec}
    return {"apiVersion": BROADCAST_JOB.api_version, "kind": BROADCAST_JOB.kind, "metadata": metadata, "spec": body}


def job_template(exits: int | list[int] | None = 0, policy: str = "Never", pods: Json | None = None) -> Json:
    """Return a template of pods that end."""
    made = template("one")
    if exits is not LASTING:
        made["metadata"]["annotations"] = {EXITS_ANNOTATION: msgspec.json.encode({"main": exits}).decode()}
    made["spec"] |= {"restartPolicy": policy, **(pods or {})}
    return made


def end_pod(node: str, code: int = 0) -> ChangePod:
    """End the container of the pod on a node with this code."""
    exits = {EXITS_ANNOTATION: msgspec.json.encode({"main": code}).decode()}
    return ChangePod(patch={"metadata": {"annotations": exits}}, node=node)


def end_pods(*nodes: str) -> tuple[ChangePod, ...]:
    """Let the pods on these nodes succeed."""
    return tuple(map(end_pod, nodes))


def told(**least: int) -> Step:
    """Wait until the job's status has these counts."""
    return WaitStatus(name="web", kind=BROADCAST_JOB.kind, least=least)


class WaitRunning(Step):
    """Wait until this number of the job's pods run, or those of exactly these nodes."""

    pods: int = 0
    nodes: tuple[str, ...] = ()

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            active = stage.current.pods(NAMESPACE_NAME, "web")
            running = sorted(node_of(pod) for pod in active if pod.status.phase == "Running")
            return len(active) == len(running) == self.pods or (bool(self.nodes) and running == [*self.nodes])

        await until(stage, reached, str(self))


class RemoveEndedPod(Step):
    """`kubectl delete pod` of the job's pod on a node, which has ended."""

    node: str

    async def play(self, stage: Stage) -> None:
        for one in stage.current.all(POD, NAMESPACE_NAME):
            pod = msgspec.convert(one, type=Pod)
            if node_of(pod) == self.node and owner_name(pod) == "web":
                await Remove(name=pod.metadata.name, kind="Pod").play(stage)


class OnNodes(Frozen):
    """Exactly these nodes have a pod, in these phases; and the status says so."""

    pods: dict[str, str] = {}
    phase: str = ""
    counts: dict[str, int] = {}
    killed: int = 0  # pods that went when the job failed: of these, a service that dies may forget to tell
    exists: bool = True
    verdict: str = ""  # the message of the condition that ends it

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        found = [msgspec.convert(one, type=Pod) for one in stage.current.all(POD, NAMESPACE_NAME)]
        pods = sorted((node_of(pod), pod.status.phase) for pod in found if owner_name(pod) == name)
        if pods != sorted(self.pods.items()):
            yield f"pods are {pods}, not {sorted(self.pods.items())}"
        job = stage.current.get(kind, NAMESPACE_NAME, name)
        if (job is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        status: Json = (job or {}).get("status", {})
        if job is not None and status.get("phase") != self.phase:
            yield f"the phase is {status.get('phase')!r}, not {self.phase!r}"
        for member, value in self.counts.items():
            least = value - self.killed if member == "failed" else value
            if not least <= status.get(member, -1) <= value:
                yield f"status.{member} is {status.get(member)!r}, not {value!r}"
        verdict = next((one["message"] for one in status.get("conditions", ())), "")
        if verdict != self.verdict:
            yield f"the verdict is {verdict!r}, not {self.verdict!r}"


def on(
    phase: str = "completed",
    *,
    verdict: str | None = None,
    desired: int | None = None,
    succeeded: str = "",
    failed: str = "",
    running: str = "",
    killed: int = 0,
) -> OnNodes:
    """Return the final state by the numbers of nodes: `on(succeeded="12", failed="3")`. `killed`: deleted pods."""
    told = {"Succeeded": succeeded, "Failed": failed, "Running": running}
    counts = {
        "desired": sum(map(len, told.values())) if desired is None else desired,
        "active": len(running),
        "succeeded": len(succeeded),
        "failed": len(failed) + killed,
    }
    if verdict is None:
        numbers = f"{len(succeeded)} pods succeeded, {len(failed)} pods failed"
        verdict = f"Job completed, {numbers}" if phase == "completed" else ""
    pods = {f"node-{number}": name for name, numbers in told.items() for number in numbers}
    return OnNodes(pods=pods, phase=phase, counts=counts, killed=killed, verdict=verdict)


GONE = OnNodes(exists=False)

broadcasting = partial(
    Scenario, kind=BROADCAST_JOB.kind, services=("jobs",), every=EVERY, exact=False, timed=False, given=()
)
"""A scenario about the BroadcastJob `web`."""


def created(**members: Any) -> tuple[Step, ...]:
    """Create the job, and wait until three pods of it run. They run until a step ends them."""
    return Create(document=broadcastjob(exits=LASTING, **members)), WaitRunning(pods=3)


def broadcastjob_terms(document: Json) -> Terms:
    """Return the terms that the rules of all workloads check."""
    metadata = document["metadata"]
    labels = {NAME_LABEL: metadata["name"], UID_LABEL: metadata["uid"]}
    return Terms(
        selector=Selector.compile(LabelSelector(match_labels=labels)),
        replicas=0,  # what must be left is judged by nodes
        stateless=True,
        terminating="deletionTimestamp" in metadata,
    )


TERMS = {BROADCAST_JOB: broadcastjob_terms}
RULES = (Broadcasts, lambda: of_kind(BROADCAST_JOB, WriteBudget()))
