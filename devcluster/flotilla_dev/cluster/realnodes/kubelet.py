"""Command lines and configurations of one node's kubelet and kube-proxy."""

from pathlib import Path

import msgspec
import yaml

from flotilla_cli.local import write_private
from flotilla_common.control.plan import Json
from flotilla_dev.cluster.realnodes import dns
from flotilla_dev.cluster.realnodes.containerd import SOCKET
from flotilla_dev.cluster.realnodes.network import Network

PORT = 10250  # where the apiserver asks for logs and terminals
ROOM = {  # evicting for the sake of this machine's memory or disk would make tests depend on it
    "memory.available": "1Mi",
    "nodefs.available": "0%",
    "nodefs.inodesFree": "0%",
    "imagefs.available": "0%",
    "imagefs.inodesFree": "0%",
}


class NodePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One node: its number and name, its folder, its network, and its control group."""

    index: int
    folder: Path
    network: Network
    group: str = "/"

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def address(self) -> str:
        return self.network.node(self.index)


def object_for(plan: NodePlan) -> Json:
    """Return the Node, created before its kubelet registers it, with the pod range that a controller would assign."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": plan.name, "labels": {"kubernetes.io/hostname": plan.name, "type": "real"}},
        "spec": {"podCIDR": plan.network.pods(plan.index), "podCIDRs": [plan.network.pods(plan.index)]},
    }


def kubelet(plan: NodePlan, program: Path, kubeconfig: Path, clients: Path, zones: int = 3) -> list[str]:
    """Return the kubelet's command line, and write its configuration."""
    resolver = plan.folder / "resolv.conf"
    resolver.write_text("# Names of other zones are not known here.\n", encoding="ascii")
    config = plan.folder / "kubelet.yaml"
    write_private(config, yaml.safe_dump(configuration(plan, clients, resolver), sort_keys=False))
    return [
        str(program),
        f"--config={config}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={plan.name}",
        f"--node-ip={plan.address}",
        f"--node-labels=type=real,topology.kubernetes.io/zone=zone-{plan.index % zones}",
    ]


def configuration(plan: NodePlan, clients: Path, resolver: Path) -> Json:
    """Return the kubelet's configuration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": str(clients)}},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": plan.group,
        "failCgroupV1": False,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,
        "enforceNodeAllocatable": [],
        "evictionHard": ROOM,
        "imageGCHighThresholdPercent": 100,
        "oomScoreAdj": 0,  # lower ones need more than root in some containers
        "serializeImagePulls": False,
        "registryPullQPS": 0,
        "eventRecordQPS": 0,
        "kubeAPIQPS": 200,
        "kubeAPIBurst": 400,
        "resolvConf": str(resolver),
        "clusterDNS": [str(plan.network.host)],
        "clusterDomain": dns.DOMAIN,
    }


def proxy(plan: NodePlan, program: Path, kubeconfig: Path) -> list[str]:
    """Return kube-proxy's command line, and write its configuration."""
    config = plan.folder / "kube-proxy.yaml"
    document: Json = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "clusterCIDR": plan.network.prefix,
        "hostnameOverride": plan.name,
        "conntrack": {"maxPerCore": 0},  # settings of the whole machine stay as they are
    }
    write_private(config, yaml.safe_dump(document, sort_keys=False))
    return [str(program), f"--config={config}"]


def pod_network(plan: NodePlan) -> Json:
    """Return the CNI configuration: a bridge per node, addresses from the node's range, no address translation."""
    return {
        "cniVersion": "1.0.0",
        "name": "flotilla",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "hairpinMode": True,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": plan.network.pods(plan.index)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
