"""PodUnavailableBudgets at admission, and both versions (podunavailablebudget.md §3 and §4)."""

from typing import Any

import msgspec
import pytest

from flotilla_common.api.admission.review import Request
from flotilla_common.api.kinds.podunavailablebudget.types import (
    POD_UNAVAILABLE_BUDGET,
    PodUnavailableBudget,
    convert,
    to_hub,
)
from flotilla_common.api.kinds.podunavailablebudget.validation import loosely_overlap, validate
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.versions import ANNOTATION
from flotilla_webhook.kinds import kind_handlers
from tests.testkit.admission import tools
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json, decoded
from tests.testkit.tables import cases

V1ALPHA1, V1BETA1 = "policy.kruise.io/v1alpha1", "policy.kruise.io/v1beta1"
REPLICAS, OPERATIONS = "pub.kruise.io/protect-total-replicas", "kruise.io/pub-protect-operations"
SELECTOR = {"matchLabels": {"app": "web"}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
WHICH, HOW_MANY = "spec.selector, targetRef", "spec.maxUnavailable, minAvailable"
PATH = "/validate-policy-kruise-io-podunavailablebudget"


def budget(name: str = "pub", version: str = V1BETA1, annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    metadata: Json = {"name": name, "namespace": "ns"} | ({"annotations": annotations} if annotations else {})
    return {"apiVersion": version, "kind": "PodUnavailableBudget", "metadata": metadata, "spec": spec}


def good(annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    whole: dict[str, Any] = {"selector": SELECTOR, "maxUnavailable": 1} | spec
    return budget(annotations=annotations, **whole)


def typed(document: Json) -> PodUnavailableBudget:
    return decoded(document, PodUnavailableBudget)


def annotated(value: str, **spec: Any) -> Json:
    return good(annotations={REPLICAS: value}, **spec)


FAULTS: list[tuple[str, Json, list[str]]] = [
    ("by selector", good(), []),
    ("by target", budget(targetRef=TARGET, minAvailable="50%"), []),
    ("neither", budget(maxUnavailable=1), [WHICH]),
    ("both", good(targetRef=TARGET), [WHICH]),
    ("a target without a name", budget(targetRef=TARGET | {"name": ""}, maxUnavailable=1), ["spec.targetRef"]),
    ("a target without a version", budget(targetRef={"kind": "A", "name": "b"}, maxUnavailable=1), ["spec.targetRef"]),
    ("no version", budget(targetRef=TARGET | {"apiVersion": "a/b/c"}, maxUnavailable=1), ["spec.targetRef"]),
    ("an empty selector", budget(selector={}, maxUnavailable=1), ["spec.selector"]),
    (
        "a broken selector",
        budget(selector={"matchExpressions": [{"key": "a", "operator": "Near"}]}, maxUnavailable=1),
        ["spec.selector"],
    ),
    ("no limit", budget(selector=SELECTOR), [HOW_MANY]),
    ("two limits", good(minAvailable=1), [HOW_MANY]),
    ("nothing may go", good(maxUnavailable=0), []),
    ("nothing may go, in percent", good(maxUnavailable="0%"), []),
    ("a large number", good(maxUnavailable=1 << 40), []),
    ("negative", good(maxUnavailable=-1), ["spec.maxUnavailable"]),
    ("a number as text", good(maxUnavailable="5"), ["spec.maxUnavailable"]),
    ("all", good(maxUnavailable="100%"), []),
    ("more than all", good(maxUnavailable="101%"), ["spec.maxUnavailable"]),
    ("more than all have to be there", budget(selector=SELECTOR, minAvailable="200%"), ["spec.minAvailable"]),
    ("every operation", good(protectOperations=["DELETE", "UPDATE", "EVICT", "RESIZE"]), []),
    ("an unknown operation", good(protectOperations=["DELETE", "READ"]), ["spec.protectOperations[1]"]),
    ("ignored pods", good(ignoredPodSelector=SELECTOR), []),
    ("all pods ignored", good(ignoredPodSelector={}), ["spec.ignoredPodSelector"]),
    ("a number of replicas", annotated("15"), []),
    ("a number of replicas, twice", annotated("15", protectTotalReplicas=15), []),
    ("no number", annotated("many"), [f"metadata.annotations[{REPLICAS}]"]),
    ("an empty number", annotated(""), [f"metadata.annotations[{REPLICAS}]"]),
    ("a long number", annotated("3000000000"), [f"metadata.annotations[{REPLICAS}]"]),
    ("two numbers", annotated("16", protectTotalReplicas=15), [f"metadata.annotations[{REPLICAS}]"]),
    ("not as the field is written", annotated("015", protectTotalReplicas=15), [f"metadata.annotations[{REPLICAS}]"]),
    ("operations of an annotation are not looked at", good(annotations={OPERATIONS: "READ"}), []),
]


@pytest.mark.parametrize(("document", "paths"), cases(FAULTS))
def test_what_is_refused(document: Json, paths: list[str]) -> None:
    assert [fault.path for fault in validate(document, typed(document), None, [])] == paths


@pytest.mark.parametrize(
    ("before", "after", "paths"),
    [
        pytest.param(good(), good(maxUnavailable=2), [], id="another limit"),
        pytest.param(good(), good(selector={"matchLabels": {"app": "api"}}), [WHICH], id="another selector"),
        pytest.param(budget(targetRef=TARGET, maxUnavailable=1), good(), [WHICH], id="a selector instead of a target"),
        pytest.param(
            budget(targetRef=TARGET, maxUnavailable=1),
            budget(targetRef=TARGET | {"name": "api"}, maxUnavailable=1),
            [WHICH],
            id="another target",
        ),
    ],
)
def test_an_update(before: Json, after: Json, paths: list[str]) -> None:
    faults = validate(after, typed(after), typed(before), [])
    assert [fault.path for fault in faults] == paths
    assert all("cannot be modified" in str(fault) for fault in faults)


@pytest.mark.parametrize(
    ("mine", "theirs", "path"),
    [
        pytest.param({"targetRef": TARGET}, {"targetRef": TARGET}, "spec.targetReference", id="one target"),
        pytest.param(
            {"targetRef": TARGET},
            {"targetRef": TARGET | {"apiVersion": "apps/v1beta2"}},
            "spec.targetReference",
            id="one target, in another version",
        ),
        pytest.param({"targetRef": TARGET}, {"targetRef": TARGET | {"name": "api"}}, "", id="another target"),
        pytest.param({"selector": SELECTOR}, {"selector": SELECTOR}, "spec.selector", id="one selector"),
        pytest.param({"selector": SELECTOR}, {"targetRef": TARGET}, "", id="a selector and a target"),
    ],
)
def test_conflicts(mine: Json, theirs: Json, path: str) -> None:
    document = budget(**mine, maxUnavailable=1)
    others = [typed(budget(name, **theirs, maxUnavailable=1)) for name in ("other", "third")]
    faults = validate(document, typed(document), None, others)
    assert [fault.path for fault in faults] == ([path] if path else [])
    assert all("is in conflict with other PodUnavailableBudget other" in str(fault) for fault in faults)


def expression(operator: str, *values: str, key: str = "a") -> Json:
    return {"key": key, "operator": operator} | ({"values": list(values)} if values else {})


def selector(*expressions: Json, **labels: str) -> LabelSelector:
    return msgspec.convert({"matchLabels": labels, "matchExpressions": list(expressions)}, LabelSelector)


IN, NOT_IN, EXISTS, ABSENT = (
    expression("In", "1", "2"),
    expression("NotIn", "1", "2"),
    expression("Exists"),
    expression("DoesNotExist"),
)


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        (IN, expression("In", "2", "3"), True),
        (IN, expression("In", "3"), False),
        (IN, EXISTS, True),
        (IN, expression("NotIn", "1"), True),
        (IN, NOT_IN, False),
        (IN, ABSENT, False),
        (EXISTS, NOT_IN, True),
        (EXISTS, EXISTS, True),
        (EXISTS, ABSENT, False),
        (NOT_IN, ABSENT, True),
        (NOT_IN, expression("NotIn", "3"), True),
        (ABSENT, ABSENT, True),
    ],
)
def test_loose_overlap(one: Json, other: Json, overlap: bool) -> None:
    assert loosely_overlap(selector(one), selector(other)) is overlap
    assert loosely_overlap(selector(other), selector(one)) is overlap


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        pytest.param(selector(a="1"), selector(a="1", b="2"), False, id="more keys, though a pod could match both"),
        pytest.param(selector(a="1", b="2"), selector(IN, b="2"), True, id="a pair and an expression"),
        pytest.param(selector(IN, a="3"), selector(a="3"), True, id="the pair of a key counts, not its expression"),
        pytest.param(selector(IN, expression("In", "9")), selector(a="9"), True, id="the last expression of a key"),
    ],
)
def test_loose_overlap_of_whole_selectors(one: LabelSelector, other: LabelSelector, overlap: bool) -> None:
    assert loosely_overlap(one, other) is overlap


