"""The HTTP side: limits, versions, the two shapes of refusal, and handlers that break."""

import asyncio
import base64
import tracemalloc
from typing import Any

import msgspec
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from flotilla_common.api.admission import review
from flotilla_common.api.admission.fields import aggregate, invalid
from flotilla_common.api.admission.review import Answer, Operation, Request
from flotilla_common.clock import SystemClock
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.server.http_server import LARGE, MAX_BODY, build
from flotilla_webhook.server.reviews import Handler, convert, decode, encode, refused_unread
from tests.unit.webhook.asgi import call

ANSWERS = {
    "/allow": review.ALLOWED,
    "/error": review.error(422, "bad"),
    "/deny": review.denied("no"),
    "/warn": Answer(warnings=["a", "b"]),
    "/patch": review.patched([Operation("add", "/a", None), Operation("remove", "/b")]),
}


async def raising(_: Request) -> Answer:
    raise RuntimeError("boom")


class Http:
    """The application, called as a server would call it."""

    def __init__(self) -> None:
        def answering(answer: Answer) -> Handler:
            async def handler(_: Request) -> Answer:
                return answer

            return handler

        self.registry = CollectorRegistry()
        handlers = {path: answering(answer) for path, answer in ANSWERS.items()} | {"/raise": raising}
        self.app: FastAPI = build(handlers, convert, Metrics(self.registry), SystemClock())

    async def send(
        self, path: str, body: bytes, kind: str = "application/json", method: str = "POST"
    ) -> tuple[int, bytes]:
        return await call(self.app, path, body, kind, method)

    async def admit(self, path: str, version: str = "v1") -> dict[str, Any]:
        document = {"apiVersion": f"admission.k8s.io/{version}", "kind": "AdmissionReview", "request": {"uid": "u-1"}}
        status, body = await self.send(path, msgspec.json.encode(document))
        assert status == 200
        return msgspec.json.decode(body)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_answers_in_the_version_of_the_request(version: str) -> None:
    answer = await Http().admit("/allow", version)
    assert answer == {
        "apiVersion": f"admission.k8s.io/{version}",
        "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": True},
    }


@pytest.mark.parametrize(
    ("path", "status"),
    [
        pytest.param("/error", {"code": 422, "message": "bad"}, id="an error has no reason"),
        pytest.param("/deny", {"code": 403, "message": "no", "reason": "Forbidden"}, id="a denial has one"),
        pytest.param("/raise", {"code": 500, "message": "panic: boom [recovered]"}, id="a broken handler refuses"),
    ],
)
async def test_refusals(path: str, status: dict[str, Any]) -> None:
    assert (await Http().admit(path))["response"] == {"uid": "u-1", "allowed": False, "status": status}


async def test_warnings() -> None:
    assert (await Http().admit("/warn"))["response"] == {"uid": "u-1", "allowed": True, "warnings": ["a", "b"]}


async def test_patch() -> None:
    response = (await Http().admit("/patch"))["response"]
    assert response["patchType"] == "JSONPatch"
    assert base64.b64decode(response["patch"]) == b'[{"op":"add","path":"/a","value":null},{"op":"remove","path":"/b"}]'


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        pytest.param(b"", "application/json", 400, id="empty"),
        pytest.param(b"{}", "text/plain", 400, id="content type"),
        pytest.param(b"{", "application/json", 400, id="no JSON"),
        pytest.param(
            b'{"apiVersion":"admission.k8s.io/v2","request":{"uid":"u"}}', "application/json", 400, id="version"
        ),
        pytest.param(b"x" * (MAX_BODY + 1), "application/json", 413, id="too large"),
    ],
)
@pytest.mark.parametrize("path", ["/allow", "/convert"])
async def test_limits(path: str, body: bytes, kind: str, status: int) -> None:
    assert (await Http().send(path, body, kind))[0] == status


async def test_a_charset_is_fine() -> None:
    body = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u"}})
    assert (await Http().send("/allow", body, "application/json; charset=utf-8"))[0] == 200


async def test_health_and_unknown_paths() -> None:
    http = Http()
    assert await http.send("/healthz", b"", method="GET") == (200, b"ok")
    assert (await http.send("/other", b"{}"))[0] == 404


async def test_metrics() -> None:
    http = Http()
    await http.admit("/allow")
    await http.send("/allow", b"")
    value = http.registry.get_sample_value
    assert value("controller_runtime_webhook_requests_total", {"webhook": "/allow", "code": "200"}) == 1
    assert value("controller_runtime_webhook_requests_total", {"webhook": "/allow", "code": "400"}) == 1
    assert value("controller_runtime_webhook_latency_seconds_count", {"webhook": "/allow"}) == 2
    assert value("controller_runtime_webhook_requests_in_flight", {"webhook": "/allow"}) == 0


async def test_a_sender_that_closes_its_connection_is_counted_and_breaks_nothing() -> None:
    http = Http()
    assert (await call(http.app, "/allow", b"{", closed=True))[0] == 499
    value = http.registry.get_sample_value
    assert value("controller_runtime_webhook_requests_total", {"webhook": "/allow", "code": "499"}) == 1
    assert value("controller_runtime_webhook_requests_in_flight", {"webhook": "/allow"}) == 0


