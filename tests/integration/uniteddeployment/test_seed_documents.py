"""The manifests, commands and tables about UnitedDeployments and WorkloadSpreads of the users' articles.

What an article leaves out (`# ...`), or offers a choice of (`Deployment | CloneSet`), is filled in; the indentation of
one member is corrected, and zones have the names of this cluster's. The misspelt `tolertions` is the article's.
"""

from collections import Counter

import pytest

from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET
from tests.support.workspace import Workspace, identity, is_ready
from tests.testkit.documents import Json
from tests.testkit.manifests import article

ZONES = {"zone-a": "node-0", "zone-b": "node-1", "zone-c": "node-2"}
SAMPLE = article("uniteddeployment/sample")
SPREAD = article("workloadspread/spread")
WORKLOAD = article("cloneset/workload")


@pytest.fixture
def zones(space: Workspace) -> None:
    """Set the articles' labels of nodes; they are harmless, and stay."""
    for zone, node in ZONES.items():
        space.kubectl("label", "--overwrite", "node", node, f"node={zone}")


def sample(space: Workspace) -> Json:
    """Return the status once all pods are ready and updated."""
    return space.settled("sample-ud", replicas=6, readyReplicas=6, updatedReplicas=6, updatedReadyReplicas=6)


def older(space: Workspace) -> Json:
    """Return the status in the articles' version."""
    return space.read("uniteddeployments.v1alpha1.apps.kruise.io", "sample-ud")["status"]


def workloads(space: Workspace) -> dict[str, Json]:
    """Return the StatefulSets by subset."""
    found = space.read(f"{BUILT_IN_STATEFUL_SET.plural}.v1.apps")["items"]
    return {one["metadata"]["labels"]["apps.kruise.io/subset-name"]: one for one in found}


def on_nodes(pods: list[Json]) -> Counter[str]:
    return Counter(pod["spec"]["nodeName"] for pod in pods)


@pytest.mark.usefixtures("zones")
def test_a_workload_in_each_zone(space: Workspace) -> None:
    """It is created, updated by partitions, and loses a subset, which comes back.

    When a subset is added or removed, its workload is created or deleted.
    """
    applied = space.kubectl("apply", "-f", "-", stdin=SAMPLE)
    assert applied == "uniteddeployment.apps.kruise.io/sample-ud created\n"
    sample(space)
    status = older(space)
    assert status["subsetReplicas"] == {"subset-a": 1, "subset-b": 3, "subset-c": 2}
    assert status["updateStatus"]["currentPartitions"] == {"subset-a": 0, "subset-b": 0, "subset-c": 0}
    header, line = space.kubectl("get", "ud").splitlines()
    assert header.split() == ["NAME", "DESIRED", "CURRENT", "UPDATED", "READY", "AGE"]
    assert line.split()[:-1] == ["sample-ud", "6", "6", "6", "6"]
    made = workloads(space)
    assert {subset: one["spec"]["replicas"] for subset, one in made.items()} == status["subsetReplicas"]
    for subset, one in made.items():
        assert one["metadata"]["name"].startswith(f"sample-ud-{subset}-")
    assert on_nodes(list(space.pods.values())) == {"node-0": 1, "node-1": 3, "node-2": 2}

    first = space.status("sample-ud")["updatedRevision"]
    before = {name: identity(pod) for name, pod in space.pods.items()}
    held = {"updateStrategy": {"manualUpdate": {"partitions": {"subset-b": 3, "subset-c": 1}}}}
    container = {"name": "nginx", "image": "nginx:mainline"}
    template = {"statefulSetTemplate": {"spec": {"template": {"spec": {"containers": [container]}}}}}
    space.patch({"spec": held | {"template": template}}, "sample-ud")
    space.settled("sample-ud", readyReplicas=6, updatedReplicas=2, updatedReadyReplicas=2, currentRevision=first)
    changed = {name for name, pod in space.pods.items() if identity(pod) != before.get(name)}
    assert sorted(name.rpartition("-")[0].rpartition("-")[0] + name[-2:] for name in changed) == [
        "sample-ud-subset-a-0",
        "sample-ud-subset-c-1",
    ]
    updated = SAMPLE.replace("nginx:alpine", "nginx:mainline")
    space.apply(updated)
    assert sample(space)["currentRevision"] != first

    begin = updated.index("    - name: subset-c")
    end = updated.index("  updateStrategy:")
    space.apply((updated[:begin] + updated[end:]).replace("        subset-c: 0\n", "").replace("50%", "5"))
    space.until(lambda: workloads(space).keys() == {"subset-a", "subset-b"})
    sample(space)
    space.apply(updated)
    space.until(lambda: workloads(space).keys() == {"subset-a", "subset-b", "subset-c"})
    sample(space)
    assert older(space)["subsetReplicas"] == {"subset-a": 1, "subset-b": 3, "subset-c": 2}


@pytest.mark.usefixtures("zones")
def test_one_workload_over_zones(space: Workspace) -> None:
    """Three pods go to the first subset, the others to the second, and those go first."""
    assert 'unknown field "spec.subsets[0].tolertions"' in space.refuses(SPREAD, "apply")
    space.kubectl("apply", "--validate=false", "-f", "-", stdin=SPREAD)
    assert "tolertions" not in space.read("workloadspread", "workloadspread-demo")["spec"]["subsets"][0]
    space.apply(WORKLOAD)
    space.until(lambda: sum(map(is_ready, space.pods.values())) == 5)
    assert on_nodes(list(space.pods.values())) == {"node-0": 3, "node-1": 2}
    marked = [pod for pod in space.pods.values() if pod["metadata"]["labels"].get("xxx-specific-label") == "xxx"]
    assert on_nodes(marked) == {"node-0": 3}
    space.kubectl("scale", "clone", "workload-xxx", "--replicas=3")
    space.until(lambda: len(space.pods) == 3)
    assert on_nodes(list(space.pods.values())) == {"node-0": 3}
    header, line = space.kubectl("get", "ws").splitlines()
    assert header.split() == ["NAME", "WORKLOADNAME", "WORKLOADKIND", "ADAPTIVE", "AGE"]
    assert line.split()[:3] == ["workloadspread-demo", "workload-xxx", "CloneSet"]
