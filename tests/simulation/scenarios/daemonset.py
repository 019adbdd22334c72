"""The terms and the final state of a DaemonSet; its scenarios are in files of their own, one per theme."""

from collections.abc import Iterator, Mapping

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet, DaemonSetSpec, RollingUpdate
from flotilla_common.api.resources import NODE, POD, REVISION, Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Json
from flotilla_common.workload.predicates import is_serving
from flotilla_common.workload.revision_codec import belongs
from tests.simulation.oracles.daemons import Daemons
from tests.simulation.oracles.node_history import node_of
from tests.simulation.oracles.terms import PerNode, Terms
from tests.simulation.oracles.view import of_kind
from tests.simulation.oracles.write_budget import WriteBudget
from tests.simulation.scenarios.current_state import CurrentState, image_of, owner_name
from tests.simulation.scenarios.scenario import End, Scenario
from tests.simulation.scenarios.steps import NAMESPACE_NAME, Create, Stage, Step, Wait
from tests.simulation.world import NODES

EVERY = 24
"""The ordinary sweep tries each so-many-th fault: the machinery is that of CloneSets."""

TOLERATED = (
    *(("not-ready", "NoExecute"), ("unreachable", "NoExecute"), ("unschedulable", "NoSchedule")),
    *((f"{what}-pressure", "NoSchedule") for what in ("disk", "memory", "pid")),
)
"""Taints that daemons tolerate (daemonset.md §4.2)."""


def everywhere(document: Json, nodes: int = NODES) -> tuple[Step, ...]:
    """Create the DaemonSet, and wait until its pods serve on this number of nodes."""
    return Create(document=document), Wait(pods=nodes, serving=nodes, observed=True)


def in_daemons(*scenarios: Scenario) -> tuple[Scenario, ...]:
    """Scenarios about DaemonSets."""
    change = {"kind": DAEMON_SET.kind, "services": ("daemonset",), "every": EVERY}
    return tuple(msgspec.structs.replace(one, **change) for one in scenarios)


def on(
    *, gone: bool = False, revisions: int | None = None, loose: int = 0, serving: int | None = None, **images: str
) -> "OnNodes":
    """Return the final state by the tags of images.

    `on(one="1", two="23")` is one pod of image `one` on node-1, of `two` on node-2 and node-3.
    """
    nodes = {f"node-{number}": image for image, numbers in images.items() for number in numbers}
    counts = {image: len(numbers) for image, numbers in images.items()}
    return OnNodes(nodes=nodes, pods=counts, revisions=revisions, loose=loose, serving=serving, exists=not gone)


class OnNodes(End, kw_only=True):
    """Exactly these nodes have a pod, one each, with this image; and the status says so."""

    nodes: dict[str, str]

    def problems(self, stage: Stage, name: str, kind: Resource) -> Iterator[str]:
        """Yield the differences from the final state."""
        yield from super().problems(stage, name, kind)
        found = sorted((node_of(pod), image_of(pod)) for pod in stage.current.pods(NAMESPACE_NAME, name))
        if found != sorted(self.nodes.items()):
            yield f"pods are {found}, not {sorted(self.nodes.items())}"
        document = stage.current.get(kind, NAMESPACE_NAME, name)
        told: Json = (document or {}).get("status", {})
        for member, value in (status_of(stage.current, document) if document is not None else {}).items():
            if told.get(member, 0) != value:
                yield f"status.{member} is {told.get(member)!r}, not {value!r}"


def status_of(current: CurrentState, document: Json) -> Json:
    """Return the status of a DaemonSet at rest (daemonset.md §5)."""
    terms = daemonset_terms(document)
    assert terms.per_node is not None
    pods = _first_pods(current, document["metadata"]["name"])
    nodes = {str(node["metadata"]["name"]): node for node in current.all(NODE, "")}
    wanted = [name for name, node in nodes.items() if terms.per_node.wants(node)]
    first = [pods[name] for name in wanted if name in pods]
    newest = max(current.all(REVISION, NAMESPACE_NAME), key=lambda revision: int(revision["revision"]))
    available = sum(is_serving(pod) for pod in first)
    return {
        "desiredNumberScheduled": len(wanted),
        "currentNumberScheduled": len(first),
        "numberMisscheduled": len(pods.keys() & nodes.keys() - {*wanted}),
        "numberReady": sum(pod.ready for pod in first),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
        "updatedNumberScheduled": sum(belongs(pod.revision, newest["metadata"]["name"]) for pod in first),
        "updateRevision": newest["metadata"]["labels"]["controller-revision-hash"],
        "observedGeneration": document["metadata"]["generation"],
    }


def _first_pods(current: CurrentState, owner: str) -> Mapping[str, Pod]:
    """Return the oldest pod of each node, terminating or not."""
    pods = [msgspec.convert(found, type=Pod) for found in current.all(POD, NAMESPACE_NAME)]
    return {node_of(pod): pod for pod in reversed(pods) if owner_name(pod) == owner}


def daemonset_terms(document: Json) -> Terms:
    """Return the terms of a DaemonSet (daemonset.md §4.2, §4.8)."""
    daemonset = msgspec.convert(_typed(document), type=DaemonSet)
    spec = daemonset.spec
    rolling = spec.update_strategy.rolling_update or RollingUpdate()
    return Terms(
        selector=Selector.compile(spec.selector),
        replicas=0,  # what must be left is judged by nodes
        min_ready_seconds=spec.min_ready_seconds,
        lifecycle=spec.lifecycle,
        recreates=rolling.rolling_update_type == "Standard",
        terminating=daemonset.metadata.deletion_timestamp is not None,
        per_node=_per_node(document["spec"]["template"]["spec"], spec, rolling),
    )


def _per_node(pods: Json, spec: DaemonSetSpec, rolling: RollingUpdate) -> PerNode:
    by_itself = spec.update_strategy.type == "RollingUpdate"
    tolerated = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect} for key, effect in TOLERATED
    ]
    return PerNode(
        spec=pods | {"tolerations": [*pods.get("tolerations", ()), *tolerated]},
        rolls=by_itself and not rolling.paused,
        chosen=Selector.compile(rolling.selector) if rolling.selector is not None else Selector({}, ()),
        unavailable=rolling.max_unavailable or 0,
        surge=(rolling.max_surge or 0) if by_itself else 0,
        partition=(rolling.partition or 0) if by_itself else 0,
        progressive=by_itself and spec.scale_strategy is not None and spec.scale_strategy.partitioned_scaling,
    )


def _typed(document: Json) -> Json:
    """Without the template, which stays raw in the type."""
    return {**document, "spec": {name: value for name, value in document["spec"].items() if name != "template"}}


TERMS = {DAEMON_SET: daemonset_terms}
RULES = (Daemons, lambda: of_kind(DAEMON_SET, WriteBudget()))
