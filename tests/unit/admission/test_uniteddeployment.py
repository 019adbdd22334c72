"""UnitedDeployments at admission: defaults, what is refused, and both versions (uniteddeployment.md §2 to §4)."""

from typing import Any

import pytest

from flotilla_common.api.kinds.uniteddeployment import crd
from flotilla_common.api.kinds.uniteddeployment.admission import with_defaults
from flotilla_common.api.kinds.uniteddeployment.types import convert, to_hub
from flotilla_common.api.kinds.uniteddeployment.validation import validate
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from flotilla_common.gates import Gates
from tests.testkit.documents import Json
from tests.unit.workload.openkruise import documents

GATES = Gates.parse("")
POD = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def workload(**spec: Any) -> Json:
    return {
        "metadata": {"labels": {"app": "x"}},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": POD} | spec,
    }


def united(*subsets: Json, kind: str = "cloneSetTemplate", version: str = V1BETA1, **spec: Any) -> Json:
    """Return a UnitedDeployment of four pods, without the members of the spec that are None."""
    whole = {
        "replicas": 4,
        "selector": {"matchLabels": {"app": "x"}},
        "template": {kind: workload()},
        "topology": {"subsets": list(subsets)},
    } | spec
    return {
        "apiVersion": version,
        "kind": "UnitedDeployment",
        "metadata": {"name": "ud", "namespace": "n"},
        "spec": {key: value for key, value in whole.items() if value is not None},
    }


A, B = {"name": "a"}, {"name": "b"}
ADAPTIVE = {"type": "Adaptive"}


def stateful(**spec: Any) -> Json:
    return {"statefulSetTemplate": workload(**spec)}


FAULTS = [
    (united(A, B), []),
    (united(A, replicas=-1), ["spec.replicas", "spec.topology.subsets"]),
    (united(A, selector=None), ["spec.selector"]),
    (united(A, selector={}), ["spec.selector"]),
    (united(A, selector={"matchExpressions": [{"key": "a", "operator": "Maybe"}]}), ["spec.selector"]),
    (united(A, template={}), ["spec.template"]),
    (united(A, template=None), ["spec.template"]),
    (united(A, template={"cloneSetTemplate": workload(), "deploymentTemplate": workload()}), ["spec.template"]),
    (
        united(A, selector={"matchLabels": {"app": "y"}}, template=stateful()),
        [
            "spec.template.statefulSetTemplate.metadata.labels",
            "spec.template.statefulSetTemplate.spec.template.metadata.labels",
        ],
    ),
    (united(A, selector={"matchLabels": {"app": "y"}}), []),  # a CloneSet is validated when it is created
    (united(A, template=stateful(replicas=1)), ["spec.template.statefulSetTemplate.spec.replicas"]),
    (
        united(A, template=stateful(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})),
        ["spec.template.statefulSetTemplate.spec.updateStrategy.rollingUpdate.partition"],
    ),
    (
        united(A, template=stateful(updateStrategy={"type": "OnDelete", "rollingUpdate": {}})),
        ["spec.template.statefulSetTemplate.spec.updateStrategy.rollingUpdate"],
    ),
    (
        united(A, template=stateful(podManagementPolicy="Any", minReadySeconds=-1)),
        [
            "spec.template.statefulSetTemplate.spec.podManagementPolicy",
            "spec.template.statefulSetTemplate.spec.minReadySeconds",
        ],
    ),
    (
        united(A, template=stateful(persistentVolumeClaimRetentionPolicy={"whenDeleted": "Keep"})),
        ["spec.template.statefulSetTemplate.spec.persistentVolumeClaimRetentionPolicy.whenDeleted"],
    ),
    (
        united(
            A,
            template={
                "deploymentTemplate": workload(
                    template=POD | {"spec": {"restartPolicy": "Never", "activeDeadlineSeconds": 1}}
                )
            },
        ),
        [
            "spec.template.deploymentTemplate.spec.template.spec.restartPolicy",
            "spec.template.deploymentTemplate.spec.template.spec.activeDeadlineSeconds",
        ],
    ),
    (united({"name": ""}), ["spec.topology.subsets[0].name"] * 2),
    (united(A, A), ["spec.topology.subsets[1].name"]),
    (united({"name": "A_b"}), ["spec.topology.subsets[0].name"]),
    (
        united(A | {"replicas": 1}, B, topology={"subsets": [A | {"replicas": 1}, B], "scheduleStrategy": ADAPTIVE}),
        ["spec.topology.subsets[0].replicas"],
    ),
    (
        united(
            kind="advancedStatefulSetTemplate",
            topology={"subsets": [A], "scheduleStrategy": ADAPTIVE | {"adaptive": {"reserveUnschedulablePods": True}}},
        ),
        ["spec.topology.scheduleStrategy"],
    ),
    (united(A, updateStrategy={"type": "Auto"}), ["spec.updateStrategy.type"]),
    (
        united(A, updateStrategy={"manualUpdate": {"partitions": {"c": 1}}}),
        ["spec.updateStrategy.manualUpdate.partitions"],
    ),
    (united(A | {"replicas": "50"}, B), ["spec.topology.subsets[0].replicas"]),
    (united(A | {"replicas": "101%"}, B), ["spec.topology.subsets[0].replicas"]),
    (united(A | {"minReplicas": -1}, B), ["spec.topology.subsets[0].minReplicas"]),
    (united(A | {"maxReplicas": "1.5%"}, B), ["spec.topology.subsets[0].maxReplicas"]),
    (united(A | {"minReplicas": 3, "maxReplicas": 2}, B), ["spec.topology.subsets[0].minReplicas"]),
    (united(A | {"replicas": 1}, B | {"maxReplicas": 2}), ["spec.topology.subsets"]),
    (united(A | {"maxReplicas": 1}, B | {"maxReplicas": 9}), ["spec.topology.subsets"]),
    (united(A | {"minReplicas": 9}, B), []),  # more than there are: given in the order of the subsets
    (united(A | {"replicas": 5}, B), ["spec.topology.subsets"]),
    (united(A | {"replicas": 1}, B | {"replicas": 2}), ["spec.topology.subsets"]),
    (united(A | {"replicas": 2}, B | {"replicas": "50%"}), []),
    (united(A | {"replicas": 2}, B | {"replicas": 3}, replicas=None), []),
    (united(A | {"replicas": 2}, B, replicas=None), ["spec.topology.subsets"]),
    (united(), []),
]


