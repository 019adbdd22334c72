"""The real nodes themselves: network, images, volumes of their own; killed daemons and power cuts."""

import os
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest

from flotilla_dev.cluster.realnodes.network import Network
from tests.support.cluster import eventually
from tests.support.nodes import RealCluster
from tests.testkit.documents import Json

WEB = "default"
HEADLESS: Json = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "headless"},
    "spec": {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]},
}
NO_PROCESS = 1 << 22
"""Ids of processes are smaller."""


def read_pods(cluster: RealCluster) -> dict[str, Json]:
    return {pod["metadata"]["name"]: pod for pod in cluster.read("pods", "-n", WEB)["items"]}


def container(pod: Json) -> Json:
    return pod["status"]["containerStatuses"][0]


def pod_on(node: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"web-{node}", "labels": {"app": "web"}},
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "nginx", "image": "nginx:alpine"}],
        },
    }


@pytest.fixture(scope="module")
def web(cluster: RealCluster) -> Iterator[dict[str, Json]]:
    """Create a web server on each node, and a Service for them; yield the pods."""
    for name in cluster.names:
        cluster.create(pod_on(name))
    cluster.kubectl("create", "service", "clusterip", "web", "--tcp=80:80")
    cluster.kubectl("wait", "pod", "--all", "--for=condition=Ready", "--timeout=60s")
    yield read_pods(cluster)
    cluster.kubectl("delete", "pod,service", "-l", "app=web")


def test_every_node_has_its_own_addresses(cluster: RealCluster, web: dict[str, Json]) -> None:
    nodes = {node["metadata"]["name"]: node for node in cluster.read("nodes")["items"]}
    assert sorted(nodes) == cluster.names
    network = cluster.nodes.network
    for index, name in enumerate(cluster.names):
        assert nodes[name]["spec"]["podCIDR"] == network.pods(index)
        assert nodes[name]["status"]["addresses"][0]["address"] == network.node(index)
        assert web[f"web-{name}"]["status"]["podIP"].startswith(network.pods(index).removesuffix("0/24"))


def test_pods_reach_pods_services_and_the_apiserver(cluster: RealCluster, web: dict[str, Json]) -> None:
    addresses = [pod["status"]["podIP"] for pod in web.values()]
    service = cluster.read("service", "web")["spec"]["clusterIP"]
    for name in web:
        for address in [*addresses, service]:
            assert inside(cluster, name, f"wget -qO- http://{address}") == "nginx:alpine"
        answer = inside(cluster, name, "wget -qO- http://10.96.0.1:443 2>&1 || true")
        assert "400 Bad Request" in answer  # it requires TLS
    assert {page(pod) for pod in web.values()} == {"nginx:alpine"}


async def test_services_and_pods_have_names(cluster: RealCluster, web: dict[str, Json]) -> None:
    cluster.create(HEADLESS)
    addresses = sorted(pod["status"]["podIP"] for pod in web.values())
    name = min(web)

    def asked(question: str) -> list[str]:
        answer = inside(cluster, name, f"nslookup {question} || true")
        return sorted(line.removeprefix("Address: ") for line in answer.splitlines() if line.startswith("Address: "))

    for service in ("web", f"web.{WEB}", f"web.{WEB}.svc.cluster.local"):
        assert inside(cluster, name, f"wget -qO- http://{service}") == "nginx:alpine"
    await eventually(lambda: asked(f"headless.{WEB}.svc.cluster.local") == addresses, 20)
    assert asked("kubernetes.default.svc.cluster.local") == ["10.96.0.1"]
    assert asked("somewhere.example") == []


def page(pod: Json) -> str:
    """Return the page that a pod serves to this machine; webhooks in pods are called from here."""
    with urllib.request.urlopen(f"http://{pod['status']['podIP']}", timeout=5) as reply:
        return reply.read().decode().strip()


