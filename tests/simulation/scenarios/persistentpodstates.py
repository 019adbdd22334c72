"""Where pods of StatefulSets ran is recorded as long as the set says so, and its pods come back to there."""

from collections.abc import Iterator

import msgspec

from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE, PersistentPodState
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Json
from tests.simulation.scenarios.manifests import image, running, spec, statefulset
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.statefulset import in_sets
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Change, Remove, Stage, Wait

SWITCH = "kruise.io/auto-generate-persistent-pod-state"
TOPOLOGY = "kruise.io/required-persistent-topology"
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def kept(replicas: int = 2) -> Json:
    """A StatefulSet whose pods come back to their zones."""
    document = statefulset(replicas)
    document["metadata"]["annotations"] = {SWITCH: "true", TOPOLOGY: ZONE}
    return document


def annotate(key: str, value: str | None) -> Change:
    """Change an annotation of the set."""
    return Change(patch={"metadata": {"annotations": {key: value}}})


def state(**members: object) -> Change:
    """Change the PersistentPodState's spec, as a user does."""
    return Change(patch={"spec": members}, kind=PERSISTENT_POD_STATE.kind)


class Recorded(End, kw_only=True):
    """Of these pods it is recorded where they ran, by these labels of nodes; None: nothing remembers anything."""

    records: tuple[str, ...] | None
    labels: tuple[str, ...] = (ZONE,)

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """How what there is differs."""
        yield from super().problems(stage, name, kind)
        document = stage.sight.get(PERSISTENT_POD_STATE, NAMESPACE_NAME, name)
        if (document is None) != (self.records is None):
            yield f"a PersistentPodState {'does not exist' if document is None else 'still exists'}"
        elif document is not None:
            yield from self._differences(msgspec.convert(document, PersistentPodState))

    def _differences(self, found: PersistentPodState) -> Iterator[str]:
        states = found.status.pod_states
        if sorted(states) != sorted(self.records or ()):
            yield f"recorded are {sorted(states)}"
        for pod, one in states.items():
            if tuple(sorted(one.node_topology_labels)) != tuple(sorted(self.labels)):
                yield f"{pod} is recorded by {sorted(one.node_topology_labels)}"


class Back(Recorded, kw_only=True):
    """The second pod is on the second node, where it was; another one is empty."""

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """How what there is differs."""
        yield from super().problems(stage, name, kind)
        nodes = {pod.metadata.name: pod.spec.node_name for pod in stage.sight.pods(NAMESPACE_NAME, name)}
        if nodes != {"web-0": "node-1", "web-1": "node-2"}:
            yield f"the pods are on {nodes}"


BOTH = ("web-0", "web-1")
SCENARIOS = in_sets(
    Scenario(
        name="pod-comes-back-to-its-node",
        given=running(kept()),
        when=(Remove(name="web-1", kind="Pod"), Wait(pods=1), Wait(pods=2, serving=2)),
        then=Back(pods={"one": 2}, records=BOTH),
        exact=False,
    ),
    Scenario(
        name="records-outlive-an-update",
        given=running(kept()),
        when=(image("two"), Wait(image="two", matching=2, serving=2)),
        then=Recorded(pods={"two": 2}, records=BOTH),
        exact=False,
    ),
    Scenario(
        name="records-go-with-pods-that-are-scaled-away",
        given=running(kept(3)),
        when=(spec(replicas=2), Wait(pods=2)),
        then=Recorded(pods={"one": 2}, records=BOTH),
        exact=False,
    ),
    Scenario(
        name="records-stay-until-the-set-goes",
        given=running(kept(3)),
        when=(state(persistentPodStateRetentionPolicy="WhenDeleted"), spec(replicas=2), Wait(pods=2)),
        then=Recorded(pods={"one": 2}, records=(*BOTH, "web-2")),
        exact=False,
    ),
    Scenario(
        name="topology-changed",
        given=running(kept()),
        when=(annotate(TOPOLOGY, HOST),),
        then=Recorded(pods={"one": 2}, records=BOTH, labels=(HOST,)),
        exact=False,
    ),
    Scenario(
        name="topology-changed-and-forgotten",
        given=running(kept()),
        when=(annotate(TOPOLOGY, HOST), annotate(SWITCH, None)),
        then=Recorded(pods={"one": 2}, records=None),
        exact=False,
    ),
)
