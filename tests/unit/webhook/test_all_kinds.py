"""Rules that the handlers of kinds with pod templates have in common: codes, warnings, what the apiserver validates."""

import pytest

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.admission.handlers import Verdict
from flotilla_common.kube.interface import ApiError, Unreachable
from tests.testkit.admission import KindAdmission, applied, create, update, written
from tests.testkit.documents import Json
from tests.unit.admission.test_advancedcronjob_defaults import JOB, cron_job
from tests.unit.admission.test_broadcastjob import job
from tests.unit.admission.test_ephemeraljob import GOOD
from tests.unit.admission.test_ephemeraljob import job as ephemeral_job
from tests.unit.webhook.workloads import DEMANDED, TEMPLATE, cloneset, daemonset, statefulset, workload

KINDS = pytest.mark.parametrize("kind", DEMANDED)
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def case(document: Json, verdict: Verdict | Exception | None = None, gates: str = "") -> KindAdmission:
    """Return the handlers of the document's kind."""
    named = "v1alpha1-ephemeraljob" if document["kind"] == "EphemeralJob" else document["kind"].lower()
    return KindAdmission(named, verdict=verdict, gates=gates)


DEFAULTS = {
    "CloneSet": {"revisionHistoryLimit": 10},
    "DaemonSet": {"burstReplicas": 250, "revisionHistoryLimit": 10},
    "StatefulSet": {"replicas": 1},
}


@KINDS
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_mutation_is_a_patch_and_then_nothing(kind: str, version: str) -> None:
    document = workload(kind, version)
    admission = case(document)
    stored = applied(document, await admission.mutate(create(document)))
    assert stored["spec"] == stored["spec"] | DEFAULTS[kind]
    assert stored["metadata"] == document["metadata"]
    assert not (await admission.mutate(update(stored, stored))).patch
    assert (await admission.validate(create(stored))).allowed


@pytest.mark.parametrize("gates", ["", "TemplateNoDefaults=true"])
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_templates_of_daemonsets_get_no_defaults(version: str, gates: str) -> None:
    document = daemonset(version)
    stored = applied(document, await case(document, gates=gates).mutate(create(document)))
    assert stored["spec"] == document["spec"] | DEFAULTS["DaemonSet"]
    assert not (await case(document, gates=gates).mutate(update(stored, stored))).patch
    assert (await case(document, gates=gates).validate(create(stored))).allowed


OF_NO_VERSION = [None, {}, {"apiVersion": "apps.kruise.io/v2"}, {"apiVersion": "apps/v1"}]


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        *((kind, document) for kind in DEMANDED for document in OF_NO_VERSION),
        ("CloneSet", cloneset(replicas="two")),
        ("DaemonSet", daemonset(minReadySeconds="two")),
        ("DaemonSet", daemonset(updateStrategy=[])),
        ("StatefulSet", statefulset(replicas="two")),
    ],
)
async def test_undecodable(kind: str, document: Json | None) -> None:
    admission = KindAdmission(kind.lower())
    assert (await admission.mutate(create(document))).code == 400
    assert (await admission.validate(create(document))).code == 400


TOO_LOW = "Invalid value: -1: must be greater than or equal to 0"
NO_X = "spec.template.spec.x: Required value"
NO_CLAIM = "spec.volumeClaimTemplates[0].metadata.name: Required value: it is the name of the pods' volume"
BAD_DAEMONS = daemonset(minReadySeconds=-1, template=TEMPLATE | {"x": 1})
OF_DAEMONS = f"[{NO_X}, spec.minReadySeconds: {TOO_LOW}]"


@pytest.mark.parametrize(
    ("document", "old", "code", "message"),
    [
        (cloneset(replicas=-1), None, 422, f"[spec.replicas: {TOO_LOW}, {NO_X}]"),
        (BAD_DAEMONS, None, 500, OF_DAEMONS),
        (BAD_DAEMONS, daemonset(), 422, OF_DAEMONS),
        (
            statefulset(replicas=-1, volumeClaimTemplates=[{}]),
            None,
            422,
            f"[spec.replicas: {TOO_LOW}, {NO_X}, {NO_CLAIM}]",
        ),
    ],
    ids=["CloneSet", "DaemonSet", "DaemonSet, changed", "StatefulSet"],
)
async def test_faults_of_all_sources_in_one_answer(document: Json, old: Json | None, code: int, message: str) -> None:
    refused = case(document, Verdict([Fault("spec.template.spec.x", "Required value")]))
    answer = await refused.validate(written(document, old))
    assert (answer.allowed, answer.code, answer.message) == (False, code, message)


@pytest.mark.parametrize(
    "document",
    [*(workload(kind) for kind in DEMANDED), job(), cron_job(JOB), ephemeral_job(GOOD)],
    ids=lambda document: document["kind"],
)
@pytest.mark.parametrize("failure", [ApiError(503, "x", "busy"), Unreachable("gone")], ids=lambda it: type(it).__name__)
async def test_without_an_answer_nothing_is_admitted(failure: Exception, document: Json) -> None:
    answer = await case(document, failure).validate(create(document))
    assert (answer.allowed, answer.code) == (False, 500)
    assert answer.message == f"cannot check the {document['kind']}: {failure}"


@pytest.mark.parametrize(
    ("same", "other"),
    [
        (cloneset(replicas=5), cloneset(template=TEMPLATE | {"spec": {}})),
        (daemonset(burstReplicas=5), daemonset(template=TEMPLATE | {"x": 1})),
        (statefulset(replicas=5), statefulset(volumeClaimTemplates=[CLAIM])),
    ],
    ids=DEMANDED,
)
async def test_only_changed_templates_are_validated(same: Json, other: Json) -> None:
    admission, old = case(same), workload(same["kind"])
    assert (await admission.validate(update(same, old))).allowed
    assert admission.asked == 0
    assert (await admission.validate(update(other, old))).allowed
    assert admission.asked == 1


@KINDS
async def test_an_unknown_field_is_a_warning(kind: str) -> None:
    document = workload(kind)
    answer = await case(document, Verdict(dropped=["spec.template.x"])).validate(create(document))
    assert (answer.allowed, answer.warnings) == (True, ['unknown field "spec.template.x": pods will not have it'])


CANNOT = "too long, and they cannot be created"
HASH = f"52 the pods' label controller-revision-hash gets {CANNOT}"


@pytest.mark.parametrize(
    ("kind", "length", "warning"),
    [
        ("CloneSet", 52, ""),
        ("CloneSet", 53, f"{HASH} (gate CloneSetShortHash avoids it)"),
        ("CloneSet", 248, f"247 the pods' names get {CANNOT}"),
        ("DaemonSet", 242, ""),
        ("DaemonSet", 243, f"242 the revisions' names get {CANNOT}"),
        ("StatefulSet", 52, ""),
        ("StatefulSet", 53, HASH),
    ],
)
async def test_a_name_that_is_too_long_is_a_warning_at_the_creation(kind: str, length: int, warning: str) -> None:
    document = workload(kind, metadata={"name": "a" * length})
    answer = await case(document).validate(create(document))
    expected = [f"metadata.name has {length} characters: with more than {warning}"] if warning else []
    assert (answer.allowed, answer.warnings) == (True, expected)
    assert (await case(document).validate(update(document, document))).warnings == []
