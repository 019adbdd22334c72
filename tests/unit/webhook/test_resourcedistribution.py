"""Admission of ResourceDistributions, the worked examples among it (resourcedistribution.md §4, §8)."""

from typing import Any

import pytest

from flotilla_common.api.admission.review import Answer
from flotilla_common.kube.interface import ApiError, Unreachable
from tests.testkit.admission import KindAdmission, written
from tests.testkit.documents import Json

VALUE = "c2VjcmV0LXZhbHVl"
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": VALUE}}
LABEL = (
    "must consist of at most 63 lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character"
)
SELECTOR = {"matchExpressions": [{"key": "a", "operator": "Near"}]}


class Case(KindAdmission):
    """Admission over a fake cluster that answers dry runs with `refusal`."""

    def __init__(self, gates: str = "", refusal: Exception | None = None, kind: str = "resourcedistribution") -> None:
        super().__init__(kind, gates=gates)
        self.cluster.refusal = refusal

    async def validated(self, document: Json, old: Json | None = None) -> Answer:
        return await self.validate(written(document, old, ""))


def distribution(resource: object = SECRET, version: str = "v1beta1", **targets: Any) -> Json:
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "ResourceDistribution",
        "metadata": {"name": "r"},
        "spec": {"resource": resource, "targets": targets},
    }


def names(*those: str) -> Json:
    return {"list": [{"name": name} for name in those]}


async def test_the_resource_is_tried_in_the_systems_own_namespace() -> None:
    """Example 24: the namespace in the resource does not matter."""
    case = Case()
    elsewhere = SECRET | {"metadata": {"name": "s", "namespace": "z"}}
    assert (await case.validated(distribution(elsewhere))).allowed
    assert case.cluster.sent == [SECRET | {"metadata": {"name": "s", "namespace": "kruise-system"}}]
    assert case.cluster.objects == {}


@pytest.mark.parametrize("path", ["resourcedistribution", "v1alpha1-resourcedistribution"])
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_both_versions_and_both_paths(version: str, path: str) -> None:
    selector = "namespaceLabelSelector" if version == "v1alpha1" else "namespaceSelector"
    targets = {"includedNamespaces": names("a", "kube-system"), selector: {"matchLabels": {"a": "b"}}}
    assert (await Case(kind=path).validated(distribution(version=version, **targets))).allowed
    refused = await Case(kind=path).validated(distribution(version=version, **{selector: SELECTOR}))
    assert (refused.code, refused.message.partition(":")[0]) == (422, "spec.targets.namespaceSelector")


async def test_example_28_without_the_gate() -> None:
    case = Case("ResourceDistributionGate=false")
    answer = await case.validated(distribution())
    assert (answer.code, answer.message) == (403, "feature-gate ResourceDistributionGate is not enabled")
    assert not (await case.validated(distribution(), distribution())).allowed
    assert case.cluster.sent == []


UNSUPPORTED = "unsupported resource, supported are: v1 Secret, v1 ConfigMap"
IMMUTABLE = "apiVersion, kind, metadata.name are immutable"


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        pytest.param(
            SECRET | {"kind": "Service"},
            f'spec.resource: Invalid value: "v1 Service s": {UNSUPPORTED}',
            id="20: another kind",
        ),
        pytest.param(
            SECRET | {"apiVersion": "x/v1"},
            f'spec.resource: Invalid value: "x/v1 Secret s": {UNSUPPORTED}',
            id="a namesake of another group",
        ),
        pytest.param({}, "spec.resource: Required value", id="nothing"),
        pytest.param([], "spec.resource: Required value", id="no object"),
    ],
)
async def test_what_cannot_be_distributed(resource: object, message: str) -> None:
    case = Case()
    answer = await case.validated(distribution(resource))
    assert (answer.code, answer.message) == (422, message)
    assert case.cluster.sent == []


