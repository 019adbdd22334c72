"""The apiserver's refusals are reported with the next plan, in its own words, for every kind."""

import pytest

from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Create, Intent, Outcome, OutcomeKind, Patch, Plan, Reason, State
from flotilla_common.control.writes import WriteFailure, with_write_failures, write_failure_of

TEXTS = [
    (
        "QuotaExceeded",
        'pods "web-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2',
    ),
    ("QuotaExceeded", 'pods "web-1" is forbidden: failed quota: small: must specify limits.cpu for: app'),
    ("LimitRangeViolated", 'pods "web-1" is forbidden: maximum cpu usage per Container is 200m, but limit is 1'),
    (
        "LimitRangeViolated",
        (
            'pods "web-1" is forbidden: [minimum memory usage per Pod is 1Gi, but request is 64Mi, '
            "maximum cpu usage per Pod is 1, but limit is 2]"
        ),
    ),
    (
        "PodSecurityViolated",
        'pods "web-1" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
    ),
    (
        "ServiceAccountMissing",
        'pods "web-1" is forbidden: error looking up service account shop/robot: serviceaccount "robot" not found',
    ),
    ("RuntimeClassMissing", 'pods "web-1" is forbidden: pod rejected: RuntimeClass "gvisor" not found'),
    ("PriorityClassMissing", 'pods "web-1" is forbidden: no PriorityClass with name high was found'),
    (
        "NamespaceTerminating",
        'pods "web-1" is forbidden: unable to create new content in namespace shop because it is being terminated',
    ),
    ("WebhookDenied", 'admission webhook "policy.example.com" denied the request: no images of strangers'),
    ("WebhookDenied", 'admission webhook "policy.example.com" denied the request without explanation'),
    (
        "WebhookUnreachable",
        (
            'Internal error occurred: failed calling webhook "policy.example.com": failed to call webhook: Post '
            '"https://policy.example.com/pods?timeout=10s": dial tcp 10.0.0.1:443: connect: connection refused'
        ),
    ),
    ("PolicyDenied", "pods \"web-1\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"),
    (
        "Forbidden",
        (
            'pods is forbidden: User "system:serviceaccount:kruise-system:flotilla-cloneset" cannot create '
            'resource "pods" in '
            'API group "" in the namespace "shop"'
        ),
    ),
    ("NameTaken", 'pods "web-1" already exists'),
    ("Invalid", 'Pod "web-1" is invalid: spec.containers[0].image: Required value'),
    ("WriteFailed", "the server is currently unable to handle the request"),
]


@pytest.mark.parametrize(("code", "text"), TEXTS)
def test_the_code_says_who_refused_and_the_text_is_the_apiserver_s(code: str, text: str) -> None:
    reason = WriteFailure("creating Pod web-1", text).reason
    assert (reason.code, reason.message) == (code, f"creating Pod web-1 is refused: {text}")


CREATE = Create(resource=POD, namespace="shop", name="web-1", intent=Intent.CREATE, cause="scale up", body={})
STATUS = Patch(
    resource=POD, namespace="shop", name="web-1", intent=Intent.UPDATE, cause="in place", body={}, subresource="status"
)


def test_what_was_to_be_written_is_told() -> None:
    denied = write_failure_of(CREATE, Outcome(kind=OutcomeKind.DENIED, message="no"))
    assert denied.reason.message == "creating Pod web-1 is refused: no"
    lost = write_failure_of(STATUS, Outcome(kind=OutcomeKind.UNKNOWN, message="timed out"))
    assert lost.reason.message == "updating Pod web-1 (status) has no known outcome: timed out"


def test_a_plan_that_speaks_of_it_itself_says_it_once() -> None:
    refusals = [WriteFailure("creating Pod web-1", "exceeded quota: small")]
    plan = Plan(reasons=(Reason(State.PROGRESSING, "ScalingUp", "creating 1 pod"),))
    told = with_write_failures(plan, refusals)
    assert [reason.code for reason in told.reasons] == ["QuotaExceeded", "ScalingUp"]
    assert with_write_failures(told, refusals) is told
    impossible = Plan(errors=(("scale", "exceeded quota: small"),))
    assert with_write_failures(impossible, refusals) is impossible
