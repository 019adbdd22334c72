"""Admission of PersistentPodStates: refusals with their texts (persistentpodstate.md §3, §7)."""

from typing import Any

import pytest

from flotilla_common.api.admission.review import Answer
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE
from flotilla_common.kube.interface import ApiError
from tests.testkit.admission import KindAdmission, configure, written
from tests.testkit.documents import Json

NEITHER = "requiredPersistentTopology and preferredPersistentTopology cannot be empty at the same time"
LISTED = '{"workloads":[{"Group":"apps.example.io","Version":"v1","Kind":"GameSet"}]}'


def target(api_version: str = "apps.kruise.io/v1beta1", kind: str = "StatefulSet", name: str = "web") -> Json:
    return {"apiVersion": api_version, "kind": kind, "name": name}


def state(name: str = "p", version: str = "v1beta1", to: Json | None = None, **spec: Any) -> Json:
    keys = "keys" if version == "v1beta1" else "nodeTopologyKeys"
    given = {"targetRef": to or target(), "requiredPersistentTopology": {keys: ["zone"]}}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "PersistentPodState",
        "metadata": {"name": name, "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": given | spec,
    }


class Case(KindAdmission):
    """Admission beside other objects, with a white list."""

    def __init__(self, *others: Json, white_list: str | None = None) -> None:
        super().__init__("persistentpodstate")
        for other in others:
            self.cluster.put(PERSISTENT_POD_STATE, other)
        if white_list is not None:
            configure(self.cluster, PPS_Watch_Custom_Workload_WhiteList=white_list)

    async def validated(self, document: Json | None, old: Json | None = None) -> Answer:
        return await self.validate(written(document, old))


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="required"),
        pytest.param(
            {
                "requiredPersistentTopology": None,
                "preferredPersistentTopology": [{"weight": 0, "preference": {"keys": []}}],
            },
            id="preferred, whatever its weight",
        ),
        pytest.param({"persistentPodStateRetentionPolicy": "Whatever"}, id="retention is the schema's business"),
    ],
)
async def test_accepted(version: str, spec: Json) -> None:
    assert (await Case().validated(state(version=version, **spec))).allowed


FAULT_ROWS = [
    pytest.param(
        state(to=target(name="")),
        'spec.targetRef: Invalid value: {"apiVersion":"apps.kruise.io/v1beta1","kind":"StatefulSet","name":""}: '
        "apiVersion, kind and name must not be empty",
        id="no name",
    ),
    pytest.param(
        state(to=target("apps/v1", "Deployment")),
        'spec.targetRef: Invalid value: {"apiVersion":"apps/v1","kind":"Deployment","name":"web"}: must be StatefulSet '
        "or in PPS_Watch_Custom_Workload_WhiteList",
        id="no StatefulSet",
    ),
    pytest.param(state(requiredPersistentTopology=None), NEITHER, id="nothing to remember"),
    pytest.param(
        state(requiredPersistentTopology=None, preferredPersistentTopology=[]), NEITHER, id="an empty list is nothing"
    ),
]


@pytest.mark.parametrize(("document", "expected"), FAULT_ROWS)
async def test_faults(document: Json, expected: str) -> None:
    answer = await Case().validated(document)
    assert (answer.allowed, answer.code) == (False, 400)
    assert answer.message.endswith(expected)


async def test_several_faults_are_one_message() -> None:
    answer = await Case().validated(state(to=target(kind=""), requiredPersistentTopology=None))
    assert answer.message.startswith("[spec.targetRef: Invalid value: ")
    assert ", spec: Invalid value: " in answer.message


@pytest.mark.parametrize(
    ("api_version", "kind", "allowed"),
    [
        ("apps/v1", "StatefulSet", True),
        ("apps/v1beta9", "StatefulSet", True),
        ("apps.kruise.io/v1alpha1", "StatefulSet", True),
        ("v1", "StatefulSet", False),
        ("apps.example.io/v1", "GameSet", True),
        ("apps.example.io/v2", "GameSet", True),
        ("apps.example.io/v1", "StatefulSet", False),
        ("other.example.io/v1", "GameSet", False),
    ],
)
async def test_supported_workloads(api_version: str, kind: str, allowed: bool) -> None:
    document = state(to=target(api_version, kind))
    assert (await Case(white_list=LISTED).validated(document)).allowed == allowed


async def test_a_list_that_cannot_be_read_refuses_everything() -> None:
    answer = await Case(white_list="{").validated(state())
    assert answer.code == 400
    assert answer.message.startswith(
        "Internal error: PPS_Watch_Custom_Workload_WhiteList of ConfigMap kruise-configuration cannot be read: "
    )


async def test_others_that_cannot_be_listed() -> None:
    case = Case()
    case.cluster.fail_lists = ApiError(503, "ServiceUnavailable", "busy")
    answer = await case.validated(state())
    assert (answer.code, answer.message) == (400, "Internal error: busy")


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
@pytest.mark.parametrize(
    "changed",
    [target("apps.kruise.io/v1alpha1"), target("apps/v1"), target(name="db")],
    ids=["version", "group", "name"],
)
async def test_the_target_stays(version: str, changed: Json) -> None:
    old = state(version=version)
    answer = await Case(state()).validated(state(version=version, to=changed), old)
    assert (answer.code, answer.message) == (400, "spec.targetRef: Forbidden: targetRef is immutable")
    more = [{"key": "cni.example.io/ip"}]
    assert (await Case(state()).validated(state(version=version, persistentPodAnnotations=more), old)).allowed


@pytest.mark.parametrize(
    ("other", "refused"),
    [
        pytest.param(state("other", to=target("apps.kruise.io/v1alpha1")), True, id="the same workload"),
        pytest.param(state("other", to=target("apps/v1")), False, id="of another group"),
        pytest.param(state("other", to=target(name="db")), False, id="of another name"),
        pytest.param(state("p"), False, id="itself"),
        pytest.param(state("other") | {"metadata": {"name": "other", "namespace": "m"}}, False, id="elsewhere"),
    ],
)
async def test_a_workload_has_one(other: Json, refused: bool) -> None:
    many = [state(f"a{index}", to=target(name=f"a{index}")) for index in range(5)]
    answer = await Case(*many, other).validated(state())
    assert answer.allowed == (not refused)
    if refused:
        assert answer.code == 400
        assert answer.message.endswith(": conflict with other PersistentPodState other")


@pytest.mark.parametrize(
    "document",
    [None, {}, state(version="v2"), state(to={"apiVersion": 1}), state(preferredPersistentTopology=[{"weight": "1"}])],
    ids=["no object", "no version", "unknown version", "wrong type", "a weight in a string"],
)
async def test_undecodable(document: Json | None) -> None:
    assert (await Case().validated(document)).code == 400
