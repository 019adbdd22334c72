"""Claims: created, kept, owned by the object with which they are deleted, and grown (statefulset.md §8.5)."""

from typing import Any

import pytest

from flotilla_common.control.plan import Create, Patch, Plan
from tests.testkit.documents import Json
from tests.testkit.plans import codes
from tests.testkit.tables import cases
from tests.unit.statefulset.build import Builder, claim, planned, pods, storage_class, sts, summary

SET = ("StatefulSet", "w", "uid-w")
RESIZE = "StatefulSetAutoResizePVCGate=true"


def pod_owner(ordinal: int, uid: str = "") -> tuple[str, str, str]:
    return ("Pod", f"w-{ordinal}", uid or f"uid-{ordinal}")


def owners(result: Plan) -> dict[str, list[str]]:
    """Return the kinds of the owners that claims get, by claim."""
    found: dict[str, list[str]] = {}
    for action in result.actions:
        if action.resource.kind == "PersistentVolumeClaim" and isinstance(action, Create | Patch):
            references: list[Json] = action.body["metadata"].get("ownerReferences") or []
            found[action.name] = [one["kind"] for one in references]
    return found


def test_a_claim_per_template_comes_before_its_pod() -> None:
    """Example 64."""
    result = planned(sts(2, "A").claims("data", "log"), pods("0A", claims=("data", "log")))
    assert summary(result) == [
        "create PersistentVolumeClaim data-w-1",
        "create PersistentVolumeClaim log-w-1",
        "create 1A",
    ]
    made = result.actions[0]
    assert isinstance(made, Create)
    assert made.body["metadata"]["labels"] == {"kind": "disk", "app": "w"}
    assert made.body["spec"]["resources"] == {"requests": {"storage": "1Gi"}}
    assert made.on_success is not None
    assert made.on_success.message == "create Claim data-w-1 Pod w-1 in StatefulSet w success"
    pod = result.actions[2]
    assert isinstance(pod, Create)
    assert [one["persistentVolumeClaim"]["claimName"] for one in pod.body["spec"]["volumes"]] == ["data-w-1", "log-w-1"]


def test_claims_that_exist_are_used_as_they_are() -> None:
    result = planned(sts(1, "A").claims("data"), "", claims=[claim("data-w-0", size="5Gi")])
    assert summary(result) == ["create 0A"]


RETENTION: list[tuple[str, Builder, str, list[Any], dict[str, list[str]], list[str]]] = [
    (
        "65-new-claims-go-with-the-set",
        sts(1, "A").retention("Delete"),
        "",
        [],
        {"data-w-0": ["StatefulSet"]},
        ["create PersistentVolumeClaim data-w-0", "create 0A"],
    ),
    ("65-fits", sts(1, "A").retention("Delete"), "0A", [claim("data-w-0", owners=[SET])], {}, []),
    (
        "65-policy-changed",
        sts(1, "A").retention("Delete"),
        "0A",
        [claim("data-w-0", owners=[("Thing", "foreign", "f")])],
        {"data-w-0": ["Thing", "StatefulSet"]},
        ["patch PersistentVolumeClaim data-w-0"],
    ),
    ("65-scale-down-keeps", sts(0, "A").retention("Delete"), "0A", [claim("data-w-0", owners=[SET])], {}, ["delete 0"]),
    (
        "66-scaled-away",
        sts(1, "A").retention("Retain", "Delete"),
        "0A 1A 2A",
        [claim("data-w-0"), claim("data-w-1"), claim("data-w-2")],
        {"data-w-2": ["Pod"], "data-w-1": ["Pod"]},
        ["patch PersistentVolumeClaim data-w-2", "delete 2", "patch PersistentVolumeClaim data-w-1", "delete 1"],
    ),
    (
        "66-deleted-by-somebody-else",
        sts(1, "A").retention("Retain", "Delete"),
        "0A 1AT",
        [claim("data-w-0"), claim("data-w-1")],
        {"data-w-1": ["Pod"]},
        ["patch PersistentVolumeClaim data-w-1"],
    ),
    (
        "67-reserved",
        sts(2, "A").retention("Delete", "Delete").set(reserveOrdinals=[1]),
        "0A 1A 2A",
        [claim("data-w-0", owners=[SET]), claim("data-w-1", owners=[SET]), claim("data-w-2", owners=[SET])],
        {"data-w-1": ["Pod"]},
        ["patch PersistentVolumeClaim data-w-1", "delete 1"],
    ),
    (
        "69-back-to-retain",
        sts(1, "A").retention(),
        "0A",
        [claim("data-w-0", owners=[SET])],
        {"data-w-0": []},
        ["patch PersistentVolumeClaim data-w-0"],
    ),
    (
        "wanted-again",
        sts(1, "A").retention("Retain", "Delete"),
        "0A",
        [claim("data-w-0", owners=[pod_owner(0)])],
        {"data-w-0": []},
        ["patch PersistentVolumeClaim data-w-0"],
    ),
    ("unknown-policy-retains", sts(1, "A").retention("Never", "Delete"), "0A", [claim("data-w-0")], {}, []),
]