def conversion(version: str, desired: str, *objects: dict[str, Any]) -> bytes:
    request = {"uid": "c", "desiredAPIVersion": desired, "objects": list(objects)}
    return msgspec.json.encode({"apiVersion": f"apiextensions.k8s.io/{version}", "request": request})


ALPHA = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "spec": {}}


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_conversion(version: str) -> None:
    _, body = await Http().send("/convert", conversion(version, "apps.kruise.io/v1beta1", ALPHA, ALPHA))
    answer = msgspec.json.decode(body)
    assert (answer["apiVersion"], answer["kind"]) == (f"apiextensions.k8s.io/{version}", "ConversionReview")
    assert answer["response"]["uid"] == "c"
    assert answer["response"]["result"] == {"status": "Success"}
    assert [item["apiVersion"] for item in answer["response"]["convertedObjects"]] == ["apps.kruise.io/v1beta1"] * 2


@pytest.mark.parametrize(
    ("desired", "document"),
    [
        pytest.param("apps.kruise.io/v1alpha1", ALPHA, id="equal versions"),
        pytest.param("apps.kruise.io/v1beta1", ALPHA | {"kind": "Widget"}, id="unknown kind"),
        pytest.param("apps.kruise.io/v2", ALPHA, id="unknown version"),
    ],
)
async def test_conversion_fails_as_a_whole(desired: str, document: dict[str, Any]) -> None:
    _, body = await Http().send("/convert", conversion("v1", desired, ALPHA, document))
    response = msgspec.json.decode(body)["response"]
    assert response["result"]["status"] == "Failure"
    assert response["result"]["message"]
    assert response["convertedObjects"] == []


def deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize("levels", [150, 900])
async def test_an_object_that_is_nested_too_deeply_is_refused(levels: int) -> None:
    request = f'{{"uid": "u-1", "object": {{"spec": {deep(levels)}}}}}'
    body = f'{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {request}}}'
    status, answer = await Http().send("/allow", body.encode())
    assert status == 200
    response = msgspec.json.decode(answer)["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 400)
    assert "deep" in response["status"]["message"]


async def test_a_stored_object_that_is_nested_too_deeply_can_be_changed_and_deleted() -> None:
    stored = f'{{"metadata": {{"labels": {{"a": "b"}}}}, "spec": {deep(300)}}}'
    request = f'{{"uid": "u-1", "operation": "DELETE", "oldObject": {stored}}}'
    body = f'{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {request}}}'
    assert decode(body.encode())[1].old_object == {"metadata": {"labels": {"a": "b"}}}


async def test_a_body_that_python_cannot_decode_is_no_review() -> None:
    for path in ("/allow", "/convert"):
        status, answer = await Http().send(path, deep(100_000).encode())
        assert status == 400
        assert b"decode" in answer


async def test_a_body_that_becomes_large_is_refused_unread() -> None:
    request = f'{{"uid": "u-1", "object": {{"spec": [{"{},".ljust(3) * 300_000}{{}}]}}}}'
    body = f'{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {request}}}'.encode()
    tracemalloc.start()
    refusal = refused_unread(body)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20
    assert refusal is not None
    assert msgspec.json.decode(refusal)["response"]["status"]["code"] == 413
    status, answer = await Http().send("/allow", body)
    assert (status, answer) == (200, refusal)


async def test_a_large_admission_may_wait_for_a_large_conversion() -> None:
    """A handler reads objects that are stored in an older version, and the apiserver has them converted first."""
    one = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"annotations": {"a": "x" * LARGE}}}
    wanted = {"uid": "c", "desiredAPIVersion": "apps.kruise.io/v1alpha1", "objects": [one]}
    conversion = msgspec.json.encode({"apiVersion": "apiextensions.k8s.io/v1", "request": wanted})

    async def reading(_: Request) -> Answer:
        status, _body = await call(app, "/convert", conversion)
        return review.ALLOWED if status == 200 else review.denied(str(status))

    app = build({"/read": reading}, convert, Metrics(CollectorRegistry()), SystemClock())
    request = {"uid": "u", "object": one}
    body = msgspec.json.encode({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
    async with asyncio.timeout(10):
        status, answer = await call(app, "/read", body)
    assert (status, msgspec.json.decode(answer)["response"]["allowed"]) == (200, True)


def test_parts_within_texts_do_not_count() -> None:
    """A ConfigMap that holds JSON is one text, however many braces and quotes are in it."""
    text = '{"a":[{}]}' * 100_000
    review = {"apiVersion": "admission.k8s.io/v1", "request": {"uid": "u-1", "object": {"data": {"a": text}}}}
    assert refused_unread(msgspec.json.encode(review)) is None


def test_every_message_is_bounded() -> None:
    answer = msgspec.json.decode(encode("v1", "u", review.error(422, "x" * 10**6)))
    assert len(answer["response"]["status"]["message"]) < 20_000
    many = aggregate([invalid(f"spec.reserveOrdinals[{one}]", "1" * 10_000, "bad") for one in range(10_000)])
    assert len(many) < 20_000
    assert "more]" in many
