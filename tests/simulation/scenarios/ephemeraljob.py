"""EphemeralJobs: containers for pods that match, a few at a time, to their end (ephemeraljob.md §5 to §8).

The pods are bare: only users create and delete them. The command of a container decides what it does
(`cluster.ephemeral`).
"""

from collections.abc import Iterator
from functools import partial

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.plan import Frozen, Json
from tests.simulation.oracles.ephemerals import Ephemerals
from tests.simulation.scenarios.manifests import container, spec
from tests.simulation.scenarios.node_steps import WaitStatus
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import (
    NAMESPACE_NAME,
    BreakImage,
    Change,
    Create,
    Remove,
    Sleep,
    Stage,
    Step,
    WaitGone,
    until,
)

EVERY = 48
"""The ordinary sweep tries each so-many-th fault: the machinery is that of CloneSets."""

SLEEP = ("sleep", "inf")


def ephemeraljob(
    *names: str, name: str = "web", command: tuple[str, ...] = ("exit", "0"), image: str = "one", **spec: object
) -> Json:
    """Return a job that injects containers of these names (by default `dbg`) into the pods of the shop."""
    found = [
        container(image)
        | {
            "name": one,
            "command": list(command),
            "imagePullPolicy": "IfNotPresent",
            "terminationMessagePolicy": "File",
        }
        for one in names or ("dbg",)
    ]
    body = {
        "selector": {"matchLabels": {"app": "shop"}},
        "template": {"ephemeralContainers": found},
        "ttlSecondsAfterFinished": 86400,  # more than clocks may differ
        **spec,
    }
    metadata = {"name": name, "namespace": NAMESPACE_NAME}
    return {"apiVersion": EPHEMERAL_JOB.api_version, "kind": EPHEMERAL_JOB.kind, "metadata": metadata, "spec": body}


