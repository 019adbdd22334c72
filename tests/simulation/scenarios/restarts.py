"""Containers restarted on request, by the real agents of the nodes (containerrecreaterequest.md)."""

from collections.abc import Iterator

from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Frozen, Json
from flotilla_common.workload.predicates import is_serving
from tests.simulation.scenarios.manifests import cloneset, running
from tests.simulation.scenarios.pulls import EVERY
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Create, Stage, Step, until


class Restart(Step):
    """A request to restart the container of the nth-oldest pod."""

    name: str
    nth: int = 0
    strategy: Json = {}

    async def play(self, stage: Stage) -> None:
        pod = stage.pod(self.nth, "web")
        if pod is not None:
            spec = {"podName": pod.metadata.name, "containers": [{"name": "main"}], "strategy": self.strategy}
            metadata = {"name": self.name, "namespace": NAMESPACE_NAME}
            kind, version = RECREATE_REQUEST.kind, RECREATE_REQUEST.api_version
            document = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
            await Create(document=document).play(stage)


class WaitRestarted(Step):
    """Wait until all requests are completed."""

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            requests = stage.current.all(RECREATE_REQUEST, NAMESPACE_NAME)
            return all(one.get("status", {}).get("phase") == "Completed" for one in requests)

        await until(stage, reached, str(self))


class Restarted(Frozen):
    """The completion of every request, and how often each container was stopped, oldest pod first."""

    stops: tuple[int, ...]

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        del kind
        pods = stage.current.pods(NAMESPACE_NAME, name)
        stopped = [pod for machine in stage.world.machines.values() for pod, _ in machine.stops]
        stops = tuple(stopped.count(pod.metadata.name) for pod in pods)
        if stops != self.stops:
            yield f"containers were stopped {stops} times, not {self.stops}"
        if not all(is_serving(pod) for pod in pods):
            yield "a pod does not serve"
        for request in stage.current.all(RECREATE_REQUEST, NAMESPACE_NAME):
            states = request.get("status", {}).get("containerRecreateStates", ())
            told = request.get("status", {}).get("phase"), [(one["phase"], one.get("isKilled")) for one in states]
            if told != ("Completed", [("Succeeded", True)]):
                yield f"request {request['metadata']['name']} ends as {told}"


def restarting(name: str, *when: Step, stops: tuple[int, ...]) -> Scenario:
    """Return a scenario with two pods."""
    return Scenario(
        name=name,
        given=running(cloneset(2)),
        when=(*when, WaitRestarted()),
        then=Restarted(stops=stops),
        services=("cloneset", "jobs"),
        agents=3,
        every=2 * EVERY,
        exact=False,
        timed=True,
    )


SCENARIOS = (
    restarting("container-restarted", Restart(name="once"), stops=(1, 0)),
    restarting(
        "container-restarted-twice-by-force",
        Restart(name="first"),
        Restart(name="second", strategy={"forceRecreate": True}),
        stops=(2, 0),
    ),
    restarting(
        "container-restarted-out-of-service",
        Restart(name="gently", nth=1, strategy={"unreadyGracePeriodSeconds": 1}),
        stops=(0, 1),
    ),
)
