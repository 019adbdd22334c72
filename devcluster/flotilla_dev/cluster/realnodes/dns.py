"""Starts CoreDNS for everything that runs on real nodes, on this machine's address in their network.

Kubelets give that address to their pods. CoreDNS resolves names of Services and pods, which it reads from the apiserver
with its own rights. Names of other zones are refused at once, because there is no way to the internet.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from flotilla_cli.install.objects import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from flotilla_cli.local import write_private
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json
from flotilla_dev.cluster.admin import admin, ensure
from flotilla_dev.cluster.control_plane import ControlPlane
from flotilla_dev.cluster.probes import listens
from flotilla_dev.cluster.processes import until

NAME = "coredns"
DOMAIN = "cluster.local"
PORT = 53
READY_WITHIN = 20.0  # seconds; it takes half a second
CONFIGURATION = """\
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
USER = "system:coredns"
_READS: Mapping[str, list[str]] = {
    "": ["services", "pods", "namespaces"],
    "discovery.k8s.io": ["endpointslices"],
}


async def start(
    plane: ControlPlane, program: Callable[[str], Path], clock: Clock, address: str, *, bound: bool
) -> None:
    """Start CoreDNS unless it runs, and wait until it listens. Raises ClusterError."""
    await _allow(plane, clock)
    state_dir = plane.places.state_dir
    current = plane.processes.alive(NAME)
    if current is None:
        config = state_dir / "Corefile"
        kubeconfig = plane.places.kubeconfig(NAME)
        write_private(config, CONFIGURATION.format(port=PORT, address=address, domain=DOMAIN, kubeconfig=kubeconfig))
        current = plane.processes.spawn(NAME, [str(program(NAME)), "-conf", str(config)], bound=bound)

    problem = "The name server did not start"
    await until(partial(listens, address, PORT), current, clock, READY_WITHIN, problem)


async def _allow(plane: ControlPlane, clock: Clock) -> None:
    rules = [{"apiGroups": [group], "resources": names, "verbs": ["list", "watch"]} for group, names in _READS.items()]
    role: Json = {**CLUSTER_ROLE.type_meta, "metadata": {"name": USER}, "rules": rules}
    binding: Json = {
        **CLUSTER_ROLE_BINDING.type_meta,
        "metadata": {"name": USER},
        "roleRef": {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": USER},
        "subjects": [{"apiGroup": CLUSTER_ROLE.group, "kind": "User", "name": USER}],
    }
    async with admin(plane.kubeconfig, clock) as api:
        await ensure(api, CLUSTER_ROLE, role)
        await ensure(api, CLUSTER_ROLE_BINDING, binding)
