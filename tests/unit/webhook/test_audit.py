"""Authors of changes, as the webhook reports them to the bus."""

import asyncio
from typing import Any, cast

import pytest
from structlog.testing import capture_logs

from flotilla_common.api.admission.review import ALLOWED, Answer, Request, User, error
from flotilla_common.api.changes import MOST_CHANGES as MOST
from flotilla_common.api.changes import redacted_changes
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.webhooks import paths
from flotilla_common.bus.interface import Bus
from flotilla_common.control.journal import Journal
from flotilla_webhook.audit import Audit, manager_of
from flotilla_webhook.server.reviews import Handler
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json
from tests.unit.control.fakes import SilentBus

OURS = "system:serviceaccount:kruise-system:flotilla-cloneset"


def container(**more: Any) -> Json:
    return {"name": "main", "image": "nginx:1.29"} | more


def document(metadata: Json | None = None, **spec: Any) -> Json:
    return {"metadata": {"name": "web", "namespace": "shop", "uid": "u"} | (metadata or {}), "spec": spec}


def template(**more: Any) -> Json:
    return {"spec": {"containers": [container(**more)]}}


def published(answer: Answer = ALLOWED, kind: str = "CloneSet", verb: str = "validate", **more: Any) -> list[Json]:
    """Return the records about a request on the bus."""
    handlers: dict[str, Handler] = {}

    async def handler(_: Request) -> Answer:
        return answer

    for one in catalogue.KINDS:
        for each in one.rules().admission.handlers:
            handlers |= dict.fromkeys(paths(one, each), handler)
    bus = SilentBus()
    clock = FakeClock()
    journal = Journal(cast("Bus", bus), clock, "webhook", "r1")
    wanted = next(one for one in catalogue.KINDS if one.name == kind)
    asked = {"uid": "1", "operation": "UPDATE", "user_info": User("jane"), "options": {"fieldManager": "kubectl"}}
    around = Audit(journal, clock, "kruise-system").around(handlers)
    assert asyncio.run(around[paths(wanted, verb)[0]](Request(**(asked | more)))) == answer
    return [{"subject": subject} | message for subject, message in bus.published]


def test_a_change_is_told_with_who_and_what() -> None:
    old = document(replicas=3, template=template())
    new = document({"generation": 4}, replicas=5, template=template(image="nginx:1.30"))
    (reported,) = published(old_object=old, object=new)
    assert reported["subject"] == "act.v1.webhook.clonesets.shop.web"
    facts = ("action", "kind", "namespace", "name", "uid", "user", "manager", "generation", "outcome")
    assert [reported[fact] for fact in facts] == ["update", "CloneSet", "shop", "web", "u", "jane", "kubectl", 4, "Ok"]
    assert reported["changes"] == [
        {"path": "spec.replicas", "from": 3, "to": 5},
        {"path": "spec.template.spec.containers[main].image", "from": "nginx:1.29", "to": "nginx:1.30"},
    ]


def test_creations_and_deletions_are_told() -> None:
    (made,) = published(operation="CREATE", object=document({"generation": 1}, replicas=1))
    (gone,) = published(operation="DELETE", old_object=document(replicas=1), name="web", namespace="shop")
    assert (made["action"], made["generation"], made["changes"]) == ("create", 1, [])
    assert (gone["action"], gone["name"], gone["uid"]) == ("delete", "web", "u")


@pytest.mark.parametrize("verb", ["mutate", "validate"])
def test_a_refusal_is_told_with_its_text(verb: str) -> None:
    old, new = document(replicas=1), document(replicas=-1)
    (reported,) = published(error(400, "spec.replicas: no"), verb=verb, old_object=old, object=new)
    assert (reported["outcome"], reported["message"]) == ("Denied", "spec.replicas: no")


def test_of_two_webhooks_the_last_one_admits() -> None:
    old, new = document(replicas=1), document(replicas=2)
    assert not published(verb="mutate", old_object=old, object=new)
    assert len(published(old_object=old, object=new)) == 1


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"object": document(replicas=2), "dry_run": True}, "a dry run"),
        ({"object": document(replicas=2), "sub_resource": "status"}, "a subresource"),
        ({"object": document({"resourceVersion": "2", "managedFields": []}, replicas=1)}, "nothing was changed"),
        ({"object": document({"annotations": {"a": "1"}}, replicas=1), "user_info": User(OURS)}, "our own notes"),
    ],
)
def test_what_is_no_wish_of_anybody_is_not_told(more: Json, why: str) -> None:
    assert not published(old_object=document(replicas=1), **more), why


def test_our_own_wishes_are_told() -> None:
    assert published(old_object=document(replicas=1), object=document(replicas=2), user_info=User(OURS))


def test_of_objects_that_hold_secrets_only_the_fields_are_told() -> None:
    old, new = document(resource={"data": {"p": "a"}}, n=1), document(resource={"data": {"p": "b"}}, n=2)
    kind = "ResourceDistribution"
    (reported,) = published(kind=kind, old_object=old, object=new)
    assert reported["changes"] == [{"path": "spec.resource.data.p"}, {"path": "spec.n"}]
    (refused,) = published(error(400, "bad value 'hunter2'"), kind=kind, old_object=old, object=new)
    assert "hunter2" not in str(refused)


def test_values_that_might_be_secret_are_not_told() -> None:
    secret = {"env": [{"name": "P", "value": "hunter2"}, {"name": "N", "value": 7}], "args": ["--token=hunter2"]}
    annotations = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "hunter2"}}
    reported = redacted_changes(
        document(template=template(env=[{"name": "P", "value": "a"}, {"name": "N", "value": 1}], args=["a"]), note="x"),
        document(annotations, template=template(**secret), note="hunter2"),
    )
    assert {tuple(change) for change in reported} == {("path",)}
    assert [change["path"] for change in reported[:2]] == [
        "spec.template.spec.containers[main].env[P].value",
        "spec.template.spec.containers[main].env[N].value",
    ]
    assert "hunter2" not in str(reported)


def test_labels_are_told_and_long_values_are_cut() -> None:
    reported = redacted_changes(document({"labels": {"a": "1"}}), document({"labels": {"a": "x" * 200}}))
    assert reported[0]["path"] == "metadata.labels.a"
    assert (reported[0]["from"], len(reported[0]["to"])) == ("1", 100)


def test_of_many_changes_the_first_are_told() -> None:
    reported = redacted_changes(document(), document(**{f"n{number}": number for number in range(MOST + 5)}))
    assert (len(reported), reported[-1]) == (MOST + 1, {"path": "and 5 more"})


def test_a_request_without_a_manager_has_that_of_its_newest_fields() -> None:
    fields = [{"manager": "old", "time": "2026-01-01T00:00:00Z"}, {"manager": "new", "time": "2026-01-02T00:00:00Z"}]
    assert manager_of(Request(uid="1", object=document({"managedFields": fields}))) == "new"
    assert manager_of(Request(uid="1", object=document())) == ""
    assert manager_of(Request(uid="1", options={"fieldManager": "helm"})) == "helm"


def test_what_cannot_be_told_is_answered_all_the_same() -> None:
    broken = {"metadata": {"generation": object()}, "spec": {"replicas": 1}}  # not encodable in JSON
    with capture_logs() as logs:
        assert published(operation="CREATE", object=broken) == []
    assert [line["event"] for line in logs] == ["cannot publish a change"]
