"""PodProbeMarkers: what probes say reaches the pods, and nothing else does (podprobemarker.md §4 to §6).

The pods are bare. What a probe says is set by its command, and numbered: `1 players`, `2 players`.
"""

from collections.abc import Iterator
from functools import partial

import msgspec

from flotilla_common.api.kinds.nodepodprobe.types import NODE_POD_PROBE, NodePodProbe
from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.plan import Frozen, Json
from tests.simulation.oracles.probe_results import TYPE, ProbeResults, shown_on
from tests.simulation.scenarios.manifests import container
from tests.simulation.scenarios.node_steps import StartAgent, StopAgent
from tests.simulation.scenarios.scenario import Scenario
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Change, Create, Remove, Stage, Step, WaitGone, until

EVERY = 48
"""The ordinary sweep tries each so-many-th fault: the machinery is that of other kinds with agents."""

POLICY: list[Json] = [
    {"state": "Succeeded", "labels": {"idle": "yes"}},
    {"state": "Failed", "annotations": {"busy": "yes"}},
]


def probe(name: str = "idle", command: str = "players", kind: str = TYPE, **members: object) -> Json:
    how = {"exec": {"command": [command]}, "periodSeconds": 1}
    given = {"name": name, "containerName": "main", "probe": how, "podConditionType": kind}
    return {**given, "markerPolicy": POLICY, **members}


def marker(*probes: Json, name: str = "web") -> Json:
    """Return a PodProbeMarker for the pods of the shop."""
    spec = {"selector": {"matchLabels": {"app": "shop"}}, "probes": list(probes) or [probe()]}
    metadata = {"name": name, "namespace": NAMESPACE_NAME}
    kind = POD_PROBE_MARKER
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}


