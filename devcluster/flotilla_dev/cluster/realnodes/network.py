"""The network of real nodes: a switch in a namespace of its own, one cable to this machine and one to each node, DNS.

Every cluster has a /16 that nothing on this machine uses: `.0.1` is this machine, `.0.10` upwards are the nodes,
`.1.0/24` upwards their pods. All of it is one link: nodes answer for their pods (proxy ARP), so that no routes are
needed. When the switch's process ends, the kernel removes the cables, also the end on this machine, with address and
route.

CoreDNS listens on this machine's address, which kubelets give to their pods. It resolves names of Services and pods,
which it reads from the apiserver with its own rights. Names of other zones are refused at once, because there is no way
to the internet.
"""

import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from ipaddress import IPv4Network
from pathlib import Path

import msgspec

from flotilla_cli.local import ClusterError, Process, start_ticks, write_private
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json
from flotilla_dev.cluster.access import admin, ensure
from flotilla_dev.cluster.control_plane import ControlPlane
from flotilla_dev.cluster.ports import listens
from flotilla_dev.cluster.processes import Processes, until
from flotilla_dev.cluster.realnodes.isolation import inside, inside_network, network_holder, separated
from flotilla_insight.installation.objects import CLUSTER_ROLE, CLUSTER_ROLE_BINDING

SWITCH = "switch"
BRIDGE = "switch"
UPLINK = "eth0"  # the cable's end in a node
PREFIX = "fl-"  # of the cable's end on this machine; what follows is the switch's process id
FIRST, LAST = 97, 127
"""Second bytes of networks in 10.0.0.0/8: services are in 96, fake nodes in 64, fake pods from 128 on."""

NODES = 200  # addresses that are set aside for nodes

DNS = "coredns"
DOMAIN = "cluster.local"
DNS_PORT = 53
DNS_READY_WITHIN = 20.0  # seconds; it takes half a second
DNS_CONFIGURATION = """\
.:{port} {{
    bind {address}
    errors
    cache 5
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods verified
        ttl 5
    }}
}}
"""
DNS_USER = "system:coredns"
_DNS_READS: Mapping[str, list[str]] = {
    "": ["services", "pods", "namespaces"],
    "discovery.k8s.io": ["endpointslices"],
}


class Network(msgspec.Struct, frozen=True):
    """The addresses of one cluster."""

    second: int

    @property
    def prefix(self) -> str:
        """The prefix of all its addresses."""
        return f"10.{self.second}.0.0/16"

    @property
    def host(self) -> str:
        """The address of this machine in it, for nodes and pods."""
        return f"10.{self.second}.0.1"

    def node(self, index: int) -> str:
        """Return the address of a node."""
        return f"10.{self.second}.0.{10 + index}"

    def pods(self, index: int) -> str:
        """Return the addresses of a node's pods."""
        return f"10.{self.second}.{1 + index}.0/24"


async def ensure_network(state_dir: Path, processes: Processes, clock: Clock, *, bound: bool) -> Network:
    """Return the cluster's network, made if it does not exist, with its earlier addresses if they are free."""
    old = read(state_dir)
    switch = processes.alive(SWITCH)
    if old and switch and _is_claimed(switch, old):
        return old
    await processes.stop([SWITCH], clock, grace=0)
    switch = processes.spawn(SWITCH, network_holder(), bound=bound)
    await separated(switch, clock)
    if old:
        _remove_remains(old)
    _wire(switch)
    network = _claim(switch, [old] if old else [])
    write_private(state_dir / "network.json", msgspec.json.encode(network))
    return network


def read(state_dir: Path) -> Network | None:
    """Return the network that the cluster has or had before it was stopped; None if it never had one."""
    try:
        return msgspec.json.decode((state_dir / "network.json").read_bytes(), type=Network)
    except FileNotFoundError:
        return None


def interface(switch: Process) -> str:
    """Return the name of the cable's end on this machine; at most 15 letters."""
    return f"{PREFIX}{switch.pid}"


def attach(network: Network, index: int, name: str, node: Process, switch: Process) -> None:
    """Connect a node unless it is connected; its default route is made last."""
    if _run(inside(node, ["ip", "route", "show", "default"])):
        return
    # A half-made cable, or that of a node that was killed: it goes a moment later than the node.
    _fails(inside_network(switch, ["ip", "link", "delete", name]))
    cable = ("link", "add", name, "type", "veth", "peer", "name", UPLINK, "netns", str(node.pid))
    _run(inside_network(switch, ["ip", *cable]))
    _run(inside_network(switch, ["ip", "link", "set", name, "master", BRIDGE, "up"]))
    for line in (
        "ip link set lo up",
        f"ip address add {network.node(index)}/16 dev {UPLINK}",
        f"ip link set {UPLINK} up",
        # By default a node would wait up to 0.8 s before it answers for a pod.
        f"echo 0 >/proc/sys/net/ipv4/neigh/{UPLINK}/proxy_delay",
        f"ip route add default via {network.host}",
    ):
        _run(inside(node, ["sh", "-c", line]))