@pytest.mark.parametrize(("builder", "there", "claims", "tied", "writes"), cases(RETENTION))
def test_retention(
    builder: Builder, there: str, claims: list[Any], tied: dict[str, list[str]], writes: list[str]
) -> None:
    result = planned(builder.claims("data"), pods(there, claims=("data",)), claims=claims)
    assert summary(result) == writes
    assert {name: kinds for name, kinds in owners(result).items() if name in tied} == tied


def test_without_the_gate_owners_are_left_alone() -> None:
    builder = sts(1, "A").claims("data").retention("Delete", "Delete")
    there, gates = pods("0A 1A", claims=("data",)), "StatefulSetAutoDeletePVC=false"
    found = [claim("data-w-0"), claim("data-w-1")]
    assert summary(planned(builder, there, claims=found, gates=gates)) == ["delete 1"]


def test_a_pod_waits_for_claims_that_go_with_its_predecessor() -> None:
    """Example 68: they are kept if their deletion has not begun."""
    builder = sts(3, "A").claims("data").retention("Retain", "Delete")
    stale = claim("data-w-1", owners=[pod_owner(1, "uid-of-the-old-one")])
    there = pods("0A", claims=("data",))
    result = planned(builder, there, claims=[claim("data-w-0"), stale])
    untied = "patch PersistentVolumeClaim data-w-1"
    assert summary(result) == [untied, "create PersistentVolumeClaim data-w-2", "create 2A"]
    assert owners(result)["data-w-1"] == []
    assert "WaitingForClaim" in codes(result)
    assert result.wake_at is not None
    assert summary(planned(builder.ordered(), there, claims=[claim("data-w-0"), stale])) == [untied]
    going = claim("data-w-1", owners=[pod_owner(1)], deleting=True)
    assert summary(planned(builder.ordered(), there, claims=[claim("data-w-0"), going])) == []


def test_a_pending_pod_gets_its_claim_again() -> None:
    """Example 70."""
    builder = sts(1, "A").claims("data")
    there = pods("0AP", claims=("data",))
    assert summary(planned(builder, there)) == ["create PersistentVolumeClaim data-w-0"]
    going = planned(builder, there, claims=[claim("data-w-0", deleting=True)])
    assert summary(going) == []
    assert ("claims", "pvc data-w-0 is to be deleted") in going.errors


