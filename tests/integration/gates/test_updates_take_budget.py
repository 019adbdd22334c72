"""In-place updates of all workloads, under budgets of one pod each (podunavailablebudget.md §9, example 51 and 53).

The workloads' own limits are far higher; only the budget restricts them.
"""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from tests.support.daemons import daemonset
from tests.support.fleet import Fleet
from tests.support.workspace import Workspace, available, cloneset
from tests.testkit.documents import Json

WATCHED = (CLONE_SET, POD_UNAVAILABLE_BUDGET)
OLD, NEW = "nginx:alpine", "nginx:mainline"
APPS = ("sample", "stateful", "agent", "plain")
GATE = {"conditionType": "InPlaceUpdateReady"}
PODS = 3


def workload(kind: str, name: str, **spec: object) -> Json:
    pod = {"containers": [{"name": "main", "image": OLD}], **({"readinessGates": [GATE]} if kind[0] == "S" else {})}
    return {
        "apiVersion": "apps/v1" if kind == "Deployment" else "apps.kruise.io/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": PODS,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
            **spec,
        },
    }


def budget(name: str) -> Json:
    return {
        "apiVersion": "policy.kruise.io/v1beta1",
        "kind": "PodUnavailableBudget",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "maxUnavailable": 1,
            "protectTotalReplicas": PODS,  # DaemonSets have no scale
        },
    }


def sidecars(space: Workspace, image: str) -> Json:
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "SidecarSet",
        "metadata": {"name": space.name},
        "spec": {
            "selector": {"matchLabels": {"app": "plain"}},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space.name}},
            "containers": [{"name": "proxy", "image": image}],
            "updateStrategy": {"type": "RollingUpdate", "maxUnavailable": "100%"},
        },
    }


def images(space: Workspace, app: str) -> list[str]:
    container = "proxy" if app == "plain" else container_of(app)
    pods = [pod for pod in space.pods.values() if pod["metadata"]["labels"]["app"] == app]
    return [one["image"] for pod in pods for one in pod["spec"]["containers"] if one["name"] == container]


def container_of(app: str) -> str:
    return "nginx" if app in ("sample", "agent") else "main"


def test_no_workload_takes_more_than_the_budget(space: Workspace, flotilla: Fleet) -> None:
    space.apply(sidecars(space, OLD))
    in_place = {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%"}
    manifests = [
        cloneset(PODS, strategy=in_place),
        workload(
            "StatefulSet",
            "stateful",
            serviceName="stateful",
            podManagementPolicy="Parallel",
            updateStrategy={"type": "RollingUpdate", "rollingUpdate": in_place},
        ),
        daemonset({"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": "100%"}),
        workload("Deployment", "plain"),
    ]
    for manifest in (*manifests, *map(budget, APPS)):
        space.apply(manifest)
    space.until(lambda: all(_allowed(space, app) == (1, PODS) for app in APPS))
    mark, claims = space.now(), _claims(flotilla)
    for kind, name in (("cloneset", "sample"), ("statefulset", "stateful"), ("daemonset", "agent")):
        container = container_of(name)
        body = {"spec": {"template": {"spec": {"containers": [{"name": container, "image": NEW}]}}}}
        space.send_patch(f"{kind}s.apps.kruise.io", name, body)
    space.apply(sidecars(space, NEW))
    space.until(lambda: all(images(space, app) == [NEW] * PODS for app in APPS), 120)
    space.until(lambda: all(_allowed(space, app) == (1, PODS) for app in APPS))
    space.catch_up()
    for moment in space.moments(mark):
        for app in APPS:
            serving = [pod for pod in moment.values() if pod["metadata"]["labels"]["app"] == app and available(pod)]
            assert len(serving) >= PODS - 1, app
    for service in ("cloneset", "statefulset", "daemonset", "sidecar"):
        refused = [line for line in flotilla.members[service].metrics_text().splitlines() if 'outcome="Denied"' in line]
        assert not [line for line in refused if line.startswith("flotilla_writes_total") and 'kind="Pod"' in line]
    # One write for each pod: no two of an app have budget at once.
    assert _claims(flotilla) - claims == PODS * len(APPS)


def _allowed(space: Workspace, app: str) -> tuple[int, int]:
    status = space.object("PodUnavailableBudget", app).get("status", {})
    return status.get("unavailableAllowed", -1), status.get("currentAvailable", -1)


def _claims(flotilla: Fleet) -> int:
    """Return how many writes of the services have taken budget."""
    wanted = ('kind="PodUnavailableBudget"', 'outcome="Ok"')
    total = 0.0
    for service in ("cloneset", "statefulset", "daemonset", "sidecar"):
        for line in flotilla.members[service].metrics_text().splitlines():
            if line.startswith("flotilla_writes_total") and all(one in line for one in wanted):
                total += float(line.rpartition(" ")[2])
    return int(total)
