"""Checks the addresses of tcp and http probes: only the pod's own IP, by the container runtime, is allowed.

A pod in the node's network has no IP of its own in the runtime. Its IP is the node's, so the requested one must belong
to this machine or, for an agent in a network of its own, be listed as the node's in the settings. Loopback addresses
are refused, since they are never a pod's IP.
"""

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv6Address, ip_address

from flotilla_nodeagent.probes.definitions import Impossible, ProbeRejected


def is_own_address(ip: str) -> bool:
    """Report whether this machine has the address: only then can a socket be bound to it."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((ip, 0))
    except OSError:
        return False
    return True


def addresses_of_node(listed: str) -> Callable[[str], bool]:
    """Return a predicate for the node's addresses: those of this list, separated by commas, and of this machine."""
    told = frozenset(str(ip_address(one.strip())) for one in listed.split(",") if one.strip())
    return lambda ip: ip in told or is_own_address(ip)


def pod_address(asked: str, known: Sequence[str], is_own: Callable[[str], bool]) -> str:
    """Return the IP to connect to. Raises ProbeRejected, Impossible.

    `asked` is the IP in the NodePodProbe, empty if it was not known at that time; `known` are the pod's IPs in the
    runtime, none for a pod in the node's network.
    """
    if not asked:
        if not known:
            raise Impossible("the pod's IP is not known yet")
        return known[0]
    try:
        address = ip_address(asked)
    except ValueError as error:
        raise ProbeRejected(f"{asked[:64]!r} is not an IP") from error
    mapped = isinstance(address, IPv6Address) and address.ipv4_mapped is not None
    if mapped or address.is_loopback or address.is_unspecified or address.is_multicast or "%" in asked:
        raise ProbeRejected(f"{asked[:64]} is not the IP of a pod")
    if any(address == ip_address(one) for one in known):
        return str(address)
    if known or not is_own(str(address)):
        raise ProbeRejected(f"{address} is not an IP of the pod")
    return str(address)
