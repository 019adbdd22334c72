"""The pods that a BroadcastJob creates (broadcastjob.md §2.3, §4.4)."""

from typing import Any

import pytest

from flotilla_common.api.kinds.broadcastjob.types import BroadcastJob
from flotilla_common.control.plan import Create, Event
from flotilla_jobs.broadcastjob.plan import plan
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot, Options
from tests.testkit.documents import Json
from tests.unit.broadcastjob.build import NOW, OWNER, Planned, job, nodes, planned, template


def creates(one: BroadcastJob, **known: Any) -> list[Create]:
    return [action for action in planned(one, there=nodes(2), **known).actions if isinstance(action, Create)]


def body(one: BroadcastJob, **known: Any) -> Json:
    return creates(one, **known)[0].body


def test_labels_owner_and_node() -> None:
    given = template()
    given["metadata"] = {"labels": {"app": "j"}, "annotations": {"a": "1"}, "finalizers": ["x/y"]}
    made = body(job(template=given))
    meta = made["metadata"]
    assert (meta["generateName"], meta["namespace"], meta["name"][:2]) == ("j-", "default", "j-")
    assert meta["labels"] == {"app": "j", "broadcastjob-name": "j", "broadcastjob-controller-uid": "uid-j"}
    assert (meta["annotations"], meta["finalizers"]) == ({"a": "1"}, ["x/y"])
    assert meta["ownerReferences"] == [OWNER]
    assert "nodeName" not in made["spec"]


@pytest.mark.parametrize(
    ("gates", "namespace", "expected"),
    [("", "default", ["KruisePodReady"]), ("PodWebhook=false", "default", []), ("", "kube-system", [])],
)
def test_readiness_gates(gates: str, namespace: str, expected: list[str]) -> None:
    made = body(job(meta={"namespace": namespace}), gates=gates)
    assert [gate["conditionType"] for gate in made["spec"].get("readinessGates", [])] == expected


def test_the_node_replaces_what_the_template_demands_and_keeps_what_it_prefers() -> None:
    demanded = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]}]}
    preferred: list[Json] = [{"weight": 1, "preference": {}}]
    affinity: Json = {
        "requiredDuringSchedulingIgnoredDuringExecution": demanded,
        "preferredDuringSchedulingIgnoredDuringExecution": preferred,
    }
    made = body(job(pod={"affinity": {"nodeAffinity": affinity}}))["spec"]["affinity"]["nodeAffinity"]
    assert made["preferredDuringSchedulingIgnoredDuringExecution"] == preferred
    assert made["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    }


def test_past_the_scheduler() -> None:
    spec = body(job(), options=Options(assign_by_scheduler=False))["spec"]
    assert spec["nodeName"] == "n1"
    assert "affinity" not in spec


def test_names_are_new_where_a_pod_was_before() -> None:
    first = [create.name for create in creates(job())]
    assert len({*first}) == 2
    (again, other) = [create.name for create in creates(job(), former_names={"n1": first[0]})]
    assert again != first[0]
    assert other == first[1]
    of_another = [create.name for create in creates(job(meta={"uid": "uid-other"}))]
    assert not {*first} & {*of_another}


def test_names_that_are_taken_are_left() -> None:
    one = job()
    (name,) = [create.name for create in creates(one)][:1]
    snapshot = BroadcastJobSnapshot(job=one, nodes=nodes(1), taken_names={name})
    (create,) = Planned(plan(snapshot, NOW)).actions
    assert create.name not in ("", name)


def test_events() -> None:
    (create, _) = creates(job())
    assert create.on_success == Event(reason="SuccessfulCreate", message=f"Created pod: {create.name}")
    assert create.on_failure == Event(reason="FailedCreate", message="Error creating: ", warning=True)