def test_a_pod_is_not_made_on_a_claim_that_goes() -> None:
    result = planned(sts(1, "A").claims("data"), "", claims=[claim("data-w-0", deleting=True)])
    assert summary(result) == []
    assert ("create", "pvc data-w-0 is to be deleted") in result.errors


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
@pytest.mark.parametrize(
    ("builder", "there"),
    [
        (sts(2, "A"), "0A 1AT"),
        (sts(2, "A").ordered(), "0A 1AT"),
        (sts(2, "A").ordered(), "0A! 1AT"),  # independent of other waits
        (sts(2, "A").on_delete(), "0A 1AT"),
        (sts(1, "A").set(reserveOrdinals=[0]), "1AT"),
        (sts(2, "A"), "0A 1A:PreparingDelete"),
    ],
)
def test_a_claim_of_a_wanted_ordinal_is_untied_at_once(builder: Builder, there: str, policy: str) -> None:
    """Scaled in and out again while the pod ends: its data must not go with it."""
    builder = builder.claims("data").retention("Delete", policy)
    found = [claim("data-w-0", owners=[SET]), claim("data-w-1", owners=[("Thing", "foreign", "f"), pod_owner(1)])]
    result = planned(builder, pods(there, claims=("data",)), claims=found)
    assert owners(result) == {"data-w-1": ["Thing", "StatefulSet"]}


def test_a_claim_that_goes_with_an_earlier_pod_of_the_name_is_untied() -> None:
    """Its pod is there again: garbage collection would take the claim from under it."""
    builder = sts(1, "A").claims("data").retention("Retain", "Delete")
    stale = claim("data-w-0", owners=[pod_owner(0, "uid-of-the-old-one")])
    assert owners(planned(builder, pods("0A", claims=("data",)), claims=[stale])) == {"data-w-0": []}


def growing(replicas: int = 3, *, size: str = "2Gi", update: str = "B") -> Builder:
    return sts(replicas, update).claims("data", size=size).set(volumeClaimUpdateStrategy={"type": "OnPodRollingUpdate"})


def grown(result: Plan) -> list[str]:
    return [one for one in summary(result) if one.startswith(("patch Persistent", "delete", "update"))]


def three(*sizes: str, **more: Any) -> list[Any]:
    return [claim(f"data-w-{ordinal}", size=size, **more) for ordinal, size in enumerate(sizes)]


GROWTH: list[tuple[str, Builder, str, list[Any], list[str]]] = [
    (
        "71-claim-first",
        growing().p(2),
        "0A 1A 2A",
        three("1Gi", "1Gi", "1Gi"),
        ["patch PersistentVolumeClaim data-w-2"],
    ),
    (
        "71-waits-for-the-volume",
        growing().p(2),
        "0A 1A 2A",
        [*three("1Gi", "1Gi"), claim("data-w-2", size="2Gi", capacity="1Gi")],
        [],
    ),
    ("71-then-the-pod", growing().p(2), "0A 1A 2A", three("1Gi", "1Gi", "2Gi"), ["delete 2"]),
    (
        "file-system-grows-with-the-next-pod",
        growing().p(2),
        "0A 1A 2A",
        [*three("1Gi", "1Gi"), claim("data-w-2", size="2Gi", capacity="1Gi", conditions=["FileSystemResizePending"])],
        ["delete 2"],
    ),
    ("72-size-kept-image-back", growing(update="A"), "0A 1A 2B", three("1Gi", "1Gi", "2Gi"), ["delete 2"]),
    (
        "72-others-follow",
        growing(update="A"),
        "0A 1A 2A",
        three("1Gi", "1Gi", "2Gi"),
        ["patch PersistentVolumeClaim data-w-1"],
    ),
    ("73-nothing-shrinks", growing(size="1Gi", update="A"), "0A 1A 2A", three("1Gi", "1Gi", "2Gi"), []),
    (
        "74-on-delete",
        growing(update="A").set(volumeClaimUpdateStrategy={"type": "OnDelete"}),
        "0A 1A 2A",
        three("1Gi", "1Gi", "2Gi"),
        [],
    ),
    (
        "75-only-the-size",
        growing(update="A"),
        "0A 1A 2A",
        three("1Gi", "1Gi", "1Gi"),
        ["patch PersistentVolumeClaim data-w-2"],
    ),
    ("78-another-mode", growing(), "0A 1A 2A", three("1Gi", "1Gi", "1Gi", modes=("ReadOnlyMany",)), []),
]