@pytest.mark.parametrize(
    ("changed", "shown"),
    [
        pytest.param({"kind": "ConfigMap"}, "v1 ConfigMap s", id="19: its kind"),
        pytest.param({"metadata": {"name": "t"}}, "v1 Secret t", id="19: its name"),
        pytest.param({"apiVersion": "v2"}, "v2 Secret s", id="its version"),
    ],
)
async def test_what_never_changes(changed: Json, shown: str) -> None:
    case = Case()
    answer = await case.validated(distribution(SECRET | changed), distribution())
    assert (answer.code, answer.message) == (422, f'spec.resource: Invalid value: "{shown}": {IMMUTABLE}')
    assert case.cluster.sent == []


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(distribution(SECRET | {"data": {"k": "eA=="}}), id="data"),
        pytest.param(distribution(SECRET | {"metadata": {"name": "s", "labels": {"a": "b"}}}), id="labels"),
    ],
)
async def test_what_may_change_is_tried_again(new: Json) -> None:
    case = Case()
    assert (await case.validated(new, distribution())).allowed
    assert [document["data"] for document in case.cluster.sent] == [new["spec"]["resource"]["data"]]


async def test_a_resource_that_stays_is_not_tried_again() -> None:
    case = Case(refusal=ApiError(403, "Forbidden", "no"))
    new, old = distribution(version="v1beta1", allNamespaces=True), distribution(version="v1alpha1")
    assert (await case.validated(new, old)).allowed
    assert case.cluster.sent == []


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        pytest.param(ApiError(409, "AlreadyExists", "is there"), "", id="a namesake in the system's namespace"),
        pytest.param(
            ApiError(422, "Invalid", "data[a b]: bad key"),
            'spec.resource: Invalid value: "v1 Secret s": data[a b]: bad key',
            id="21: a bad key",
        ),
        pytest.param(
            ApiError(400, "BadRequest", "no base64"),
            'spec.resource: Invalid value: "v1 Secret s": no base64',
            id="unreadable",
        ),
        pytest.param(ApiError(403, "Forbidden", "quota"), "spec.resource: Forbidden: quota", id="forbidden"),
        pytest.param(ApiError(409, "Conflict", "busy"), "spec.resource: Internal error: busy", id="another conflict"),
        pytest.param(Unreachable("gone"), "spec.resource: Internal error: gone", id="no answer"),
    ],
)
async def test_what_the_apiserver_says_of_it(refusal: Exception, message: str) -> None:
    answer = await Case(refusal=refusal).validated(distribution())
    assert (answer.allowed, answer.message) == (not message, message)
    assert answer.code == (422 if message else 200)


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        pytest.param(
            {"includedNamespaces": names("a"), "excludedNamespaces": names("a", "b")},
            'spec.targets: Invalid value: ["a"]: ambiguous targets: namespaces are both included and excluded: a',
            id="22: in both lists",
        ),
        pytest.param(
            {"includedNamespaces": names("")},
            f'spec.targets.includedNamespaces: Invalid value: "": {LABEL}',
            id="23: no name",
        ),
        pytest.param(
            {"excludedNamespaces": names("ABC")},
            f'spec.targets.excludedNamespaces: Invalid value: "ABC": {LABEL}',
            id="23: no label",
        ),
        pytest.param(
            {"includedNamespaces": names("a" * 64)},
            f'spec.targets.includedNamespaces: Invalid value: "{"a" * 64}": {LABEL}',
            id="too long",
        ),
        pytest.param(
            {"namespaceSelector": SELECTOR},
            "spec.targets.namespaceSelector: Invalid value: matchExpressions[0].operator: 'Near' is not a valid label "
            "selector operator",
            id="a selector that is none",
        ),
        pytest.param({"includedNamespaces": names("kube-system", "a" * 63)}, "", id="system namespaces are skipped"),
        pytest.param({}, "", id="8: nothing"),
    ],
)
async def test_the_choice_of_namespaces(targets: Json, message: str) -> None:
    answer = await Case().validated(distribution(**targets))
    assert (answer.allowed, answer.message) == (not message, message)


async def test_a_wrong_resource_hides_no_wrong_targets() -> None:
    answer = await Case().validated(distribution(SECRET | {"kind": "Pod"}, includedNamespaces=names("")))
    assert answer.message.startswith("[spec.resource: ")
    assert ", spec.targets.includedNamespaces: " in answer.message


async def test_a_version_that_nobody_serves() -> None:
    assert (await Case().validated(distribution(version="v1"))).code == 400


async def test_what_cannot_be_read() -> None:
    assert (await Case().validated(distribution(allNamespaces="x"))).code == 400


@pytest.mark.parametrize("resource", [SECRET, SECRET | {"kind": "Pod"}])
async def test_no_refusal_tells_a_secret(resource: Json) -> None:
    answer = await Case(refusal=ApiError(422, "Invalid", "no")).validated(distribution(resource))
    assert not answer.allowed
    assert VALUE not in answer.message