def pod(name: str, node: str = "node-1", app: str = "shop") -> Json:
    """Return a pod for it."""
    metadata = {"name": name, "namespace": NAMESPACE_NAME, "labels": {"app": app}}
    spec = {"nodeName": node, "containers": [container("one")]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


class Answer(Step):
    """Let the command give this answer from now on, on all nodes."""

    text: str
    code: int = 0
    command: str = "players"

    async def play(self, stage: Stage) -> None:
        for machine in stage.world.machines.values():
            machine.answers[self.command] = (self.code, self.text)


class WaitShown(Step):
    """Wait until all of these pods show this."""

    text: str
    names: tuple[str, ...]

    async def play(self, stage: Stage) -> None:
        def reached() -> bool:
            found = [stage.current.get(POD, NAMESPACE_NAME, name) or {} for name in self.names]
            return all((shown_on(one) or ("", ""))[1] == self.text for one in found)

        await until(stage, reached, str(self))


class Marked(Frozen):
    """The marks of pods, the probes on nodes, and the status of the PodProbeMarker in the final state."""

    shown: dict[str, tuple[str, str]]  # status and message, by the pods' names
    probed: dict[str, tuple[str, ...]]  # names of probes
    exists: bool = True

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Return how the cluster differs from what is expected."""
        current = stage.current
        pods = list(current.all(POD, NAMESPACE_NAME))
        if (shown := {one["metadata"]["name"]: shown_on(one) for one in pods if shown_on(one)}) != self.shown:
            yield f"pods show {shown}, not {self.shown}"
        nodes = [
            msgspec.json.decode(msgspec.json.encode(one), type=NodePodProbe) for one in current.all(NODE_POD_PROBE, "")
        ]
        entries = [entry for node in nodes for entry in node.spec.pod_probes]
        if (probed := {one.name: tuple(probe.name for probe in one.probes) for one in entries}) != self.probed:
            yield f"nodes probe {probed}, not {self.probed}"
        if {one.uid for one in entries} - {one["metadata"]["uid"] for one in pods}:
            yield "nodes probe pods that are gone"
        told = {state.name for node in nodes for one in node.status.pod_probe_statuses for state in one.probe_states}
        if stale := told - {name for names in self.probed.values() for name in names}:
            yield f"nodes have results of {stale}"
        found = current.get(kind, NAMESPACE_NAME, name)
        if (found is not None) != self.exists:
            yield f"{name} {'does not exist' if self.exists else 'still exists'}"
        if found is not None:
            wanted = {"observedGeneration": found["metadata"]["generation"]}
            wanted |= {"matchedPods": len(self.probed)} if self.probed else {}
            if found.get("status") != wanted:
                yield f"the status is {found.get('status')}, not {wanted}"


def probed(*names: str, by: tuple[str, ...] = ("web#idle",)) -> dict[str, tuple[str, ...]]:
    """Return the same probes for each of the pods."""
    return dict.fromkeys(names, by)


FIRST = (Answer(text="1 players"), Create(document=pod("a")), Create(document=pod("b", "node-2")))
GIVEN = (*FIRST, Create(document=marker()), WaitShown(text="1 players", names=("a", "b")))

marking = partial(
    Scenario,
    kind=POD_PROBE_MARKER.kind,
    services=("policy", "jobs"),  # agents read what both of them follow
    agents=3,
    every=EVERY,
    exact=False,
    timed=True,  # agents probe by the clock
    given=GIVEN,
)
"""Creates a scenario about the PodProbeMarker `web`, with two pods on two nodes whose probe has succeeded."""

SCENARIOS = (
    marking(
        name="marked-for-the-first-time",
        given=FIRST,
        when=(Create(document=marker()), WaitShown(text="1 players", names=("a", "b"))),
        then=Marked(shown=dict.fromkeys("ab", ("True", "1 players")), probed=probed("a", "b")),
    ),
    marking(
        name="marked-as-probes-say",
        when=(
            Answer(text="2 players", code=1),
            WaitShown(text="2 players", names=("a", "b")),
            Answer(text="3 players"),
            WaitShown(text="3 players", names=("a", "b")),
        ),
        then=Marked(shown=dict.fromkeys("ab", ("True", "3 players")), probed=probed("a", "b")),
    ),
    marking(
        name="marked-where-pods-come-and-go",
        when=(
            Create(document=pod("c", "node-1")),
            Remove(name="a", kind="Pod"),
            Change(patch={"metadata": {"labels": {"app": "other"}}}, name="b", kind="Pod"),
            WaitShown(text="1 players", names=("c",)),
            WaitGone(name="a", kind="Pod"),
            Create(document=pod("a", "node-3")),
            WaitShown(text="1 players", names=("a",)),
        ),
        then=Marked(shown=dict.fromkeys("abc", ("True", "1 players")), probed=probed("a", "c")),
    ),
    marking(
        name="marked-until-it-is-deleted",
        when=(Remove(), WaitGone(), Answer(text="2 players", code=1)),
        then=Marked(shown=dict.fromkeys("ab", ("True", "1 players")), probed={}, exists=False),
    ),
    marking(
        name="marked-by-other-probes",
        given=(
            *FIRST,
            Create(document=marker(probe(), probe("old", "more", "shop.io/old"))),
            WaitShown(text="1 players", names=("a", "b")),
        ),
        when=(
            Change(patch={"spec": {"probes": [probe(), probe("new", "more", "shop.io/new")]}}),
            Answer(text="2 players"),
            WaitShown(text="2 players", names=("a", "b")),
        ),
        then=Marked(
            shown=dict.fromkeys("ab", ("True", "2 players")), probed=probed("a", "b", by=("web#idle", "web#new"))
        ),
    ),
    marking(
        name="marked-when-an-agent-is-back",
        when=(
            StopAgent(node="node-1"),
            Answer(text="2 players", code=1),
            WaitShown(text="2 players", names=("b",)),
            StartAgent(node="node-1"),
            WaitShown(text="2 players", names=("a", "b")),
        ),
        then=Marked(shown=dict.fromkeys("ab", ("False", "2 players")), probed=probed("a", "b")),
    ),
)

RULES = (ProbeResults,)
