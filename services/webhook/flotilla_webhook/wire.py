"""AdmissionReview on the wire: raw bytes in, raw bytes out, v1 and v1beta1 alike (webhooks.md §1)."""

import base64
from collections.abc import Awaitable, Callable

import msgspec

from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.documents import Json
from flotilla_common.api.jsontext import without_depths

Handler = Callable[[Request], Awaitable[Answer]]
"""Answers the requests of one path."""

VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    request: Request


_decoder = msgspec.json.Decoder(_Review)


def decode(body: bytes) -> tuple[str, Request]:
    """The review's version and its request. What is stored and nested too deeply counts as absent, so that it can be
    changed and deleted. Raises ValueError for anything that is no AdmissionReview of ours."""
    review = _decoder.decode(body)
    if review.api_version not in VERSIONS:
        raise ValueError(f"unsupported AdmissionReview version {review.api_version!r}")
    request = review.request
    if request.old_object is not None:
        request = msgspec.structs.replace(request, old_object=without_depths(request.old_object))
    return review.api_version, request


def encode(version: str, uid: str, answer: Answer) -> bytes:
    """The review that answers the request with this uid, in its own version."""
    response: Json = {"uid": uid, "allowed": answer.allowed}
    if answer.warnings:
        response["warnings"] = list(answer.warnings)
    if answer.patch:
        operations = msgspec.json.encode([operation.document() for operation in answer.patch])
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(operations).decode()}
    if not answer.allowed:
        status: Json = {"code": answer.code, "message": answer.message}
        response["status"] = status | ({"reason": answer.reason} if answer.reason else {})
    return msgspec.json.encode({"apiVersion": version, "kind": "AdmissionReview", "response": response})
