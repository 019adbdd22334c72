"""Sidecars that end with the work of their pod, by the real agents of the nodes (container-extras.md §A)."""

from collections.abc import Iterator

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import mappings, member
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.plan import Frozen, Json
from tests.simulation.cluster.kubelet import EXITS_ANNOTATION, STOP_CODES_ANNOTATION
from tests.simulation.oracles.sidecar_termination import SidecarTermination
from tests.simulation.scenarios.pulls import EVERY
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import NAMESPACE_NAME, REPOSITORY, Create, Stage, Step, until

TERMINATE, IGNORE = "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT", "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE"


def job(
    *sidecars: tuple[str, bool], policy: str = "Never", code: int = 0, stop_codes: dict[str, int] | None = None
) -> Json:
    """Return a pod `web` whose main container ends with this code, with sidecars.

    The sidecars are given by name, and whether their exit codes are ignored.
    """
    exits = {EXITS_ANNOTATION: msgspec.json.encode({"main": code}).decode()}
    stops = {STOP_CODES_ANNOTATION: msgspec.json.encode(stop_codes or {}).decode()}
    containers = [{"name": "main", "image": REPOSITORY + "one"}]
    containers += [_sidecar(name, ignored) for name, ignored in sidecars]
    return {
        "apiVersion": "v1",
        "kind": POD.kind,
        "metadata": {"name": "web", "namespace": NAMESPACE_NAME, "annotations": exits | stops},
        "spec": {"containers": containers, "restartPolicy": policy},
    }


def _sidecar(name: str, ignored: bool) -> Json:
    names = (TERMINATE, IGNORE) if ignored else (TERMINATE,)
    env = [{"name": one, "value": "true"} for one in names]
    return {"name": name, "image": REPOSITORY + "one", "env": env}


class WaitEnded(Step):
    """Wait until nothing of the pod runs any more, and the node's agent has reported it."""

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            found = stage.current.get(POD, NAMESPACE_NAME, "web") or {}
            containers = mappings(member(found, "status").get("containerStatuses"))
            return bool(containers) and not any("running" in one["state"] for one in containers) and _told(stage)

        await until(stage, reached, str(self))


def _told(stage: Stage) -> bool:
    requests = stage.current.all(RECREATE_REQUEST, NAMESPACE_NAME)
    states = [mappings(member(one, "status").get("containerRecreateStates")) for one in requests]
    return bool(states) and all(of_one and all(one.get("isKilled") for one in of_one) for of_one in states)


class Ended(Frozen):
    """The pod and its request in the end."""

    phase: str
    asked: tuple[str, ...]  # containers of the request; empty: there is none

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        found = stage.current.get(POD, NAMESPACE_NAME, name)
        if found is None:
            yield "the pod is gone"
            return
        pod = msgspec.convert(found, Pod)
        if pod.status.phase != self.phase:
            yield f"the pod is {pod.status.phase}, not {self.phase}"
        if running := [one.name for one in pod.status.container_statuses if one.state.running]:
            yield f"{running} still run"
        requests = list(stage.current.all(RECREATE_REQUEST, NAMESPACE_NAME))
        asked = tuple(one["name"] for request in requests for one in request["spec"]["containers"])
        if asked != self.asked:
            yield f"asked to end {asked}, not {self.asked}"


def ending(name: str, document: Json, then: Ended) -> Scenario:
    """Return a scenario about the pod `web`."""
    return Scenario(
        name=name,
        given=(),
        when=(Create(document=document), WaitEnded()),
        then=then,
        kind=POD.kind,
        gates="SidecarTerminator=true",
        services=("jobs", "sidecar"),
        agents=3,
        every=2 * EVERY,
        exact=False,
        timed=True,
    )


SCENARIOS = (
    ending("sidecar-ended", job(("log", False)), Ended(phase="Succeeded", asked=("log",))),
    ending(
        "sidecar-ended-badly",
        job(("log", False), stop_codes={"log": 137}),
        Ended(phase="Failed", asked=("log",)),
    ),
    ending(
        "sidecar-ended-however",
        job(("log", True), policy="OnFailure", stop_codes={"log": 137}),
        Ended(phase="Succeeded", asked=("log",)),
    ),
    ending(
        "sidecars-ended-one-after-the-other",
        job(("log", False), ("mesh", True), stop_codes={"mesh": 137}),
        Ended(phase="Succeeded", asked=("log",)),
    ),
)
RULES = (SidecarTermination,)