@pytest.mark.parametrize(("builder", "there", "claims", "writes"), cases(GROWTH))
def test_growth(builder: Builder, there: str, claims: list[Any], writes: list[str]) -> None:
    assert grown(planned(builder, pods(there, claims=("data",)), claims=claims, gates=RESIZE)) == writes


@pytest.mark.parametrize("builder", [growing(), growing().unordered(), growing().p(1), growing(update="A")])
def test_a_pod_that_is_missing_while_its_claim_is_too_small_is_made(builder: Builder) -> None:
    result = planned(builder.m(3), pods("0A 1A", claims=("data",)), claims=three("1Gi", "1Gi", "1Gi"), gates=RESIZE)
    assert [one for one in summary(result) if one.startswith("create 2")]
    there = pods("0A 2A", claims=("data",))
    result = planned(builder, there, claims=three("1Gi", "1Gi", "2Gi"), gates=RESIZE)
    assert [one for one in summary(result) if one.startswith("create 1")]


def test_growth_needs_the_gate() -> None:
    result = planned(growing(update="A"), pods("0A 1A 2A", claims=("data",)), claims=three("1Gi", "1Gi", "1Gi"))
    assert grown(result) == []


def test_a_claim_that_differs_otherwise_stops_the_update() -> None:
    result = planned(
        growing(), pods("0A 1A 2A", claims=("data",)), claims=three("1Gi", "1Gi", "1Gi", modes=("X",)), gates=RESIZE
    )
    assert [event.reason for event in result.events] == ["FailedUpdatePVC"]
    assert "ResizeImpossible" in codes(result)


@pytest.mark.parametrize(
    ("classes", "reason"),
    [
        ([], "does not exist"),
        ([storage_class("fast", expands=False)], "does not allow volume expansion"),
        ([storage_class("fast", expands=None)], "does not allow volume expansion"),
        ([storage_class("fast")], ""),
    ],
)
def test_the_class_must_allow_growth(classes: list[Any], reason: str) -> None:
    builder = growing(1, update="A")
    builder.spec["volumeClaimTemplates"][0]["spec"]["storageClassName"] = "fast"
    found = [claim("data-w-0", size="1Gi", storage_class="fast")]
    result = planned(builder, pods("0A", claims=("data",)), claims=found, storage_classes=classes, gates=RESIZE)
    assert bool(grown(result)) == (not reason)
    assert all(reason in text for _, text in result.errors)
    assert bool(result.errors) == bool(reason)


@pytest.mark.parametrize(
    ("there", "claims", "counts"),
    [
        ("0A 1A 2A", three("1Gi", "1Gi", "2Gi"), (1, 1)),
        ("0A 1A 2A", [*three("1Gi", "1Gi"), claim("data-w-2", size="2Gi", capacity="1Gi")], (1, 0)),
        ("0A 1A", three("2Gi", "2Gi", "2Gi"), (3, 3)),  # that of a pod that is not there yet counts
        ("0A 1A 2A", [claim("data-w-2", size="2Gi", deleting=True)], (0, 0)),
        ("0A 1A 2A 3A", [claim("data-w-3", size="2Gi")], (0, 0)),
    ],
)
def test_the_status_counts_claims(there: str, claims: list[Any], counts: tuple[int, int]) -> None:
    result = planned(growing(update="A"), pods(there, claims=("data",)), claims=claims)
    assert result.status is not None
    assert result.status.body["status"]["volumeClaims"] == [
        {"volumeClaimName": "data", "compatibleReplicas": counts[0], "compatibleReadyReplicas": counts[1]}
    ]
