"""WorkloadSpreads at admission: refusals, and both versions (workloadspread.md §2 and §4)."""

from typing import Any

import pytest

from flotilla_common.api.kinds.workloadspread.targets import CustomWorkload, custom_workloads, replicas_of
from flotilla_common.api.kinds.workloadspread.types import WorkloadSpread, WorkloadSpreadSpec, convert
from flotilla_common.api.kinds.workloadspread.validation import validate
from flotilla_common.api.meta import ObjectMeta, TargetRef
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from tests.testkit.documents import Json
from tests.testkit.tables import cases

CUSTOM = [CustomWorkload("train.example.com", "v1", "TrainJob")]
CLONE_SET = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "web"}


def spread(*limits: object, target: Json | None = CLONE_SET, **spec: Any) -> Json:
    """Return a WorkloadSpread with a subset for each limit; None is no limit."""
    names = "abcdef"
    subsets = [
        {"name": names[number]} | ({} if limit is None else {"maxReplicas": limit})
        for number, limit in enumerate(limits)
    ]
    whole = {"targetRef": target, "subsets": subsets} | spec
    return {"spec": {key: value for key, value in whole.items() if value is not None}}


def adaptive(seconds: int | None, kind: str = "Adaptive") -> Json:
    section = {} if seconds is None else {"rescheduleCriticalSeconds": seconds}
    return {"scheduleStrategy": {"type": kind, "adaptive": section}}


def ref(api_version: str, kind: str, name: str = "web") -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name}


LIMIT, TARGET, SECONDS = (
    "spec.subsets[0].maxReplicas",
    "spec.targetRef",
    "spec.scheduleStrategy.adaptive.rescheduleCriticalSeconds",
)
UNREADABLE = {"selector": {"matchExpressions": [{"key": "a"}]}}
FAULTS = [
    ("V1", spread(None), []),
    ("V2", spread(3, None), []),
    ("V3", spread(3, "40%"), ["spec.subsets[1].maxReplicas"]),
    ("V4", spread("30%", "70%"), []),
    ("V5", spread("30%", "60%"), [LIMIT]),
    ("V6", spread("30%", "60%", None), []),
    ("V7", spread("60%", "50%"), [LIMIT]),
    ("V8", spread(None, "30%"), [LIMIT]),
    ("V9", spread("12.5%", None), [LIMIT]),
    ("V10", spread(0, None), []),
    ("V11", spread(1, 1, 1, None, **adaptive(120)), [SECONDS]),
    ("a number as text", spread("50", None), [LIMIT]),
    ("negative", spread(-1, None), [LIMIT]),
    ("no target", spread(None, target=None), [TARGET]),
    ("no name", spread(None, target=ref("apps/v1", "Deployment", "")), [TARGET]),
    ("wrong group", spread(None, target=ref("apps.kruise.io/v1", "Deployment")), [TARGET]),
    ("unknown kind", spread(None, target=ref("batch/v1", "CronJob")), [TARGET]),
    ("another version", spread(None, target=ref("apps.kruise.io/v1alpha1", "CloneSet")), []),
    ("named by administrators", spread(None, target=ref("train.example.com/v2", "TrainJob")), []),
    ("StatefulSet", spread("50%", None, target=ref("apps/v1", "StatefulSet")), [LIMIT]),
    ("StatefulSet of ours", spread(3, None, target=ref("apps.kruise.io/v1beta1", "StatefulSet")), []),
    ("no subsets", spread(), ["spec.subsets"]),
    ("no names", spread(None, subsets=[{"name": ""}]), ["spec.subsets[0].name"]),
    ("one name twice", spread(None, subsets=[{"name": "a"}, {"name": "a"}]), ["spec.subsets[1].name"]),
    ("unknown strategy", spread(None, scheduleStrategy={"type": "Best"}), ["spec.scheduleStrategy.type"]),
    ("Adaptive without a section", spread(None, scheduleStrategy={"type": "Adaptive"}), []),
    ("a section without Adaptive", spread(1, None, **adaptive(1, "Fixed")), ["spec.scheduleStrategy.type"]),
    ("the last one is limited", spread(1, 1, **adaptive(1)), ["spec.scheduleStrategy.adaptive"]),
    ("one that is limited", spread(1, **adaptive(9999)), []),
    ("two subsets, at most", spread(1, None, **adaptive(295)), []),
    ("two subsets, too long", spread(1, None, **adaptive(296)), [SECONDS]),
    ("negative seconds", spread(1, None, **adaptive(-1)), [SECONDS]),
    ("an unreadable filter", spread(None, targetFilter=UNREADABLE), ["spec.targetFilter"]),
    ("an empty filter", spread(None, targetFilter={}), []),
]


