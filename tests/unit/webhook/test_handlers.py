"""The handlers of CloneSets and pods, and the validation of templates by the apiserver (ADR 2)."""

from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.admission.handlers import Verdict
from flotilla_common.api.admission.review import Named, Request
from flotilla_common.api.resources import POD
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_webhook.kinds import DryRunValidator, kind_handlers
from tests.testkit.admission import KindAdmission, create, update
from tests.testkit.apiserver import FakeApi
from tests.testkit.documents import Json
from tests.unit.webhook.workloads import TEMPLATE, cloneset

LABEL = "policy.kruise.io/delete-protection"


def admission() -> KindAdmission:
    """Return the admission of CloneSets."""
    return KindAdmission("cloneset")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"resources": {"requests": {"storage": "1Gi"}}}, "", id="fine"),
        pytest.param(
            {"resources": {"requests": {"storage": "oops"}}},
            "spec: resources: requests: 'oops' is not a quantity",
            id="size",
        ),
        pytest.param(
            {"accessModes": "ReadWriteOnce"}, "spec: accessModes: 'ReadWriteOnce' should be of type list", id="type"
        ),
    ],
)
async def test_claim_templates(spec: Json, expected: str) -> None:
    claims = [{"metadata": {"name": "d"}, "spec": spec}]
    answer = await admission().validate(create(cloneset(volumeClaimTemplates=claims)))
    assert answer.message == (f"spec.volumeClaimTemplates[0]: Invalid value: {expected}" if expected else "")


async def test_a_claim_template_needs_a_name() -> None:
    answer = await admission().validate(create(cloneset(volumeClaimTemplates=[{"spec": {}}])))
    assert answer.message == (
        "spec.volumeClaimTemplates[0].metadata.name: Required value: it is the name of the pods' volume"
    )


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        pytest.param({}, "find pod p owner is not this CloneSet", id="no controller"),
        pytest.param({"ownerReferences": [{"uid": "2", "controller": True}]}, "find pod p owner is", id="other owner"),
        pytest.param({"deletionTimestamp": "2026-01-01T00:00:00Z"}, "find pod p already terminating", id="terminating"),
        pytest.param({"ownerReferences": [{"uid": "1", "controller": True}]}, "", id="own pod"),
        pytest.param(None, "find pod p failed: ", id="missing"),
    ],
)
async def test_pods_to_delete(metadata: Json | None, expected: str) -> None:
    case = admission()
    if metadata is not None:
        case.cluster.put(POD, {"metadata": {"name": "p", "namespace": "n"} | metadata})
    strategy = {"type": "ReCreate", "maxUnavailable": 1}
    document = cloneset("v1alpha1", updateStrategy=strategy, scaleStrategy={"podsToDelete": ["p"]})
    answer = await case.validate(update(document, cloneset("v1alpha1", updateStrategy=strategy)))
    assert answer.allowed == (not expected)
    assert expected in answer.message


async def test_many_pods_to_delete_cost_no_read_each() -> None:
    case, names = admission(), [f"p{number}" for number in range(100)]
    owners = [{"uid": "1", "controller": True}]
    for name in names[1:]:
        case.cluster.put(POD, {"metadata": {"name": name, "namespace": "n", "ownerReferences": owners}})
    case.cluster.put(POD, {"metadata": {"name": "p0", "namespace": "n"}})
    case.cluster.put(POD, {"metadata": {"name": "p0", "namespace": "other", "ownerReferences": owners}})
    strategy = {"type": "ReCreate", "maxUnavailable": 1}
    document = cloneset("v1alpha1", updateStrategy=strategy, scaleStrategy={"podsToDelete": [*names, "gone"]})
    answer = await case.validate(update(document, cloneset("v1alpha1", updateStrategy=strategy)))
    assert [fault.partition(': "')[2] for fault in answer.message.strip("[]").split(", ")] == [
        'p0": find pod p0 owner is not this CloneSet',
        'gone": find pod gone failed: pods "gone" not found',
    ]
    assert "pods" not in {plural for plural, _ in case.cluster.gets}


@pytest.mark.parametrize(("replicas", "allowed"), [(3, False), (0, True)])
async def test_deletion_protection(replicas: int, allowed: bool) -> None:
    old = cloneset(metadata={"labels": {LABEL: "Cascading"}}, replicas=replicas)
    request = Request(uid="u", operation="DELETE", kind=Named(kind="CloneSet"), old_object=old)
    assert (await admission().validate(request)).allowed == allowed


def test_paths_of_old_charts() -> None:
    assert "/mutate-apps-kruise-io-v1alpha1-cloneset" in kind_handlers(admission().tools)


async def judged(template: Json, claims: list[Json] | None = None, refuse: ApiError | None = None) -> tuple[Any, Json]:
    cluster = FakeApi()
    cluster.refusal = refuse
    verdict = await DryRunValidator(cluster.api).verdict("n", template, claims or [])
    return [str(fault) for fault in verdict.faults], cluster.sent[0]["template"]


async def test_the_template_goes_as_it_is() -> None:
    faults, sent = await judged(TEMPLATE)
    assert (faults, sent) == ([], TEMPLATE)


