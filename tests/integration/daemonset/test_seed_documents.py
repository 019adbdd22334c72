"""The DaemonSet manifests, commands and tables of the users' article, verbatim, and their outcomes.

Its cluster has the nodes node1 and node2; a node of this cluster replaces them.
"""

import re

from tests.support.daemons import by_node, node_of
from tests.support.workspace import Workspace, identity, image, restarts, table
from tests.testkit.documents import Json
from tests.testkit.manifests import article

DEMO = article("daemonset/demo")
DEMO2 = article("daemonset/demo2")
DEMO3 = article("daemonset/demo3")
PARTITION = """
      partition: 10 #如果大于期望运行的pod数量,则不会更新。
      paused: true # 暂停发布
"""
PATIENCE = 90  # seconds: real containers have a grace period


def apply(space: Workspace, manifest: str, said: str) -> None:
    """Run `kubectl apply -f FILE`, and check its output."""
    assert space.kubectl("apply", "-f", "-", stdin=manifest) == f"daemonset.apps.kruise.io/nginx {said}\n"
    space.apply(manifest)  # again, without a change: the generation is read


def settled(space: Workspace, updated: int, nodes: int) -> None:
    space.settled("nginx", PATIENCE, updatedNumberScheduled=updated, numberReady=nodes, numberAvailable=nodes)


def started(space: Workspace, manifest: str) -> dict[str, Json]:
    """Apply a manifest that is new, and wait until every node has its pod; by node."""
    apply(space, manifest, "created")
    nodes = len(space.cluster.read("nodes")["items"])
    settled(space, nodes, nodes)
    return by_node(space)


def readiness_gates(space: Workspace) -> list[str]:
    """Return the last column of `kubectl get pods -o wide`, whose rows have a column for the node."""
    header, *rows = table(space.kubectl("get", "pods", "-l", "k8s-app=nginx", "-o", "wide"))
    assert header[-3:] == ["NODE", "NOMINATED NODE", "READINESS GATES"]
    assert sorted(row[-3] for row in rows) == sorted(by_node(space))
    return [row[-1] for row in rows]


def described(space: Workspace) -> str:
    return space.kubectl("describe", "daemon", "nginx")


def test_one_pod_on_each_node_and_an_update_of_one_node(space: Workspace):
    before = started(space, DEMO)
    header, row = table(space.kubectl("get", "daemon"))
    assert header == ["NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row[:-1] == ["nginx", *[str(len(before))] * 5]
    assert readiness_gates(space) == ["1/1"] * len(before)
    node = sorted(before)[1]
    apply(space, DEMO2.replace("node1", node), "configured")
    settled(space, 1, len(before))
    after = by_node(space)
    changed = {name for name, pod in after.items() if identity(pod) != identity(before[name])}
    assert (changed, image(after[node])) == ({node}, "nginx")
    space.event("SuccessfulDelete", f"Deleted pod: {before[node]['metadata']['name']}")
    space.event("SuccessfulCreate", f"Created pod: {after[node]['metadata']['name']}")
    assert re.search(r"Normal +SuccessfulDelete .* daemonset-controller +Deleted pod: nginx-", described(space))
    assert "SHORTNAMES" in space.kubectl("api-resources", "--api-group=apps.kruise.io")
    assert "- daemon\n" in space.kubectl("get", "crd", "daemonsets.apps.kruise.io", "-oyaml")


def test_a_partition_that_is_larger_than_the_cluster_and_a_pause(space: Workspace):
    before = started(space, DEMO)
    held = DEMO.replace("      rollingUpdateType: Standard\n", "      rollingUpdateType: Standard" + PARTITION)
    apply(space, held.replace("nginx:1.7.9", "nginx"), "configured")
    settled(space, 0, len(before))
    assert {identity(pod) for pod in space.pods.values()} == {identity(pod) for pod in before.values()}
    space.kubectl("delete", "daemon", "nginx")
    space.until(lambda: not space.pods, PATIENCE)


def test_in_place(space: Workspace):
    before = started(space, DEMO3)
    assert readiness_gates(space) == ["2/2"] * len(before)
    mark = space.now()
    apply(space, DEMO3.replace("nginx:1.7.9", "nginx"), "configured")
    space.until(lambda: space.status("nginx").get("updatedNumberScheduled") == len(before), PATIENCE)
    settled(space, len(before), len(before))
    assert {identity(pod) for pod in space.pods.values()} == {identity(pod) for pod in before.values()}
    assert {(image(pod), restarts(pod)) for pod in space.pods.values()} == {("nginx", 1)}
    assert readiness_gates(space) == ["2/2"] * len(before)
    revision = space.status("nginx")["updateRevision"]
    order = [node_of(space.pod(name)) for name in space.first_updates(mark, revision)]
    assert order == sorted(before, reverse=True)
    for pod in before.values():
        name = pod["metadata"]["name"]
        space.event("SuccessfulUpdatePodInPlace", f"successfully update pod {name} in-place")
    told = r"daemonset-controller +successfully update pod nginx-[a-z0-9]{5} in-place"
    assert re.search(f"Normal +SuccessfulUpdatePodInPlace .* {told}", described(space))