# Versions


def test_annotations_become_fields() -> None:
    old = budget(version=V1ALPHA1, annotations={OPERATIONS: " DELETE, ,EVICT", REPLICAS: "15"}, selector=SELECTOR)
    new = convert(old, V1BETA1)
    assert new["spec"] == {"selector": SELECTOR, "protectOperations": ["DELETE", "EVICT"], "protectTotalReplicas": 15}
    assert new["metadata"] == old["metadata"]


def test_fields_become_annotations() -> None:
    new = good(annotations={OPERATIONS: "x", REPLICAS: "1", "mine": "1"}, protectOperations=["UPDATE", "RESIZE"])
    old = convert(new, V1ALPHA1)
    assert old["metadata"]["annotations"] == {OPERATIONS: "UPDATE,RESIZE", "mine": "1"}
    assert old["spec"] == {"selector": SELECTOR, "maxUnavailable": 1}


@pytest.mark.parametrize(
    "spec", [{}, {"protectOperations": ["EVICT"]}, {"protectTotalReplicas": 3}, {"ignoredPodSelector": SELECTOR}]
)
def test_what_is_read_and_written_as_v1alpha1_stays(spec: Json) -> None:
    before = good(**spec)
    after = convert(convert(before, V1ALPHA1), V1BETA1)
    assert after["spec"] == before["spec"]
    assert ANNOTATION not in after["metadata"].get("annotations", {})