@pytest.mark.parametrize(("document", "expected"), FAULTS)
def test_what_is_refused(document: Json, expected: list[str]) -> None:
    assert [fault.path for fault in validate(document)] == expected


TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
CHANGES = [
    (united(A), united(A | {"nodeSelectorTerm": TERM}), ["spec.topology.subsets[0].nodeSelectorTerm"]),
    (united(A), united(A | {"nodeSelectorTerm": {}}), []),
    (united(A), united(A | {"tolerations": [{"key": "x"}]}), ["spec.topology.subsets[0].tolerations"]),
    (united(A), united(B | {"nodeSelectorTerm": TERM}), []),
    (united(A), united(A | {"patch": {"metadata": {}}}), []),
    (united(A), united(A, kind="deploymentTemplate"), []),
    (
        united(A, template=stateful(serviceName="x")),
        united(A, template=stateful(serviceName="y")),
        ["spec.template.statefulSetTemplate.spec"],
    ),
    (united(A, template=stateful(serviceName="")), united(A, template=stateful()), []),
    (united(A, template=stateful()), united(A, template=stateful(minReadySeconds=1, ordinals={"start": 1})), []),
    (
        united(A, template={"advancedStatefulSetTemplate": workload()}),
        united(A, template={"advancedStatefulSetTemplate": workload(lifecycle={"preDelete": {}})}),
        ["spec.template.advancedStatefulSetTemplate.spec"],
    ),
    (united(A), united(A, template={"cloneSetTemplate": workload(minReadySeconds=5)}), []),
]


@pytest.mark.parametrize(("old", "new", "expected"), CHANGES)
def test_what_an_update_must_not_change(old: Json, new: Json, expected: list[str]) -> None:
    assert [fault.path for fault in validate(new, old)] == expected


