"""Writes as the user: conflicts, refusals, unknown outcomes, and the Event that names who did it."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.resources import EVENT, POD, Resource
from flotilla_common.clock import SystemEntropy
from flotilla_console.access.identity import Identity
from flotilla_console.actions.carrying_out import TRIES, Actor, Target, stamp_of
from flotilla_console.actions.catalogue import ACTIONS
from flotilla_console.actions.fields import InvalidField
from flotilla_console.actions.outcomes import Outcome, refused
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.unit.console.actions.objects import Json, kind_of, workload

CLONE_SET = kind_of("clonesets")
TARGET = Target(kind=CLONE_SET, namespace="shop", name="web")
ALICE = Identity(user="alice")
STAMP = dict(stamp_of(workload(CLONE_SET)))
PODS = {"web-a": "uid-a", "web-b": "uid-b"}


def pod_document(name: str, uid: str) -> Json:
    containers = [{"name": "main"}, {"name": "proxy"}]
    return {"metadata": {"name": name, "namespace": "shop", "uid": uid}, "spec": {"containers": containers}}


class UserApi(FakeApi):
    """The user's client. `failures` are raised by the next writes; `touched` writes a status before each patch."""

    def __init__(self) -> None:
        pods = [pod_document(name, uid) for name, uid in PODS.items()]
        super().__init__({CLONE_SET.resource: [workload(CLONE_SET)], POD: pods})
        self.failures: list[Exception] = []
        self.touched = 0
        self.bodies: list[Json] = []

    def _fail(self) -> None:
        if self.failures:
            raise self.failures.pop(0)

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str,
        subresource: str = "",
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        self._fail()
        self.bodies.append(msgspec.json.decode(body))
        if self.touched:
            self.touched -= 1
            self.put(resource, self.named(resource, namespace, name))
        return await super().patch(resource, namespace, name, body, content_type, subresource, params)

    async def create(self, resource: Resource, namespace: str, body: bytes, *, dry_run: bool = False) -> bytes:
        self._fail()
        document = msgspec.json.decode(body)
        metadata = document["metadata"]
        metadata["name"] = metadata.pop("generateName") + "x1"
        return await super().create(resource, namespace, msgspec.json.encode(document), dry_run=dry_run)

    async def delete(
        self, resource: Resource, namespace: str, name: str, *, uid: str = "", resource_version: str = ""
    ) -> bytes:
        self._fail()
        if self.named(resource, namespace, name)["metadata"]["uid"] != uid:
            raise ApiError(409, "Conflict", "the UID in the precondition does not match")
        return msgspec.json.encode(self.objects.pop((resource.plural, namespace, name)))


class Run:
    """One run of an action."""

    def __init__(self) -> None:
        self.user, self.own = UserApi(), FakeApi()
        self.actor = Actor(lambda _: self.user.api, self.own.api, FakeClock(), SystemEntropy())

    async def __call__(self, verb: str, target: Target = TARGET, **fields: str) -> list[Outcome]:
        return list(await self.actor.carry_out(ALICE, target, ACTIONS[verb], {**STAMP, **fields}, PODS))

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(one["reason"], one["message"]) for one in self.own.sent]

    @property
    def spec(self) -> Json:
        return self.user.named(CLONE_SET.resource, "shop", "web")["spec"]


async def test_a_change_is_written_and_its_event_names_the_user() -> None:
    run = Run()
    (outcome,) = await run("pause")
    assert (outcome.status, outcome.done) == (200, True)
    assert run.spec["updateStrategy"] == {"rollingUpdate": {"paused": True}}
    (event,) = run.own.sent
    assert (event["reason"], event["message"]) == ("ConsoleAction", "alice paused the rollout")
    assert event["reportingComponent"] == "flotilla-console"
    assert event["involvedObject"]["uid"] == STAMP["uid"]
    assert event["metadata"]["namespace"] == "shop"
    assert [resource for resource, _, _ in run.own.objects] == [EVENT.plural]


async def test_nothing_to_change_is_no_write_and_no_event() -> None:
    run = Run()
    (outcome,) = await run("scale", replicas="2")
    assert (outcome.text, outcome.done) == ("Nothing had to change.", False)
    assert run.user.writes == []
    assert run.events == []


async def test_a_status_written_in_between_is_no_conflict() -> None:
    run = Run()
    run.user.touched = TRIES - 1
    (outcome,) = await run("pause")
    assert outcome.done
    versions = [body["metadata"]["resourceVersion"] for body in run.user.bodies]
    assert len(set(versions)) == TRIES


async def test_an_object_that_never_rests_is_a_conflict() -> None:
    run = Run()
    run.user.touched = TRIES
    (outcome,) = await run("pause")
    assert (outcome.status, outcome.done) == (409, False)
    assert run.events == []


@pytest.mark.parametrize(
    "stale", [{"generation": "2"}, {"uid": "another"}, {"generation": ""}, {"uid": ""}, {"generation": "<x>"}]
)
async def test_a_form_for_another_version_changes_nothing(stale: dict[str, str]) -> None:
    run = Run()
    (outcome,) = await run("pause", **stale)
    assert outcome.status == 409
    assert "changed after the form was shown" in outcome.text
    assert run.user.writes == []