def pod(name: str, app: str = "shop") -> Json:
    """Return a pod that the job selects."""
    metadata = {"name": name, "namespace": NAMESPACE_NAME, "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container("one")]}}


class WaitPods(Step):
    """Wait until these pods run."""

    names: tuple[str, ...]

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            found = [stage.current.get(POD, NAMESPACE_NAME, name) or {} for name in self.names]
            return all(one.get("status", {}).get("phase") == "Running" for one in found)

        await until(stage, reached, str(self))


class Injected(Frozen):
    """Exactly these pods are there, with these ephemeral containers and their states, and the status says so."""

    pods: dict[str, dict[str, str]]
    status: Json = {}
    reason: str = ""  # of the condition that ends the job
    exists: bool = True

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        found = [msgspec.convert(one, type=Pod) for one in stage.current.all(POD, NAMESPACE_NAME)]
        if (pods := {one.metadata.name: _states(one) for one in found}) != self.pods:
            yield f"pods have {pods}, not {self.pods}"
        if restarted := [
            one.metadata.name for one in found if any(s.restart_count for s in one.status.container_statuses)
        ]:
            yield f"the containers of {restarted} were restarted"
        job = stage.current.get(kind, NAMESPACE_NAME, name)
        if (job is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        status: Json = (job or {}).get("status", {})
        for member, value in self.status.items():
            if status.get(member, 0) != value:
                yield f"status.{member} is {status.get(member)!r}, not {value!r}"
        reason = next((one["reason"] for one in status.get("conditions", ()) if one["type"] in ENDS), "")
        if reason != self.reason:
            yield f"ends for {reason!r}, not for {self.reason!r}"


ENDS = ("JobSucceeded", "JobFailed", "JobError")


def _states(found: Pod) -> dict[str, str]:
    """Return `ended 3`, `running` or `waiting`, by container."""
    states: dict[str, str] = {}
    for status in found.status.ephemeral_container_statuses:
        ended = status.state.terminated
        going = "running" if status.state.running else "waiting"
        states[status.name] = f"ended {ended.exit_code}" if ended else going
    return states


def every(*names: str, dbg: str = "ended 0") -> dict[str, dict[str, str]]:
    """Return the same container for each of the pods."""
    return {name: {"dbg": dbg} for name in names}


def counted(phase: str, match: int, **states: int) -> Json:
    """Return the status of the job."""
    return {"phase": phase, "match": match, **dict.fromkeys(("running", "succeeded", "failed", "waiting"), 0), **states}


def told(**least: int) -> Step:
    """Wait until the job's status has these counts."""
    return WaitStatus(name="web", kind=EPHEMERAL_JOB.kind, least=least)


def moved(name: str, app: str) -> Change:
    """Change the label of a pod."""
    return Change(patch={"metadata": {"labels": {"app": app}}}, name=name, kind="Pod")


def pods(*names: str) -> tuple[Step, ...]:
    """Create these pods, and wait until they run."""
    return (*(Create(document=pod(name)) for name in names), WaitPods(names=names))


ONE, TWO, THREE = ("a",), ("a", "b"), ("a", "b", "c")

injecting = partial(Scenario, kind=EPHEMERAL_JOB.kind, services=("jobs",), every=EVERY, exact=False, given=pods(*THREE))
"""A scenario about the EphemeralJob `web`, beside three pods."""

SCENARIOS = (
    injecting(
        name="injected-one-after-the-other",
        when=(Create(document=ephemeraljob()), told(succeeded=3)),
        then=Injected(pods=every(*THREE), status=counted("Succeeded", 3, succeeded=3), reason="JobSucceeded"),
    ),
    injecting(
        name="injected-as-many-as-are-wanted",
        given=(*pods(*THREE), Create(document=ephemeraljob("dbg", "net", replicas=2, parallelism=0))),
        when=(spec(parallelism=2), told(succeeded=2)),
        then=Injected(
            pods={"a": {"dbg": "ended 0", "net": "ended 0"}, "b": {"dbg": "ended 0", "net": "ended 0"}, "c": {}},
            status=counted("Succeeded", 2, succeeded=2),
            reason="JobSucceeded",
        ),
    ),
    injecting(
        name="injected-where-pods-come-and-go",
        given=(Create(document=ephemeraljob(replicas=2, parallelism=2, command=SLEEP)),),
        when=(
            *(*pods("a", "b"), told(running=2), Create(document=pod("c")), Create(document=pod("d", app="other"))),
            *(Remove(name="a", kind="Pod"), told(running=2), moved("b", "other"), moved("d", "shop")),
            *(WaitGone(name="a", kind="Pod"), told(match=2, running=2)),
        ),
        then=Injected(pods=every("b", "c", "d", dbg="running"), status=counted("Running", 2, running=2)),
    ),
    injecting(
        name="injected-beside-another-job",
        given=(*pods(*TWO), Create(document=ephemeraljob(name="first", replicas=1)), Sleep(seconds=2)),
        when=(
            Create(document=ephemeraljob()),
            Create(document=ephemeraljob("net", name="other", parallelism=2)),
            told(succeeded=1),
        ),
        then=Injected(
            pods={name: {"dbg": "ended 0", "net": "ended 0"} for name in TWO},
            status=counted("Succeeded", 1, succeeded=1),
            reason="JobSucceeded",
        ),
    ),
    injecting(
        name="injected-in-vain",
        when=(Create(document=ephemeraljob(command=("exit", "3"), parallelism=2)), told(failed=3)),
        then=Injected(pods=every(*THREE, dbg="ended 3"), status=counted("Failed", 3, failed=3), reason="CreateFailed"),
    ),
    injecting(
        name="injected-too-long",
        given=(*pods(*TWO), Create(document=ephemeraljob(command=SLEEP, activeDeadlineSeconds=8)), told(running=1)),
        when=(Sleep(seconds=1), Create(document=pod("c", app="other"))),
        then=Injected(
            pods={"a": {"dbg": "running"}, "b": {}, "c": {}},
            status=counted("Failed", 2, running=1),
            reason="DeadlineExceeded",
        ),
        timed=True,
        quiet=10,
    ),
    injecting(
        name="injected-and-gone-after-a-while",
        given=pods(*ONE),
        when=(Create(document=ephemeraljob(ttlSecondsAfterFinished=2)), WaitGone()),
        then=Injected(pods=every(*ONE), exists=False),
        timed=True,
    ),
    injecting(
        name="injected-until-it-is-deleted",
        given=(*pods(*TWO), Create(document=ephemeraljob(command=SLEEP)), told(running=1)),
        when=(Remove(), WaitGone(), Create(document=ephemeraljob()), told(succeeded=1)),
        then=Injected(
            pods={"a": {"dbg": "running"}, "b": {"dbg": "ended 0"}},
            status=counted("Succeeded", 1, succeeded=1),
            reason="JobSucceeded",
        ),
    ),
    injecting(
        name="injected-after-a-pause",
        given=(*pods(*TWO), Create(document=ephemeraljob(replicas=3, paused=True))),
        when=(
            *(spec(paused=False), told(succeeded=2), spec(paused=True), Create(document=pod("c"))),
            *(Sleep(seconds=1), spec(paused=False), told(succeeded=3)),
        ),
        then=Injected(pods=every(*THREE), status=counted("Succeeded", 3, succeeded=3), reason="JobSucceeded"),
    ),
    injecting(
        name="injected-when-the-image-can-be-pulled",
        given=(*pods(*TWO), BreakImage(image="two")),
        when=(
            *(Create(document=ephemeraljob(image="two", parallelism=2)), told(waiting=2)),
            *(BreakImage(image="two", mend=True), told(succeeded=2)),
        ),
        then=Injected(pods=every(*TWO), status=counted("Succeeded", 2, succeeded=2), reason="JobSucceeded"),
    ),
)

RULES = (Ephemerals,)
