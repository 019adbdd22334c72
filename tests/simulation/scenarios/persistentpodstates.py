"""Where pods of StatefulSets ran is recorded as long as the set says so, and its pods come back to there."""

from collections.abc import Iterator

from flotilla_common.api.resources import Resource
from tests.simulation.scenarios.manifests import running, statefulset
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.statefulset import in_sets
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Change, Remove, Stage, Wait

SWITCH = "kruise.io/auto-generate-persistent-pod-state"
TOPOLOGY = "kruise.io/required-persistent-topology"
KEPT = statefulset(2)
KEPT["metadata"]["annotations"] = {SWITCH: "true", TOPOLOGY: "topology.kubernetes.io/zone"}


def annotate(key: str, value: str | None) -> Change:
    """Change an annotation of the set."""
    return Change(patch={"metadata": {"annotations": {key: value}}})


class Back(End):
    """The second pod is on the second node, where it was; another one is empty."""

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """How what there is differs."""
        yield from super().problems(stage, name, kind)
        nodes = {pod.metadata.name: pod.spec.node_name for pod in stage.sight.pods(NAMESPACE_NAME, name)}
        if nodes != {"web-0": "node-1", "web-1": "node-2"}:
            yield f"the pods are on {nodes}"


SCENARIOS = in_sets(
    Scenario(
        name="pod-comes-back-to-its-node",
        given=running(KEPT),
        when=(Remove(name="web-1", kind="Pod"), Wait(pods=1), Wait(pods=2, serving=2)),
        then=Back(pods={"one": 2}),
        exact=False,
    ),
    Scenario(
        name="topology-changed-and-forgotten",
        given=running(KEPT),
        when=(annotate(TOPOLOGY, "kubernetes.io/hostname"), annotate(SWITCH, None)),
        then=End(pods={"one": 2}),
        exact=False,
    ),
)
