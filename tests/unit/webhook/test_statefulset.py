"""The handlers of StatefulSets (statefulset.md §3).

The cluster's answers about templates, storage classes and protection.
"""

from typing import Any

import pytest

from flotilla_common.api.admission.review import Request
from flotilla_common.api.resources import STORAGE_CLASS
from flotilla_common.kube.interface import ApiError
from tests.testkit.admission import KindAdmission, update
from tests.testkit.documents import Json
from tests.unit.webhook.workloads import statefulset

RESIZE = "StatefulSetAutoResizePVCGate=true"
GROWING = {"type": "OnPodRollingUpdate"}
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


class Case(KindAdmission):
    """Admission of StatefulSets."""

    def __init__(self, gates: str = "") -> None:
        super().__init__("statefulset", gates=gates)

    def storage(self, name: str, made: str = "2026-01-01T00:00:00Z", *, annotations: Json, **fields: Any) -> None:
        metadata = {"name": name, "creationTimestamp": made, "annotations": annotations}
        self.cluster.put(STORAGE_CLASS, {"metadata": metadata} | fields)


def claim(name: str = "data", size: str = "1Gi", modes: list[str] | None = None, **spec: Any) -> Json:
    resources = {"requests": {"storage": size}}
    given = {"accessModes": modes or ["ReadWriteOnce"], "resources": resources}
    return {"metadata": {"name": name}, "spec": given | spec}


@pytest.mark.parametrize(
    ("label", "replicas", "code", "message"),
    [
        ("Always", 0, 403, "=Always"),
        ("Cascading", 2, 403, "=Cascading and replicas 2>0"),
        ("Cascading", 0, 200, ""),
        ("Other", 2, 200, ""),
    ],
)
async def test_deletion_protection(label: str, replicas: int, code: int, message: str) -> None:
    document = statefulset(replicas=replicas)
    document["metadata"]["labels"] = {"policy.kruise.io/delete-protection": label}
    deletion = Request(uid="u", operation="DELETE", namespace="n", name="s", old_object=document)
    answer = await Case("ResourcesDeletionProtection=true").validate(deletion)
    assert (answer.code, answer.message.endswith(message)) == (code, True)
    assert (await Case("ResourcesDeletionProtection=false").validate(deletion)).allowed


