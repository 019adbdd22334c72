"""The check that an empty node would accept a pod (broadcastjob.md §4.3)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.workload.strict_placement import StrictPlacement
from tests.unit.broadcastjob.build import node, pod

Spec = dict[str, Any]


def container(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **members: Any) -> Spec:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **members}


def sidecar(requests: dict[str, str]) -> Spec:
    return container(requests, restartPolicy="Always")


def placement(**spec: Any) -> StrictPlacement:
    return StrictPlacement.of(msgspec.json.encode({"spec": spec}))


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ({}, ""),
        ({"containers": [container({"cpu": "2"})]}, ""),
        ({"containers": [container({"cpu": "2001m"})]}, "cpu"),
        ({"containers": [container({"cpu": "1500m"}), container({"cpu": "501m"})]}, "cpu"),
        ({"containers": [container(limits={"cpu": "3"})]}, "cpu"),
        ({"containers": [container({"cpu": "1"}, {"cpu": "3"})]}, ""),
        ({"containers": [container({"memory": "2Gi", "cpu": "3"})]}, "cpu, memory"),
        ({"containers": [container({"ephemeral-storage": "20Gi"})]}, "ephemeral-storage"),
        ({"containers": [container({"example.com/gpu": "1"})]}, "example.com/gpu"),
        ({"containers": [container({"example.com/gpu": "0"})]}, ""),
        ({"initContainers": [container({"cpu": "3"})]}, "cpu"),
        ({"initContainers": [container({"cpu": "2"})], "containers": [container({"cpu": "2"})]}, ""),
        ({"initContainers": [sidecar({"cpu": "1"})], "containers": [container({"cpu": "1500m"})]}, "cpu"),
        ({"initContainers": [sidecar({"cpu": "1"}), container({"cpu": "1500m"})]}, "cpu"),
        ({"initContainers": [container({"cpu": "1500m"}), sidecar({"cpu": "1"})]}, ""),
        ({"overhead": {"cpu": "1"}, "containers": [container({"cpu": "1500m"})]}, "cpu"),
        ({"resources": {"requests": {"cpu": "3"}}, "containers": [container({"cpu": "1"})]}, "cpu"),
        ({"resources": {"requests": {"cpu": "1"}}, "containers": [container({"cpu": "3"})]}, ""),
    ],
)
def test_room(spec: Spec, missing: str) -> None:
    found = placement(**spec).why_not(node("n", cpu="2", memory="1Gi"))
    assert found == (f"Insufficient {missing}" if missing else "")


def test_a_node_that_takes_no_pods() -> None:
    assert placement().why_not(node("n", pods="0")) == "Insufficient pods"
    bare = node("n")
    del bare.status.allocatable["pods"]
    assert placement().why_not(bare) == "Insufficient pods"


def test_cordons_and_taints_are_not_tolerated_by_themselves() -> None:
    plain, tolerant = placement(), placement(tolerations=[{"operator": "Exists"}])
    cordoned = msgspec.structs.replace(node("n"), spec=msgspec.convert({"unschedulable": True}, type(node("n").spec)))
    assert (plain.why_not(cordoned), tolerant.why_not(cordoned)) == ("is unschedulable", "")
    lost = node("n", taints=[{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}])
    assert plain.why_not(lost) == "has the untolerated taint node.kubernetes.io/unreachable:NoExecute"
    assert tolerant.why_not(lost) == ""


def test_a_template_for_one_node_fits_that_one_only() -> None:
    bound = placement(nodeName="n1")
    assert (bound.why_not(node("n1")), bound.why_not(node("n2"))) == ("", "spec.nodeName is n1")


def test_a_pod_says_by_itself_what_it_fits() -> None:
    there = pod(1, "R", nodeSelector={"disk": "ssd"})
    assert StrictPlacement.of_pod(there) is StrictPlacement.of_pod(there)
    assert StrictPlacement.of_pod(there).why_not(node("n1")) == "does not match nodeSelector disk=ssd"


@pytest.mark.parametrize("spec", [{"containers": [container({"cpu": "much"})]}, {"tolerations": "all"}])
def test_what_cannot_be_read_is_refused(spec: Spec) -> None:
    with pytest.raises(ValueError, match=r"spec\.template\.spec"):
        placement(**spec)