def taken(routes: list[Json]) -> list[IPv4Network]:
    """Return every network in the routing tables of this machine."""
    named = [str(route["dst"]) for route in routes if route.get("dst", "default") != "default"]
    return [IPv4Network(name) for name in named]


def candidates(used: list[IPv4Network], preferred: list[Network]) -> list[Network]:
    """Return the networks that are free, best first."""
    every = [*preferred, *(Network(second) for second in range(FIRST, LAST + 1))]
    return [one for one in every if not any(IPv4Network(one.prefix).overlaps(other) for other in used)]


def _wire(switch: Process) -> None:
    """Make the switch itself, and its cable to this machine."""
    _run(inside_network(switch, ["ip", "link", "add", BRIDGE, "type", "bridge"]))
    _run(inside_network(switch, ["ip", "link", "set", BRIDGE, "up"]))
    end = ("peer", "name", "machine", "netns", str(switch.pid))
    _run(["ip", "link", "add", interface(switch), "type", "veth", *end])
    _run(inside_network(switch, ["ip", "link", "set", "machine", "master", BRIDGE, "up"]))
    _run(["ip", "link", "set", interface(switch), "up"])


def _remove_remains(network: Network) -> None:
    """Remove the cable of a switch that was killed.

    On a busy machine the kernel does so seconds later, and until then the cluster's own addresses count as taken.
    """
    shown = _run(["ip", "-json", "address", "show", "to", network.host])
    for device in msgspec.json.decode(shown, type=list[Json]):
        name: str = device.get("ifname", "")
        pid = name.removeprefix(PREFIX)
        if name != pid and pid.isdecimal() and start_ticks(int(pid)) is None:
            _fails(["ip", "link", "delete", name])  # or the kernel was faster


def _claim(switch: Process, preferred: list[Network]) -> Network:
    """Claim the first free network. Of two commands that try the same one, the kernel lets one add its route."""
    shown = _run(["ip", "-json", "-4", "route", "show", "table", "all"])
    device = interface(switch)
    for network in candidates(taken(msgspec.json.decode(shown, type=list[Json])), preferred):
        _run(["ip", "address", "add", f"{network.host}/16", "dev", device, "noprefixroute"])
        if not _fails(["ip", "route", "add", network.prefix, "dev", device, "src", network.host]):
            return network
        _run(["ip", "address", "del", f"{network.host}/16", "dev", device])
    raise ClusterError(f"No network between 10.{FIRST}.0.0/16 and 10.{LAST}.0.0/16 is free for the nodes.")


def _is_claimed(switch: Process, network: Network) -> bool:
    """Report whether the switch has these addresses; its maker may have been killed before."""
    device = interface(switch)
    return not _fails(["ip", "link", "show", device]) and bool(
        _run(["ip", "route", "show", network.prefix, "dev", device])
    )


def _fails(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode != 0


def _run(command: list[str]) -> str:
    reply = subprocess.run(command, capture_output=True, text=True, check=False)
    if reply.returncode:
        raise ClusterError(f"`{' '.join(command)}` failed: {reply.stderr.strip()}")
    return reply.stdout


async def start_dns(
    plane: ControlPlane, program: Callable[[str], Path], clock: Clock, address: str, *, bound: bool
) -> None:
    """Start CoreDNS unless it runs, and wait until it listens. Raises ClusterError."""
    await _allow(plane, clock)
    state_dir = plane.places.state_dir
    current = plane.processes.alive(DNS)
    if current is None:
        config = state_dir / "Corefile"
        kubeconfig = plane.places.kubeconfig(DNS)
        write_private(
            config, DNS_CONFIGURATION.format(port=DNS_PORT, address=address, domain=DOMAIN, kubeconfig=kubeconfig)
        )
        current = plane.processes.spawn(DNS, [str(program(DNS)), "-conf", str(config)], bound=bound)

    problem = "The name server did not start_dns"
    await until(partial(listens, address, DNS_PORT), current, clock, DNS_READY_WITHIN, problem)


async def _allow(plane: ControlPlane, clock: Clock) -> None:
    rules = [
        {"apiGroups": [group], "resources": names, "verbs": ["list", "watch"]} for group, names in _DNS_READS.items()
    ]
    role: Json = {**CLUSTER_ROLE.type_meta, "metadata": {"name": DNS_USER}, "rules": rules}
    binding: Json = {
        **CLUSTER_ROLE_BINDING.type_meta,
        "metadata": {"name": DNS_USER},
        "roleRef": {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": DNS_USER},
        "subjects": [{"apiGroup": CLUSTER_ROLE.group, "kind": "User", "name": DNS_USER}],
    }
    async with admin(plane.kubeconfig, clock) as api:
        await ensure(api, CLUSTER_ROLE, role)
        await ensure(api, CLUSTER_ROLE_BINDING, binding)
