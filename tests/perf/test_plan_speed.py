"""The time of planning: one workload of 10,000 pods in the middle of an in-place rollout.

Each measured pass sees 128 pods at a new version, as after a full wave of writes; the others are cached. A DaemonSet is
on 5,000 nodes, 100 of which, with their pods, are at a new version in each pass.
"""

import statistics
import time
from collections.abc import Callable

import msgspec

from flotilla_cloneset.cloneset.plan import plan as plan_cloneset
from flotilla_common.api.core import Node, Pod
from flotilla_common.control.plan import Plan
from flotilla_daemonset.daemonset.plan import plan as plan_daemonset
from flotilla_sidecar.sidecarset.plan import plan as plan_sidecar_set
from flotilla_statefulset.statefulset.plan import plan as plan_statefulset
from flotilla_topology.uniteddeployment.plan import plan as plan_united_deployment
from flotilla_topology.workloadspread.plan import plan as plan_workload_spread
from tests.perf.limits import within
from tests.testkit.documents import decoded
from tests.unit.cloneset import build as cloneset
from tests.unit.daemonset import build as daemonset
from tests.unit.sidecarset import build as sidecarset
from tests.unit.statefulset import build as stateful
from tests.unit.uniteddeployment import build as united
from tests.unit.workloadspread import build as spread

WAVE = 128
CHANGED_NODES = 100
PASSES = 15


def updating(revision: str, container: str) -> dict[str, str]:
    """Return the annotation of a pod that is being updated in place."""
    state = {
        "revision": revision,
        "updateTimestamp": "2026-03-01T11:59:00Z",
        "lastContainerStatuses": {container: {"imageID": "id"}},
        "updateImages": True,
    }
    return {"apps.kruise.io/inplace-update-state": msgspec.json.encode(state).decode()}


def best(plan: Callable[[list[Pod]], Callable[[], Plan]], pods: list[Pod], nodes: list[Node] | None = None) -> float:
    """Return the milliseconds of the best of several passes, since other processes only make it slower.

    `plan` makes the snapshot, and returns the function that plans it. Where `nodes` matter, their pods have the same
    places in the lists.
    """
    took: list[float] = []
    wave = CHANGED_NODES if nodes else WAVE
    for round_ in range(PASSES + 1):
        planning = plan(pods)
        started = time.perf_counter()
        result = planning()
        took.append((time.perf_counter() - started) * 1000)
        assert result.stages
        for index in range(round_ * wave, (round_ + 1) * wave):
            place = index * 7 % len(pods)
            pods[place] = decoded(pods[place], Pod)
            if nodes:
                nodes[place] = decoded(nodes[place], Node)
    first, *later = took
    print(f"\nfirst {first:.1f} ms, then best {min(later):.1f} ms, median {statistics.median(later):.1f} ms", end="")
    return min(later)


def test_a_cloneset_of_ten_thousand_pods() -> None:
    state = updating("sample-new", "nginx")
    pods = [cloneset.pod(f"o{i:05}", "o") for i in range(4500)]
    pods += [cloneset.pod(f"n{i:05}", "n") for i in range(4500)]
    pods += [cloneset.pod(f"u{i:05}", "n", state="Updating", ready=False, annotations=state) for i in range(1000)]
    builder = cloneset.cloneset().replicas(10_000).max_unavailable("15%").in_place()

    def planning(there: list[Pod]) -> Callable[[], Plan]:
        view = cloneset.snapshot(builder, there)
        return lambda: plan_cloneset(view, cloneset.NOW)

    within("plan_10k_ms", best(planning, pods))


def test_a_statefulset_of_ten_thousand_pods() -> None:
    state = updating("w-B", "main")
    pods = [stateful.pod(i, "A") for i in range(4500)]
    pods += [stateful.pod(i, "B") for i in range(4500, 9000)]
    pods += [stateful.pod(i, "B", "!", "Updating", annotations=state) for i in range(9000, 10_000)]
    builder = stateful.sts(10_000).m("15%").in_place()

    def planning(there: list[Pod]) -> Callable[[], Plan]:
        view = stateful.snapshot(builder, there)
        return lambda: plan_statefulset(view, stateful.NOW)

    within("statefulset_plan_10k_ms", best(planning, pods))


def test_a_sidecarset_of_ten_thousand_pods() -> None:
    pods = sidecarset.pods("Ax4500 Bx4500 B~x1000")
    builder = sidecarset.side("B").m("15%")

    def planning(there: list[Pod]) -> Callable[[], Plan]:
        view = sidecarset.snapshot(builder, there)
        return lambda: plan_sidecar_set(view, sidecarset.NOW)

    within("sidecarset_plan_10k_ms", best(planning, pods))


def test_a_daemonset_on_five_thousand_nodes() -> None:
    """The template chooses its nodes by a label, tolerates a taint of some, and is not wanted by others."""
    state = updating("d-B", "main")
    names = [f"n{number:04}" for number in range(5000)]
    pods = [daemonset.pod(name, "A") for name in names[:2250]]
    pods += [daemonset.pod(name, "B") for name in names[2250:4500]]
    pods += [daemonset.pod(name, "B", "!", annotations=state) for name in names[4500:]]
    taints = ("example.com/edge:NoSchedule",)
    nodes = [daemonset.node(name, taints=taints if index % 10 == 0 else (), pool="edge", zone=f"z{index % 3}")
             for index, name in enumerate(names)]  # fmt: skip
    demands = {"nodeSelector": {"pool": "edge"}, "tolerations": [{"key": "example.com/edge", "operator": "Exists"}]}
    builder = daemonset.ds().m("15%").in_place().pod_spec(**demands)
    revisions = [
        daemonset.revision(letter, n, daemonset.template(letter, **demands)) for n, letter in ((1, "A"), (2, "B"))
    ]

    def planning(there: list[Pod]) -> Callable[[], Plan]:
        view = daemonset.snapshot(builder, there, on=nodes, revisions=revisions)
        return lambda: plan_daemonset(view, daemonset.NOW)

    within("daemonset_plan_5k_ms", best(planning, pods, nodes))


def test_a_uniteddeployment_of_ten_thousand_pods() -> None:
    world = united.World([{"name": name} for name in "abcd"], replicas=10_000)
    world.settle()
    world.change({"template": {"cloneSetTemplate": united.template("nginx:2")}})
    view = world.snapshot()
    pods = [pod for found in view.pods.values() for pod in found]

    def planning(there: list[Pod]) -> Callable[[], Plan]:
        share = len(there) // len(view.pods)
        parts = {uid: there[place * share : (place + 1) * share] for place, uid in enumerate(view.pods)}
        changed = msgspec.structs.replace(view, pods=parts)
        return lambda: plan_united_deployment(changed, world.now)

    within("uniteddeployment_plan_10k_ms", best(planning, pods))


def test_a_workloadspread_of_ten_thousand_pods() -> None:
    """Every third pod has no deletion cost yet."""
    costs = {"a": "300", "b": "200"}
    document = spread.spread(spread.subset("a", 4000), spread.subset("b", 4000), spread.subset("c"))
    view = spread.snapshot(
        document,
        [
            spread.pod(f"p{i}", name, annotations={spread.COST: costs[name]} if name in costs else {})
            for i in range(10_000)
            for name in ("abc"[i % 3],)
        ],
    )
    pods = list(view.pods)

    def planning(there: list[Pod]) -> Callable[[], Plan]:
        changed = msgspec.structs.replace(view, pods=list(there))
        return lambda: plan_workload_spread(changed, spread.NOW)

    within("workloadspread_plan_10k_ms", best(planning, pods))
