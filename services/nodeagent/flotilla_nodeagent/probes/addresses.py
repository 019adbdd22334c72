"""The addresses that tcp and http probes may connect to: the pod's own IP, as the container runtime knows it, and
nowhere else.

A pod in the node's network has no IP of its own in the runtime. Its IP is the node's then, so the one that is asked
for must be one that this machine has, or, for an agent in a network of its own, one that the settings say the node has.
Loopback addresses are not, for they are nobody's pod IP.
"""

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv6Address, ip_address

from flotilla_nodeagent.probes.definitions import Impossible, Refused


def is_own_address(ip: str) -> bool:
    """Return whether this machine has the address: only then can a socket have it."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((ip, 0))
    except OSError:
        return False
    return True


def addresses_of_node(listed: str) -> Callable[[str], bool]:
    """Return what says whether an address is the node's: one of this list, separated by commas, or of this machine."""
    told = frozenset(str(ip_address(one.strip())) for one in listed.split(",") if one.strip())
    return lambda ip: ip in told or is_own_address(ip)


def pod_address(asked: str, known: Sequence[str], is_own: Callable[[str], bool]) -> str:
    """Return the IP to connect to. `asked`: the one in the NodePodProbe, empty if it was not known then; `known`: those
    that the runtime knows of the pod, none for a pod in the node's network. Raises Refused, Impossible."""
    if not asked:
        if not known:
            raise Impossible("the pod's IP is not known yet")
        return known[0]
    try:
        address = ip_address(asked)
    except ValueError as error:
        raise Refused(f"{asked[:64]!r} is not an IP") from error
    mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    if mapped or address.is_loopback or address.is_unspecified or address.is_multicast or "%" in asked:
        raise Refused(f"{asked[:64]} is not the IP of a pod")
    if any(address == ip_address(one) for one in known):
        return str(address)
    if known or not is_own(str(address)):
        raise Refused(f"{address} is not an IP of the pod")
    return str(address)