@pytest.mark.parametrize(("document", "expected"), cases(FAULTS))
def test_what_is_refused(document: Json, expected: list[str]) -> None:
    assert [fault.path for fault in validate(document, None, CUSTOM, [])] == expected


def other(api_version: str, kind: str = "CloneSet") -> WorkloadSpread:
    target = TargetRef(api_version=api_version, kind=kind, name="web")
    return WorkloadSpread(metadata=ObjectMeta(name="x"), spec=WorkloadSpreadSpec(target_ref=target))


@pytest.mark.parametrize(
    ("rival", "expected"),
    [
        (other("apps.kruise.io/v1alpha1"), [TARGET]),
        (other("apps/v1"), []),
        (other("apps.kruise.io/v1beta1", "Other"), []),
    ],
)
def test_a_workload_has_one(rival: WorkloadSpread, expected: list[str]) -> None:
    """V12: the version does not matter."""
    assert [fault.path for fault in validate(spread(None), None, CUSTOM, [rival])] == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [(ref("apps.kruise.io/v1alpha1", "CloneSet"), []), (ref("apps.kruise.io/v1beta1", "CloneSet", "b"), [TARGET])],
)
def test_the_target_stays(target: Json, expected: list[str]) -> None:
    assert [fault.path for fault in validate(spread(None, target=target), spread(None), CUSTOM, [])] == expected


def test_both_versions() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
    condition = {"type": "Schedulable", "status": "True", "lastTransitionTime": "2026-11-26T12:00:00Z"}
    old = spread(None) | {
        "apiVersion": V1ALPHA1,
        "status": {"subsetStatuses": [{"name": "a", "conditions": [condition]}]},
    }
    old["spec"]["subsets"] = [{"name": "a", "requiredNodeSelectorTerm": term, "preferredNodeSelectorTerms": []}]
    new = convert(old, V1BETA1)
    assert new["spec"]["subsets"] == [{"name": "a", "requiredNodeSelector": term, "preferredNodeSelector": []}]
    (subset,) = new["status"]["subsetStatuses"]
    assert subset["conditions"] == [condition | {"reason": "Unknown", "message": ""}]
    subset["conditions"][0]["observedGeneration"] = 3
    back = convert(new, V1ALPHA1)
    assert back["spec"] == old["spec"]
    assert back["status"]["subsetStatuses"][0]["conditions"] == [condition | {"reason": "Unknown", "message": ""}]


WHITE_LIST = """{"Workloads":[{"Group":"g","version":"v1","kind":"K","replicasPath":"spec.worker.replicas",
"subResources":[{"group":"h","version":"v1","kind":"L"}]}]}"""


def test_the_white_list_is_read_in_any_case() -> None:
    key = "WorkloadSpread_Watch_Custom_Workload_WhiteList"
    (found,) = custom_workloads({key: WHITE_LIST})
    assert found == CustomWorkload("g", "v1", "K", "spec.worker.replicas", (("h", "L"),))
    assert custom_workloads({}) == []
    with pytest.raises(ValueError, match="cannot be read"):
        custom_workloads({key: "["})


WORKLOAD = {"spec": {"replicas": 3, "groups": [{"replicas": 2}, {"replicas": 5}], "name": "x", "on": True}}


def test_the_number_of_pods_is_a_sum() -> None:
    assert replicas_of(WORKLOAD, ["spec.groups.1.replicas", "spec.replicas"]) == 8
    assert replicas_of(WORKLOAD, []) == replicas_of(WORKLOAD, [""]) == 0


@pytest.mark.parametrize(
    "path", ["spec.none", "spec.groups.2.replicas", "spec.groups.-1", "spec.name", "spec.on", "spec.replicas.x"]
)
def test_a_path_that_leads_to_no_number(path: str) -> None:
    with pytest.raises(ValueError, match="the workload"):
        replicas_of(WORKLOAD, [path])