async def test_tolerances_and_claims() -> None:
    template = {
        "metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "junk", "a": "b"}},
        "spec": {
            "hostNetwork": True,
            "containers": [{"name": "c", "ports": [{"containerPort": 80}]}],
            "volumes": [{"name": "data", "hostPath": {}}, {"name": "tmp", "emptyDir": {}}],
        },
    }
    _, sent = await judged(template, [{"metadata": {"name": "data"}}])
    assert sent["metadata"]["annotations"] == {"a": "b"}
    assert sent["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80}]
    assert sent["spec"]["volumes"] == [{"name": "tmp", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]
    assert "hostPort" not in template["spec"]["containers"][0]["ports"][0]


async def test_a_claim_without_a_name_is_no_volume() -> None:
    """It is refused under its own path; a volume without a name would be refused under a path that no user wrote."""
    _, sent = await judged(TEMPLATE, [{"metadata": {}}])
    assert sent == TEMPLATE


class PruningApi:
    """Returns the parts of a template that it supports, as an apiserver does."""

    def __init__(self, kept: Json) -> None:
        self.kept = kept

    async def create(self, *_: object, dry_run: bool = False) -> bytes:
        return msgspec.json.encode({"template": self.kept})


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        pytest.param({}, [], id="all known"),
        pytest.param({"imagePullPolici": "Always"}, ["spec.template.spec.containers[0].imagePullPolici"], id="unknown"),
        pytest.param({"stdin": False, "env": [], "args": None}, [], id="empty ones are left out"),
    ],
)
async def test_what_the_apiserver_leaves_out_is_named(extra: Json, expected: list[str]) -> None:
    kept = TEMPLATE | {"spec": {"containers": [{"name": "c", "image": "i"}], "dnsPolicy": "ClusterFirst"}}
    sent = TEMPLATE | {"spec": {"containers": [{"name": "c", "image": "i", **extra}]}}
    verdict = await DryRunValidator(cast("Api", PruningApi(kept))).verdict("default", sent, [])
    assert verdict == Verdict(dropped=expected)


POLICY = msgspec.json.encode({"details": {"causes": [{"message": "ValidatingAdmissionPolicy 'p' denied request: no"}]}})
CAUSES = msgspec.json.encode(
    {
        "details": {
            "causes": [
                {"field": "template.spec.containers[0].image", "message": "Required value"},
                {"field": "template.spec.dnsPolicy", "message": 'Unsupported value: "x"'},
            ]
        }
    }
)


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        pytest.param(
            ApiError(422, "Invalid", "invalid", body=CAUSES),
            [
                "spec.template.spec.containers[0].image: Required value",
                'spec.template.spec.dnsPolicy: Unsupported value: "x"',
            ],
            id="causes",
        ),
        pytest.param(ApiError(422, "Invalid", "odd"), ["spec.template: Invalid value: odd"], id="no causes"),
        pytest.param(
            ApiError(400, "BadRequest", "cannot unmarshal"),
            ["spec.template: Invalid value: cannot unmarshal"],
            id="types",
        ),
        pytest.param(ApiError(404, "NotFound", "namespaces not found"), [], id="no namespace"),
        pytest.param(
            ApiError(403, "Forbidden", "going", body=b'{"details":{"causes":[{"reason":"NamespaceTerminating"}]}}'),
            [],
            id="namespace is going",
        ),
        pytest.param(ApiError(403, "Forbidden", "exceeded quota: q, requested: count/podtemplates=1"), [], id="quota"),
        pytest.param(
            ApiError(403, "Forbidden", 'admission webhook "p" denied the request: no PodTemplates'), [], id="policy"
        ),
        pytest.param(
            ApiError(400, "BadRequest", 'admission webhook "p" denied the request: no PodTemplates'),
            [],
            id="policy with a code of its own",
        ),
        pytest.param(ApiError(422, "Invalid", "denied request: no", body=POLICY), [], id="ValidatingAdmissionPolicy"),
    ],
)
async def test_refusals_become_field_errors(refusal: ApiError, expected: list[str]) -> None:
    assert (await judged(TEMPLATE, refuse=refusal))[0] == expected


class BreakingApi:
    """An apiserver whose connections break under many creates."""

    def __init__(self, times: int, *, sent: bool = True) -> None:
        self.times, self.sent = times, sent
        self.tries = 0

    async def create(self, *_: object, dry_run: bool = False) -> bytes:
        assert dry_run
        self.tries += 1
        if self.tries <= self.times:
            raise Unreachable("Server disconnected", sent=self.sent)
        return msgspec.json.encode({"template": TEMPLATE})


@pytest.mark.parametrize("broken", [1, 3])
async def test_broken_connections_are_no_verdict(broken: int) -> None:
    api = BreakingApi(broken)
    assert await DryRunValidator(cast("Api", api)).verdict("default", TEMPLATE, []) == Verdict()
    assert api.tries == broken + 1


async def test_an_apiserver_that_cannot_be_reached_is_tried_once_more() -> None:
    api = BreakingApi(4, sent=False)
    with pytest.raises(Unreachable):
        await DryRunValidator(cast("Api", api)).verdict("default", TEMPLATE, [])
    assert api.tries == 2


async def test_without_an_answer_there_is_no_verdict() -> None:
    with pytest.raises(Unreachable):
        await DryRunValidator(cast("Api", BreakingApi(4))).verdict("default", TEMPLATE, [])


async def test_other_errors_are_passed_on() -> None:
    with pytest.raises(ApiError, match="etcd"):
        await judged(TEMPLATE, refuse=ApiError(500, "InternalError", "etcd is away"))