PATH = "spec.volumeClaimTemplates"
REFUSED_CLASS = f"{PATH}[data].spec.resources.requests.storage: Forbidden: storage class {{}} does not support volume "
CLAIM_ROWS = [
    pytest.param([claim()], "", id="as it was"),
    pytest.param([claim(size="1024Mi")], "", id="as it was, written differently"),
    pytest.param([claim(labels="x")], "", id="something else"),
    pytest.param([], "volumeClaimTemplates can not be added or deleted", id="one less"),
    pytest.param([claim(), claim("more")], "volumeClaimTemplates can not be added or deleted", id="one more"),
    pytest.param(
        [claim("other")], f"{PATH}[other].name: Forbidden: volumeClaimTemplate name can not be modified", id="renamed"
    ),
    pytest.param([claim(modes=["ReadWriteMany"])], "accessModes can not be modified", id="access modes"),
    pytest.param([claim(size="2Gi")], REFUSED_CLASS.format("standard"), id="row 76: the default class cannot grow"),
    pytest.param([claim(size="1Mi")], REFUSED_CLASS.format("standard"), id="nor shrink"),
    pytest.param(
        [claim(resources={"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}})],
        REFUSED_CLASS.format("standard"),
        id="the limit counts, too",
    ),
    pytest.param([claim(size="2Gi", storageClassName="growing")], "", id="row 75: a class that grows"),
    pytest.param([claim(size="2Gi", storageClassName="silent")], "", id="a class that does not say"),
    pytest.param([claim(size="2Gi", storageClassName="fixed")], REFUSED_CLASS.format("fixed"), id="one that does not"),
    pytest.param(
        [claim(size="2Gi", storageClassName="none")],
        f'{PATH}[data].spec.storageClassName: Invalid value: "none": can not get sc none',
        id="no such class",
    ),
    pytest.param(
        [claim(size="2Gi", storageClassName="")],
        f'{PATH}[data].spec.storageClassName: Invalid value: "": can not get sc ',
        id="volumes without a class",
    ),
]


def growing_case() -> Case:
    case = Case(RESIZE)
    case.storage("older", "2025-01-01T00:00:00Z", annotations=DEFAULT, allowVolumeExpansion=True)
    case.storage("standard", "2026-06-01T00:00:00Z", annotations=DEFAULT, allowVolumeExpansion=False)
    case.storage("newest", "2026-09-01T00:00:00Z", annotations={}, allowVolumeExpansion=True)
    case.storage("growing", annotations={}, allowVolumeExpansion=True)
    case.storage("fixed", annotations={}, allowVolumeExpansion=False)
    case.storage("silent", annotations={})
    return case


@pytest.mark.parametrize(("claims", "expected"), CLAIM_ROWS)
async def test_claims_that_grow(claims: list[Json], expected: str) -> None:
    old = statefulset(volumeClaimTemplates=[claim()], volumeClaimUpdateStrategy=GROWING)
    answer = await growing_case().validate(
        update(statefulset(volumeClaimTemplates=claims, volumeClaimUpdateStrategy=GROWING), old)
    )
    assert answer.allowed == (not expected)
    assert answer.code == (422 if expected else 200)
    assert expected in answer.message


async def test_the_class_of_a_claim_stays() -> None:
    old = statefulset(volumeClaimTemplates=[claim(storageClassName="a")], volumeClaimUpdateStrategy=GROWING)
    new = statefulset(volumeClaimTemplates=[claim(storageClassName="b")])
    answer = await growing_case().validate(update(new, old))
    assert answer.message.startswith(f"{PATH}[data]: Invalid value: ")
    assert answer.message.endswith("storageClassName can not be modified")


async def test_row_77_only_what_changes_must_be_able_to() -> None:
    claims = [claim("rigid", storageClassName="fixed"), claim(storageClassName="growing")]
    old = statefulset(volumeClaimTemplates=claims, volumeClaimUpdateStrategy=GROWING)
    grown = [claims[0], claim(size="2Gi", storageClassName="growing")]
    assert (await growing_case().validate(update(statefulset(volumeClaimTemplates=grown), old))).allowed
    rigid = [claim("rigid", "2Gi", storageClassName="fixed"), claims[1]]
    assert not (await growing_case().validate(update(statefulset(volumeClaimTemplates=rigid), old))).allowed


@pytest.mark.parametrize(
    ("gates", "strategy", "checked"),
    [
        pytest.param(RESIZE, GROWING, True, id="checked"),
        pytest.param("", GROWING, False, id="without the gate"),
        pytest.param(RESIZE, {"type": "OnDelete"}, False, id="the old strategy was OnDelete"),
        pytest.param(RESIZE, {}, False, id="the old strategy was empty"),
    ],
)
async def test_when_claims_are_checked(gates: str, strategy: Json, checked: bool) -> None:
    old = statefulset(volumeClaimTemplates=[claim()], volumeClaimUpdateStrategy=strategy)
    new = statefulset(volumeClaimTemplates=[], volumeClaimUpdateStrategy=GROWING)
    assert (await Case(gates).validate(update(new, old))).allowed == (not checked)


async def test_without_a_default_class_nobody_knows_better() -> None:
    old = statefulset(volumeClaimTemplates=[claim()], volumeClaimUpdateStrategy=GROWING)
    assert (await Case(RESIZE).validate(update(statefulset(volumeClaimTemplates=[claim(size="2Gi")]), old))).allowed


async def test_classes_that_cannot_be_read() -> None:
    case = growing_case()
    case.cluster.fail_lists = ApiError(503, "ServiceUnavailable", "busy")
    old = statefulset(volumeClaimTemplates=[claim()], volumeClaimUpdateStrategy=GROWING)
    answer = await case.validate(update(statefulset(volumeClaimTemplates=[claim(size="2Gi")]), old))
    assert (answer.code, answer.message) == (500, "cannot check the StatefulSet: busy")


async def test_claims_that_cannot_be_read_are_not_compared() -> None:
    old = statefulset(volumeClaimTemplates=[claim()], volumeClaimUpdateStrategy=GROWING)
    answer = await growing_case().validate(update(statefulset(volumeClaimTemplates=[claim(size="much")]), old))
    assert answer.code == 422
    assert answer.message.startswith(f"{PATH}[0]: Invalid value: ")
