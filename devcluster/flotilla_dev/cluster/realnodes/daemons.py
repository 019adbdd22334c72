"""Command lines and configurations of one node's kubelet, kube-proxy and containerd."""

from pathlib import Path

import msgspec
import yaml

from flotilla_cli.local import write_private
from flotilla_common.control.plan import Json
from flotilla_dev.cluster.realnodes import network
from flotilla_dev.cluster.realnodes.debian import plugin_dir, program
from flotilla_dev.cluster.realnodes.network import Network

KUBELET_PORT = 10250  # where the apiserver asks for logs and terminals
ROOM = {  # evicting for the sake of this machine's memory or disk would make tests depend on it
    "memory.available": "1Mi",
    "nodefs.available": "0%",
    "nodefs.inodesFree": "0%",
    "imagefs.available": "0%",
    "imagefs.inodesFree": "0%",
}

SOCKET = "/run/containerd/containerd.sock"  # the default of its clients; a node has a /run of its own
PAUSE = "registry.k8s.io/pause:3.10"

# Restricting the OOM score lets sandboxes start where root may not lower it. Schemas of plugins: version 3.
CONFIGURATION = """\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
  address = "{socket}"

[plugins."io.containerd.cri.v1.images"]
  snapshotter = "{snapshotter}"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "{registries}"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{plugins}"]
    conf_dir = "{networks}"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        SystemdCgroup = false
"""

HOSTS = """\
# Every image comes from here, also those of other registries.
server = "{server}"

[host."{server}"]
  capabilities = ["pull", "resolve"]
"""


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
        "clusterDomain": network.DOMAIN,
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


def write_containerd(folder: Path, registries: Path, networks: Path) -> Path:
    """Write a node's configuration. Return the file."""
    config = folder / "containerd.toml"
    text = CONFIGURATION.format(
        socket=SOCKET,
        snapshotter="native" if filesystem(folder) == "overlay" else "overlayfs",  # overlays do not stack
        pause=PAUSE,
        registries=registries,
        plugins=plugin_dir(),
        networks=networks,
        runc=program("runc"),
    )
    config.write_text(text, encoding="utf-8")
    return config


def trust_registry(registries: Path, name: str, server: str) -> None:
    """Pull images of this registry (`_default`: of any other) from this address, from the next pull on."""
    folder = registries / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hosts.toml").write_text(HOSTS.format(server=server), encoding="utf-8")


def filesystem(path: Path, mounts: str = "") -> str:
    """Return the type of the file system that contains a path."""
    lines = (mounts or Path("/proc/self/mountinfo").read_text(encoding="utf-8")).splitlines()
    best, kind = "", ""
    for line in lines:
        own, _, source = line.partition(" - ")
        point = own.split()[4]
        if path.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, source.split()[0]
    return kind