@pytest.mark.parametrize(
    ("annotations", "named"),
    [({OPERATIONS: "READ"}, OPERATIONS), ({REPLICAS: "x"}, REPLICAS), ({ANNOTATION: "["}, ANNOTATION)],
)
def test_annotations_that_cannot_be_converted(annotations: dict[str, str], named: str) -> None:
    with pytest.raises(ValueError, match=f"annotation {named}"):
        to_hub(budget(version=V1ALPHA1, annotations=annotations, selector=SELECTOR))


# The webhook


async def answered(document: Json, gates: str = "", *stored: Json) -> tuple[int, str]:
    api = FakeApi()
    for one in stored:
        api.put(POD_UNAVAILABLE_BUDGET, one)
    request = Request(uid="u", operation="CREATE", namespace="ns", name="pub", object=document)
    answer = await kind_handlers(tools(api, gates))[PATH](request)
    return answer.code, answer.message


@pytest.mark.parametrize(
    ("document", "gates", "code", "message"),
    [
        pytest.param(good(), "", 200, "", id="allowed"),
        pytest.param(good(maxUnavailable=-1), "", 400, "spec.maxUnavailable: Invalid value: -1", id="a fault"),
        pytest.param(budget(version=V1ALPHA1, selector=SELECTOR, maxUnavailable=1), "", 200, "", id="v1alpha1"),
        pytest.param(
            budget(version=V1ALPHA1, annotations={OPERATIONS: "READ"}), "", 400, "invalid value 'READ'", id="conversion"
        ),
        pytest.param(good(maxUnavailable={}), "", 400, "Expected `int | str | null`", id="a wrong type"),
        pytest.param(good(), "PodUnavailableBudgetDeleteGate=false", 400, "feature PodUnavailableBudget", id="off"),
        pytest.param(
            good(),
            "PodUnavailableBudgetDeleteGate=false,PodUnavailableBudgetUpdateGate=true",
            200,
            "",
            id="one gate is enough",
        ),
    ],
)
async def test_answers(document: Json, gates: str, code: int, message: str) -> None:
    answer = await answered(document, gates)
    assert answer[0] == code
    assert message in answer[1]
    if "feature" in message:
        assert "PodUnavailableBudgetDeleteGate, PodUnavailableBudgetUpdateGate" in answer[1]


async def test_conflicts_with_what_is_stored() -> None:
    twin, broken = good() | {"metadata": {"name": "twin", "namespace": "ns"}}, budget("broken", selector=[])
    assert (await answered(good(), "", broken, good(), twin))[1].endswith("other PodUnavailableBudget twin")