def can_enter(cluster: RealCluster, pod: str) -> bool:
    return "entered" in cluster.kubectl("exec", pod, "--", "echo", "entered", check=False)


def inside(cluster: RealCluster, pod: str, script: str) -> str:
    return cluster.kubectl("exec", pod, "--", "timeout", "5", "sh", "-c", script).strip()


async def test_an_image_can_be_pushed_under_any_name(cluster: RealCluster) -> None:
    name = "ghcr.io/someone/tool:v1"
    digest = await cluster.registry.push(name, ["sleep", "3600"], {"/etc/motd": b"mine"})
    cluster.kubectl("run", "tool", f"--image={name}")
    cluster.kubectl("wait", "pod/tool", "--for=condition=Ready", "--timeout=30s")
    assert inside(cluster, "tool", "cat /etc/motd") == "mine"
    assert container(read_pods(cluster)["tool"])["imageID"] == f"ghcr.io/someone/tool@{digest}"
    cluster.kubectl("delete", "pod", "tool", "--now")


async def test_a_killed_containerd_takes_no_container_along(cluster: RealCluster, web: dict[str, Json]) -> None:
    before = read_pods(cluster)["web-real-0"]
    await cluster.kill("real-0", "containerd", "kubelet")
    assert page(before) == "nginx:alpine"
    await cluster.repair()
    await eventually(lambda: can_enter(cluster, "web-real-0"), 30)  # its kubelet has its pods again
    after = read_pods(cluster)["web-real-0"]
    assert container(after)["containerID"] == container(before)["containerID"]
    assert container(after)["restartCount"] == 0


async def test_after_a_power_cut_a_node_goes_on(cluster: RealCluster, web: dict[str, Json]) -> None:
    """All processes of the node end, none of its state is lost, and its kubelet restarts the same pods."""
    before = read_pods(cluster)["web-real-1"]
    await cluster.kill("real-1")
    await cluster.repair()

    def restarted() -> bool:
        now = container(read_pods(cluster)["web-real-1"])
        return now["restartCount"] == 1 and now["ready"]

    await eventually(restarted, 60)
    after = read_pods(cluster)["web-real-1"]
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert page(after) == "nginx:alpine"


def leave_a_cable(cluster: RealCluster, network: Network) -> None:
    """Leave a network link of a killed switch, as the kernel of a busy machine does for seconds.

    No process has such an id. The other end is in a node, so that the link is removed with the cluster.
    """
    name = f"fl-{NO_PROCESS + os.getpid()}"
    node = cluster.plane.processes.alive("real-0")
    assert node is not None
    for command in (
        f"ip link add {name} type veth peer name remains netns {node.pid}",
        f"ip address add {network.host}/16 dev {name}",
        f"ip link set {name} up",
    ):
        subprocess.run(command.split(), check=True)


async def test_a_cut_network_comes_back_with_the_same_addresses(cluster: RealCluster, web: dict[str, Json]) -> None:
    network = cluster.nodes.network
    await cluster.kill("switch")
    leave_a_cable(cluster, network)
    assert await cluster.nodes.connect() == network
    await cluster.repair()
    pods = {name: read_pods(cluster)[name] for name in web}
    for name in pods:
        for other in pods.values():
            assert inside(cluster, name, f"wget -qO- http://{other['status']['podIP']}") == "nginx:alpine"


@pytest.mark.usefixtures("web")
def test_a_node_keeps_its_files_for_itself(cluster: RealCluster) -> None:
    for name in cluster.names:
        assert (cluster.nodes.files(name) / "run/containerd/containerd.sock").exists()
        assert "web-" in cluster.run_in(name, "ls", "/var/log/containers")
        assert cluster.run_in(name, "hostname").strip() == name
    shown = cluster.run_in("real-0", "ctr", "--namespace", "k8s.io", "containers", "list", "--quiet")
    running = container(read_pods(cluster)["web-real-0"])["containerID"].removeprefix("containerd://")
    assert running in shown.split()
