"""The pods that a DaemonSet creates (daemonset.md §4.7)."""

from typing import Any

from flotilla_common.control.plan import Create
from flotilla_daemonset.daemonset.snapshot import Options, PreviousPod
from tests.testkit.documents import Json
from tests.testkit.plans import codes, node_of
from tests.unit.daemonset.build import OWNER, Builder, ds, planned, summary


def bodies(builder: Builder, **more: Any) -> list[Json]:
    made = [action for action in planned(builder, **more).actions if isinstance(action, Create)]
    return [action.body for action in made if action.resource.kind == "Pod"]


def body(builder: Builder, **more: Any) -> Json:
    return bodies(builder, **{"on": 1, **more})[0]


def test_labels_owner_and_node() -> None:
    builder = ds()
    builder.spec["template"]["metadata"] |= {"annotations": {"a": "1"}, "finalizers": ["x/y"]}
    made = body(builder)
    meta = made["metadata"]
    assert meta["generateName"] == "d-"
    assert meta["name"].startswith("d-")
    assert meta["labels"] == {"app": "d", "controller-revision-hash": "B"}
    assert (meta["annotations"], meta["finalizers"]) == ({"a": "1"}, ["x/y"])
    (owner,) = meta["ownerReferences"]
    assert owner == OWNER
    assert node_of(made) == "n1"
    assert "nodeName" not in made["spec"]
    assert {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"} in made["spec"][
        "tolerations"
    ]


def test_readiness_gates_by_the_way_of_updating() -> None:
    def gates(builder: Builder, **more: Any) -> list[str]:
        return [one["conditionType"] for one in body(builder, **more)["spec"].get("readinessGates", [])]

    assert gates(ds()) == ["KruisePodReady"]
    assert gates(ds().in_place()) == ["InPlaceUpdateReady", "KruisePodReady"]
    assert gates(ds(), gates="PodWebhook=false") == []
    builder = ds().in_place()
    builder.spec["updateStrategy"]["type"] = "OnDelete"
    assert gates(builder) == ["KruisePodReady"]


def test_past_the_scheduler() -> None:
    spec = body(ds(), options=Options(assign_by_scheduler=False))["spec"]
    assert (spec["nodeName"], spec["schedulerName"]) == ("n1", "kubernetes.io/daemonset-controller")
    assert "affinity" not in spec


def test_the_number_of_an_old_template() -> None:
    builder = ds().annotated(**{"deprecated.daemonset.template.generation": "7"})
    assert body(builder)["metadata"]["labels"]["pod-template-generation"] == "7"


def test_names_are_derived_and_never_those_of_others() -> None:
    first, again = bodies(ds(), on=3), bodies(ds(), on=3)
    names = [one["metadata"]["name"] for one in first]
    assert names == [one["metadata"]["name"] for one in again]
    assert len(set(names)) == 3
    others = bodies(ds(), on=3, foreign=names)
    assert not {one["metadata"]["name"] for one in others} & set(names)
    after = body(ds(), previous_pods={"n1": PreviousPod(name=names[0])})
    assert after["metadata"]["name"] != names[0]


def test_a_template_that_the_selector_does_not_know_makes_nothing() -> None:
    builder = ds()
    builder.spec["selector"]["matchLabels"] = {"app": "other"}
    plan = planned(builder, on=1, revisions=[])
    assert not [one for one in summary(plan) if one.startswith("+")]
    assert "InvalidTemplate" in codes(plan)
