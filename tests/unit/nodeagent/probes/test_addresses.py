"""Probes connect to the pod's own IP and to nothing else."""

import pytest

from flotilla_nodeagent.probes.definitions import Impossible, ProbeRejected
from flotilla_nodeagent.probes.handlers import addresses_of_node, is_own_address, pod_address

POD = ("10.0.0.7", "fd00::7")
NODE = "192.168.1.5"


def is_own(ip: str) -> bool:
    return ip in (NODE, "127.0.0.1", "::1", "::ffff:127.0.0.1", "fe80::1")


@pytest.mark.parametrize(
    ("asked", "known", "taken"),
    [
        ("10.0.0.7", POD, "10.0.0.7"),
        ("fd00::7", POD, "fd00::7"),
        ("fd00:0:0::7", POD, "fd00::7"),
        ("", POD, "10.0.0.7"),  # the entry was made before the pod had its IP
        (NODE, (), NODE),  # in the node's network
    ],
)
def test_taken(asked: str, known: tuple[str, ...], taken: str) -> None:
    assert pod_address(asked, known, is_own) == taken


@pytest.mark.parametrize("known", [POD, ()])
@pytest.mark.parametrize(
    "asked",
    [
        *("10.0.0.8", "169.254.169.254", "127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.7"),
        *("fe80::1%eth0", "224.0.0.1", "localhost", "10.0.0.7.", "10.0.0.07", "0x7f000001", "1", "a" * 10_000),
    ],
)
def test_refused(asked: str, known: tuple[str, ...]) -> None:
    with pytest.raises(ProbeRejected) as refused:
        pod_address(asked, known, is_own)
    assert len(str(refused.value)) < 120


def test_the_nodes_address_is_not_that_of_a_pod_with_its_own() -> None:
    with pytest.raises(ProbeRejected):
        pod_address(NODE, POD, is_own)


def test_an_ip_that_nobody_knows() -> None:
    with pytest.raises(Impossible):
        pod_address("", (), is_own)


def test_addresses_of_this_machine() -> None:
    assert is_own_address("127.0.0.1")
    assert not is_own_address("198.51.100.1")
    assert not is_own_address("2001:db8::1")


def test_addresses_that_the_agent_was_told() -> None:
    is_node = addresses_of_node("198.51.100.1, 2001:DB8::1,")
    assert is_node("198.51.100.1")
    assert is_node("2001:db8::1")
    assert is_node("127.0.0.1")
    assert not is_node("198.51.100.2")
    assert pod_address("198.51.100.1", (), is_node) == "198.51.100.1"
    with pytest.raises(ProbeRejected):
        pod_address("198.51.100.1", POD, is_node)