def test_defaults() -> None:
    document = united(A, B, replicas=None) | {"status": {"replicas": 9}}
    spec = with_defaults(document, None, GATES)["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (1, 10)
    assert spec["updateStrategy"] == {"type": "Manual", "manualUpdate": {}}
    assert spec["topology"] == {"subsets": [A, B]}
    assert "status" not in with_defaults(document, None, GATES)
    assert "status" in document


@pytest.mark.parametrize(
    ("subsets", "expected"),
    [
        ([A | {"maxReplicas": 2}, B], [0, 0]),
        ([A | {"minReplicas": 1}, B], [1, 0]),
        ([A | {"replicas": 1, "maxReplicas": 2}, B], [None, None]),
        ([A, B], [None, None]),
    ],
)
def test_minima_are_filled_in_where_there_are_bounds(subsets: list[Json], expected: list[int | None]) -> None:
    found = with_defaults(united(*subsets), None, GATES)["spec"]["topology"]["subsets"]
    assert [one.get("minReplicas") for one in found] == expected


def test_only_pods_of_stateful_sets_get_defaults_and_only_new_ones() -> None:
    document = united(A, kind="statefulSetTemplate")
    spec = with_defaults(document, None, GATES)["spec"]["template"]["statefulSetTemplate"]["spec"]
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert with_defaults(document, document, GATES)["spec"]["template"] == document["spec"]["template"]
    for kind in ("cloneSetTemplate", "advancedStatefulSetTemplate", "deploymentTemplate"):
        other = united(A, kind=kind)
        assert with_defaults(other, None, GATES)["spec"]["template"] == other["spec"]["template"]


FLAT = {"type": "InPlaceIfPossible", "maxUnavailable": 1, "partition": "20%"}
NESTED = {
    "type": "RollingUpdate",
    "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 1, "partition": "20%"},
}


def test_the_old_layout_of_clone_sets_is_taken_and_never_stored() -> None:
    document = united(A, version=V1ALPHA1, template={"cloneSetTemplate": workload(updateStrategy=FLAT)})
    written = with_defaults(document, None, GATES)
    assert written["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"] == NESTED
    stored = convert(document, V1BETA1)
    assert stored["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"] == NESTED
    back = convert(stored, V1ALPHA1)
    assert back["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"] == NESTED


def test_the_new_layout_of_clone_sets_passes_through_both_versions() -> None:
    document = united(A, version=V1ALPHA1, template={"cloneSetTemplate": workload(updateStrategy=NESTED)})
    assert convert(document, V1BETA1)["spec"] == document["spec"]
    assert with_defaults(document, None, GATES)["spec"]["template"] == document["spec"]["template"]


@pytest.mark.parametrize("name", ["ud", "ud-asts"])
def test_statuses_in_both_versions(name: str) -> None:
    stored = next(one for one in documents("uniteddeployments") if one["metadata"]["name"] == name)
    shown = next(one for one in documents("uniteddeployments.v1alpha1") if one["metadata"]["name"] == name)
    assert convert(stored, V1ALPHA1)["status"] == shown["status"]
    back = convert(shown, V1BETA1)["status"]
    subsets = [one | {"partition": 0} for one in stored["status"]["subsetStatuses"]]
    assert back == stored["status"] | {"subsetStatuses": subsets}


def test_the_maps_win_over_the_list() -> None:
    status = {
        "subsetReplicas": {"a": 3, "c": 1},
        "updateStatus": {"updatedRevision": "r", "currentPartitions": {"a": 2}},
        "subsetStatuses": [{"name": "a", "replicas": 9}],
    }
    found = convert(united(A, version=V1ALPHA1) | {"status": status}, V1BETA1)["status"]
    assert found == {
        "updatedRevision": "r",
        "subsetStatuses": [{"name": "a", "replicas": 3, "partition": 2}, {"name": "c", "replicas": 1}],
    }


@pytest.mark.parametrize(
    ("status", "shown"), [({}, {}), ({"updatedRevision": "r"}, {"updateStatus": {"updatedRevision": "r"}})]
)
def test_an_empty_status(status: Json, shown: Json) -> None:
    assert convert(united(A) | {"status": status}, V1ALPHA1)["status"] == shown


def test_the_hub_stays_as_it_is() -> None:
    document = united(A)
    assert to_hub(document) is document
    with pytest.raises(ValueError, match="cannot convert"):
        convert(document, "apps/v1")


@pytest.mark.parametrize(("version", "filled_in"), [("v1alpha1", {}), ("v1beta1", {"default": False})])
def test_only_the_stored_version_fills_in_what_was_not_written(version: str, filled_in: Json) -> None:
    """An object that an earlier release stored in v1alpha1 is shown as it was written."""
    template = crd.version(version).spec["properties"]["template"]["properties"]["cloneSetTemplate"]
    scale = template["properties"]["spec"]["properties"]["scaleStrategy"]
    assert scale["properties"]["enablePVCReuse"].items() >= filled_in.items()
    assert ("default" in scale["properties"]["enablePVCReuse"]) is bool(filled_in)