ADMISSION = ApiError(403, "Forbidden", 'admission webhook "vcloneset.kb.io" denied the request: replicas')
FAILURES: list[tuple[Exception, int, str]] = [
    (ApiError(401, "Unauthorized", "no"), 401, "does not accept your identity"),
    (ApiError(403, "Forbidden", 'User "alice" cannot patch resource'), 403, "You may not do this: User"),
    (ADMISSION, 422, "Admission refused this change, so nothing was done"),
    (ApiError(422, "Invalid", "spec.replicas: Invalid value"), 422, "The apiserver refused this change"),
    (ApiError(404, "NotFound", "not found"), 404, "does not exist any more"),
    (ApiError(429, "TooManyRequests", "later"), 429, "try again later"),
    (ApiError(500, "InternalError", "etcd"), 502, "Look at the object before you try again"),
    (Unreachable("refused", sent=False), 503, "so nothing was done"),
    (Unreachable("broken pipe"), 504, "It is not known whether the change was made"),
    (TimeoutError(), 504, "It is not known whether the change was made"),
]


@pytest.mark.parametrize(("error", "status", "text"), FAILURES, ids=lambda value: str(value)[:20])
async def test_each_failure_has_a_message_of_its_own(error: Exception, status: int, text: str) -> None:
    run = Run()
    run.user.failures = [error]
    (outcome,) = await run("pause")
    assert (outcome.status, outcome.done) == (status, False)
    assert text in outcome.text
    assert run.events == []
    assert refused(error) == outcome


async def test_a_failed_read_has_changed_nothing() -> None:
    run = Run()
    run.user.fail_gets = Unreachable("reset")
    (outcome,) = await run("pause")
    assert outcome.status == 503
    assert "nothing was done" in outcome.text


@pytest.mark.parametrize("error", [ApiError(403, "Forbidden", "no"), Unreachable("reset")])
async def test_a_change_counts_without_its_event(error: Exception) -> None:
    run = Run()
    run.own.refusal = error
    (outcome,) = await run("pause")
    assert outcome.done
    assert "The Event about it could not be written" in outcome.text


async def test_pods_of_our_kinds_are_marked_and_others_deleted() -> None:
    run = Run()
    outcomes = await run("delete-pods", **{"pod.web-a": "uid-a"})
    assert [one.done for one in outcomes] == [True]
    labels = run.user.named(POD, "shop", "web-a")["metadata"]["labels"]
    assert labels == {"apps.kruise.io/specified-delete": "true"}
    assert run.events == [("ConsoleAction", "alice asked the controller to delete pod web-a")]
    run = Run()
    deployment = Target(kind=kind_of("deployments", "apps"), namespace="shop", name="web")
    await run("delete-pods", deployment, **{"pod.web-a": "uid-a", "pod.web-b": "uid-b"})
    assert [name for plural, _, name in run.user.objects if plural == "pods"] == []
    assert run.events == [("ConsoleAction", "alice deleted pods web-a, web-b")]


async def test_a_restart_asks_for_all_containers() -> None:
    run = Run()
    await run("restart", **{"pod.web-a": "uid-a"})
    (request,) = [one for (plural, _, _), one in run.user.objects.items() if plural == RECREATE_REQUEST.plural]
    assert request["spec"]["podName"] == "web-a"
    assert [one["name"] for one in request["spec"]["containers"]] == ["main", "proxy"]
    assert run.events == [("ConsoleAction", "alice restarted pod web-a")]


@pytest.mark.parametrize("verb", ["delete-pods", "restart"])
async def test_a_pod_that_was_replaced_is_left_alone(verb: str) -> None:
    run = Run()
    run.user.named(POD, "shop", "web-a")["metadata"]["uid"] = "another"
    first, second = await run(verb, **{"pod.web-a": "uid-a", "pod.web-b": "uid-b"})
    assert (first.status, first.done, second.done) == (409, False, True)
    assert run.events[0][1].endswith("pod web-b")


async def test_a_refused_pod_does_not_keep_the_others() -> None:
    run = Run()
    run.user.failures = [ADMISSION]
    first, second = await run("delete-pods", **{"pod.web-a": "uid-a", "pod.web-b": "uid-b"})
    assert first.text.startswith("web-a: Admission refused")
    assert second.done


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"pod.": "uid"},
        {"pod.web-a": ""},
        {"pod.web-a": "another"},
        {"pod.../../secrets/x": "uid-a"},
        {f"pod.{number}": "x" for number in range(51)},
    ],
)
async def test_pods_that_cannot_be_chosen_change_nothing(fields: dict[str, Any]) -> None:
    run = Run()
    with pytest.raises(InvalidField):
        await run("delete-pods", **fields)
    assert run.user.writes == []


async def test_a_long_name_of_a_user_fits_into_the_event() -> None:
    run = Run()
    identity = Identity(user="x" * 5000)
    await run.actor.carry_out(identity, TARGET, ACTIONS["pause"], STAMP, PODS)
    assert len(run.own.sent[0]["message"]) == 1024
