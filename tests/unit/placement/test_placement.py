"""The nodes that a pod template fits (daemonset.md §4.2)."""

from typing import Any

import pytest

from flotilla_common.workload.placement import Placement, daemon_demands, node_of, pinned, with_daemon_tolerations
from tests.unit.daemonset.build import node, pod

GPU = "dedicated=gpu"


def _terms(*terms: Any) -> dict[str, Any]:
    demanded = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": demanded}}}


def _expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


NAMED = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}


@pytest.mark.parametrize(
    ("spec", "labels", "fits"),
    [
        ({}, {}, True),
        ({"nodeName": "a"}, {}, True),
        ({"nodeName": "b"}, {}, False),
        ({"nodeSelector": {"disk": "ssd"}}, {"disk": "ssd", "x": "y"}, True),
        ({"nodeSelector": {"disk": "ssd"}}, {"disk": "hdd"}, False),
        (_terms(), {}, False),
        (_terms({}), {}, False),
        (_terms(NAMED), {}, True),
        (_terms({**NAMED, **_expression("x", "Exists")}), {}, False),
        (_terms({}, _expression("x", "Exists")), {"x": ""}, True),
        (_terms(_expression("x", "In", "1", "2")), {"x": "2"}, True),
        (_terms(_expression("x", "In", "1", "2")), {"x": "3"}, False),
        (_terms(_expression("x", "NotIn", "1")), {}, True),
        (_terms(_expression("x", "NotIn", "1")), {"x": "1"}, False),
        (_terms(_expression("x", "DoesNotExist")), {}, True),
        (_terms(_expression("x", "DoesNotExist")), {"x": "1"}, False),
        (_terms(_expression("x", "Gt", "4")), {"x": "5"}, True),
        (_terms(_expression("x", "Gt", "5")), {"x": "5"}, False),
        (_terms(_expression("x", "Lt", "6")), {"x": "5"}, True),
        (_terms(_expression("x", "Lt", "6")), {"x": "five"}, False),
        (_terms(_expression("x", "Lt", "6", "7")), {"x": "5"}, False),
        (_terms(_expression("x", "Like", "5")), {"x": "5"}, False),
        (_terms(_expression("x", "Exists"), _expression("y", "Exists")), {"y": "1"}, True),
        (_terms({"matchFields": [{"key": "metadata.uid", "operator": "Exists"}]}), {}, False),
    ],
)
def test_what_a_template_demands(spec: dict[str, Any], labels: dict[str, str], fits: bool) -> None:
    found = Placement(daemon_demands(spec)).fit(node("a", **labels))
    assert (found.should_run, found.should_continue) == (fits, fits)
    assert bool(found.why_not) != fits


@pytest.mark.parametrize(
    ("tolerations", "taints", "runs", "stays"),
    [
        ([], [f"{GPU}:NoSchedule"], False, True),
        ([], [f"{GPU}:NoExecute"], False, False),
        ([], [f"{GPU}:PreferNoSchedule"], True, True),
        ([{"key": "dedicated", "value": "gpu"}], [f"{GPU}:NoSchedule"], True, True),
        ([{"key": "dedicated", "value": "cpu"}], [f"{GPU}:NoSchedule"], False, True),
        ([{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}], [f"{GPU}:NoExecute"], False, False),
        ([{"operator": "Exists"}], [f"{GPU}:NoExecute", "other:NoSchedule"], True, True),
        ([{"key": "dedicated", "operator": "Exists"}], [f"{GPU}:NoExecute", "other:NoSchedule"], False, True),
        ([], ["node.kubernetes.io/unschedulable:NoSchedule"], True, True),
        ([], ["node.kubernetes.io/unreachable:NoExecute"], True, True),
        ([], ["node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"], False, True),
        ([], ["node.kubernetes.io/network-unavailable:NoSchedule"], False, True),
    ],
)
def test_taints(tolerations: list[dict[str, str]], taints: list[str], runs: bool, stays: bool) -> None:
    found = Placement(daemon_demands({"tolerations": tolerations})).fit(node("a", taints=taints))
    assert (found.should_run, found.should_continue) == (runs, stays)


def test_the_hosts_network_may_be_missing_for_those_that_bring_it() -> None:
    assert (
        Placement(daemon_demands({"hostNetwork": True}))
        .fit(node("a", taints=["node.kubernetes.io/network-unavailable:NoSchedule"]))
        .should_run
    )


def test_why_not_is_said_in_the_words_of_kubernetes() -> None:
    def why(spec: dict[str, Any], *taints: str) -> str:
        return Placement(daemon_demands(spec)).fit(node("a", taints=taints, zone="z")).why_not

    assert why({"nodeName": "b"}) == "spec.nodeName is b"
    assert why({"nodeSelector": {"zone": "z", "disk": "ssd"}}) == "does not match nodeSelector disk=ssd"
    assert why(_terms()) == "does not match the required node affinity"
    assert why({}, f"{GPU}:NoSchedule", "x:PreferNoSchedule") == f"has the untolerated taint {GPU}:NoSchedule"


def test_demands_that_cannot_be_read_are_named() -> None:
    with pytest.raises(ValueError, match=r"spec\.template\.spec: Expected `object`"):
        daemon_demands({"nodeSelector": "all"})


def test_tolerations_are_added_once() -> None:
    own = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
    added = with_daemon_tolerations({"tolerations": [own, {"key": "x"}]})
    assert added.count(own) == 1
    assert len(added) == 2 + 5
    assert len(with_daemon_tolerations({"hostNetwork": True})) == 7


def test_a_pod_is_made_for_one_node() -> None:
    preferred = [{"weight": 1, "preference": _expression("x", "Exists")}]
    spec = {**_terms(_expression("x", "Exists")), "containers": []}
    spec["affinity"]["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] = preferred
    spec["affinity"]["podAffinity"] = {}
    bound = pinned(spec, "a")["affinity"]
    assert bound["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {"nodeSelectorTerms": [NAMED]}
    assert bound["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == preferred
    assert "podAffinity" in bound


def test_the_node_of_a_pod() -> None:
    assert node_of(pod("a")) == "a"
    assert node_of(pod("a", "B", "P")) == "a"
