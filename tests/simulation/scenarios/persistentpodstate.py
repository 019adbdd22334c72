"""PersistentPodStates: records of a StatefulSet's pods, generated or created by users, and pods that come back.

The rules are in persistentpodstate.md §4 to §6.
"""

from collections.abc import Iterator, Mapping
from functools import partial

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import Resource
from flotilla_common.control.plan import Frozen, Json
from tests.simulation.oracles.pod_states import AUTO, PodStates
from tests.simulation.scenarios.manifests import cordoned, running, statefulset
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Change, Create, Remove, Stage, Step, Wait, until

EVERY = 6
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED, PREFERRED = "kruise.io/required-persistent-topology", "kruise.io/preferred-persistent-topology"
INJECTED = "kruise.io/injected-persistent-pod-state"
ASKING: Mapping[str, str | None] = {AUTO: "true", REQUIRED: HOST, PREFERRED: ZONE}
NODES = ("node-1", "node-2", "node-3")
"""The emptiest node gets the next pod: those of a set that is made in order are spread in this order."""


def places(*nodes: str) -> dict[str, str]:
    """Pods of `web` from 0 on, by name, and where they run."""
    return {f"web-{ordinal}": node for ordinal, node in enumerate(nodes)}


class Recorded(Frozen):
    """The PersistentPodState in the end, and that pods are where it says."""

    records: dict[str, str] = {}  # pods, and the nodes that are remembered
    labels: frozenset[str] = frozenset({HOST, ZONE})  # of nodes, that each record has
    spec: Json = {}  # members of its spec
    returned: tuple[str, ...] = ()  # pods that were made anew and bound to where they had been
    exists: bool = True

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        document = stage.current.get(kind, NAMESPACE_NAME, name)
        if (document is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        states = states_of(document)
        if (nodes := {pod: state["nodeName"] for pod, state in states.items()}) != self.records:
            yield f"records are {nodes}, not {self.records}"
        for pod, state in states.items():
            if state.get("nodeTopologyLabels", {}).keys() != self.labels:
                yield f"the record of {pod} is {state}, not of {sorted(self.labels)}"
        spec: Json = (document or {}).get("spec", {})
        for member, value in self.spec.items():
            if spec.get(member) != value:
                yield f"spec.{member} is {spec.get(member)!r}, not {value!r}"
        pods = stage.current.pods(NAMESPACE_NAME, "web")
        yield from self._misplaced(pods)
        if (found := tuple(pod.metadata.name for pod in pods if INJECTED in pod.metadata.annotations)) != self.returned:
            yield f"bound to where they had been are {found}, not {self.returned}"

    def _misplaced(self, pods: list[Pod]) -> Iterator[str]:
        for pod in pods:
            wanted = self.records.get(pod.metadata.name, pod.spec.node_name)
            if not pod.ready or pod.spec.node_name != wanted:
                yield f"{pod.metadata.name} does not serve on {wanted}"


class WaitRecords(Step):
    """Wait until exactly these pods are recorded, with the newest spec."""

    pods: tuple[str, ...]
    name: str = "web"

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            document = stage.current.get(PERSISTENT_POD_STATE, NAMESPACE_NAME, self.name) or {}
            seen = document.get("status", {}).get("observedGeneration")
            newest = document.get("metadata", {}).get("generation", 0)
            return seen == newest and tuple(sorted(states_of(document))) == self.pods

        await until(stage, reached, str(self))


class WaitKeys(Step):
    """Wait until the spec requires these labels."""

    keys: tuple[str, ...]

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            document = stage.current.get(PERSISTENT_POD_STATE, NAMESPACE_NAME, "web") or {}
            return tuple(document.get("spec", {}).get("requiredPersistentTopology", {}).get("keys", ())) == self.keys

        await until(stage, reached, str(self))


def states_of(document: Json | None) -> Mapping[str, Json]:
    """Return the records, by pod."""
    return (document or {}).get("status", {}).get("podStates", {})


def asking(replicas: int) -> Json:
    """Return a StatefulSet that asks for a PersistentPodState."""
    document = statefulset(replicas)
    document["metadata"]["annotations"] = dict(ASKING)
    return document


def remembered(replicas: int) -> tuple[Step, ...]:
    """Create the set, and wait until its pods serve and are recorded."""
    return *running(asking(replicas)), WaitRecords(pods=tuple(places(*NODES[:replicas])))


def off_the_first_node(replicas: int) -> tuple[Step, ...]:
    """Create the set while the first node is cordoned, and uncordon the node afterwards."""
    return cordoned(NODES[0], on=True), *remembered(replicas), cordoned(NODES[0], on=False)


def annotated(**annotations: str | None) -> Change:
    """Change the annotations, given without their common prefix."""
    full = {f"kruise.io/{name.replace('_', '-')}": value for name, value in annotations.items()}
    return Change(patch={"metadata": {"annotations": full}}, kind=STATEFUL_SET.kind)


def scaled(replicas: int) -> Change:
    """Scale the set."""
    return Change(patch={"spec": {"replicas": replicas}}, kind=STATEFUL_SET.kind)


def edited(**members: object) -> Change:
    """Change the PersistentPodState's spec as a user."""
    return Change(patch={"spec": members})


about_records = partial(Scenario, kind=PERSISTENT_POD_STATE.kind, services=("statefulset",), every=EVERY)
"""A scenario about the PersistentPodState `web`."""


BY_HAND: Json = {
    "apiVersion": PERSISTENT_POD_STATE.api_version,
    "kind": PERSISTENT_POD_STATE.kind,
    "metadata": {"name": "web", "namespace": NAMESPACE_NAME},
    "spec": {
        "targetRef": {"apiVersion": STATEFUL_SET.api_version, "kind": STATEFUL_SET.kind, "name": "web"},
        "requiredPersistentTopology": {"keys": [HOST]},
    },
}

SCENARIOS = (
    about_records(
        name="records-asked-for",
        given=(),
        when=(Create(document=asking(2)),),
        then=Recorded(records=places("node-1", "node-2"), spec={"requiredPersistentTopology": {"keys": [HOST]}}),
    ),
    about_records(
        name="records-dropped-when-scaled-in",
        given=remembered(3),
        when=(scaled(1), WaitRecords(pods=("web-0",)), scaled(2)),
        then=Recorded(records=places("node-1", "node-2")),
    ),
    about_records(
        name="records-kept-when-scaled-in",
        given=(*off_the_first_node(2), edited(persistentPodStateRetentionPolicy="WhenDeleted")),
        when=(scaled(0), Wait(pods=0), scaled(2)),
        then=Recorded(records=places("node-2", "node-3"), returned=("web-0", "web-1")),
    ),
    about_records(
        name="recorded-pod-made-anew",
        given=off_the_first_node(1),
        when=(Remove(name="web-0", kind="Pod"),),
        then=Recorded(records=places("node-2"), returned=("web-0",)),
    ),
    about_records(
        name="records-asked-for-otherwise",
        given=remembered(1),
        when=(
            annotated(required_persistent_topology=ZONE),
            WaitKeys(keys=(ZONE,)),
            edited(preferredPersistentTopology=None),
            scaled(2),
        ),
        then=Recorded(
            records=places("node-1", "node-2"),
            labels=frozenset({ZONE}),
            spec={"requiredPersistentTopology": {"keys": [ZONE]}, "preferredPersistentTopology": None},
        ),
    ),
    about_records(
        name="records-no-longer-asked-for",
        given=remembered(1),
        when=(annotated(auto_generate_persistent_pod_state=None),),
        then=Recorded(exists=False),
    ),
    about_records(
        name="records-of-a-set-that-goes",
        given=(*running(statefulset(1)), Create(document=BY_HAND), WaitRecords(pods=("web-0",))),
        when=(Remove(kind=STATEFUL_SET.kind),),
        then=Recorded(),
        exact=False,  # who does not know yet that the set goes replaces its pods
    ),
)
RULES = (PodStates,)
