"""The handlers of DaemonSets: the cluster's answers about templates, codes and warnings (daemonset.md §3)."""

from typing import Any

import pytest

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.admission.tools import Verdict
from flotilla_common.kube.interface import ApiError, Unreachable
from tests.testkit.admission import KindAdmission, applied, create, update
from tests.testkit.documents import Json

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


class Case(KindAdmission):
    """Admission of DaemonSets."""

    def __init__(self, verdict: Verdict | Exception | None = None, gates: str = "") -> None:
        super().__init__("daemonset", gates=gates, verdict=verdict)


def daemonset(version: str = "v1beta1", name: str = "probe", **spec: Any) -> Json:
    given = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE, "updateStrategy": {"type": "OnDelete"}}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "n", "uid": "1"},
        "spec": given | spec,
    }


@pytest.mark.parametrize("gates", ["", "TemplateNoDefaults=true"])
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_mutation_is_a_patch_and_then_nothing(version: str, gates: str) -> None:
    case, document = Case(gates=gates), daemonset(version)
    answer = await case.mutate(create(document))
    stored = applied(document, answer)
    assert stored["spec"] == document["spec"] | {"burstReplicas": 250, "revisionHistoryLimit": 10}
    assert not (await case.mutate(update(stored, stored))).patch
    assert (await case.validate(create(stored))).allowed


@pytest.mark.parametrize(
    "document",
    [None, daemonset(minReadySeconds="two"), daemonset(updateStrategy=[])],
    ids=["no object", "wrong type", "no object where one has to be"],
)
async def test_undecodable(document: Json | None) -> None:
    assert (await Case().mutate(create(document))).code == 400
    assert (await Case().validate(create(document))).code == 400


FAULTS = (
    "[spec.template.spec.x: Required value, "
    "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0]"
)


async def test_faults_of_all_sources_in_one_answer() -> None:
    case = Case(Verdict([Fault("spec.template.spec.x", "Required value")]))
    bad = daemonset(minReadySeconds=-1, template=TEMPLATE | {"x": 1})
    made = await case.validate(create(bad))
    assert (made.allowed, made.code, made.message) == (False, 500, FAULTS)
    changed = await case.validate(update(bad, daemonset()))
    assert (changed.allowed, changed.code, changed.message) == (False, 422, FAULTS)


@pytest.mark.parametrize("failure", [ApiError(503, "x", "busy"), Unreachable("gone")], ids=lambda it: type(it).__name__)
async def test_without_an_answer_nothing_is_admitted(failure: Exception) -> None:
    answer = await Case(failure).validate(create(daemonset()))
    assert (answer.allowed, answer.code) == (False, 500)
    assert answer.message.startswith("cannot check the DaemonSet: ")


async def test_only_changed_templates_are_validated() -> None:
    case = Case()
    assert (await case.validate(update(daemonset(burstReplicas=5), daemonset()))).allowed
    assert case.asked == 0
    assert (await case.validate(update(daemonset(template=TEMPLATE | {"x": 1}), daemonset()))).allowed
    assert case.asked == 1


UNKNOWN = 'unknown field "spec.template.x": pods will not have it'
TOO_LONG = (
    "metadata.name has 243 characters: with more than 242 the revisions' names get too long, and they cannot be created"
)


@pytest.mark.parametrize(
    ("name", "dropped", "expected"),
    [
        pytest.param("a" * 242, [], [], id="nothing to say"),
        pytest.param("probe", ["spec.template.x"], [UNKNOWN], id="unknown field"),
        pytest.param("a" * 243, [], [TOO_LONG], id="a long name"),
    ],
)
async def test_warnings(name: str, dropped: list[str], expected: list[str]) -> None:
    answer = await Case(Verdict(dropped=dropped)).validate(create(daemonset(name=name)))
    assert (answer.allowed, answer.warnings) == (True, expected)
    again = daemonset(name=name)
    assert (await Case().validate(update(again, again))).warnings == []
