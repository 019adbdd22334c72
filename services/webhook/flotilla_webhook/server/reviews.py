"""Decodes and encodes AdmissionReviews, v1 and v1beta1 alike (webhooks.md §1), and answers ConversionReviews (§6)."""

import base64
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import islice

import msgspec

from flotilla_common.api.admission.review import Answer, Request, error
from flotilla_common.api.documents import Json, text
from flotilla_common.api.jsontext import without_depths
from flotilla_common.api.kinds import catalogue

Handler = Callable[[Request], Awaitable[Answer]]
"""Answers the requests of one path."""

VERSIONS = ("admission.k8s.io/v1", "admission.k8s.io/v1beta1")


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    request: Request


class _Identity(msgspec.Struct, frozen=True):
    uid: str


class _Head(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    request: _Identity


_decoder = msgspec.json.Decoder(_Review)
_head_decoder = msgspec.json.Decoder(_Head)

MAX_PARTS = 30_000
"""Limit of objects and arrays in a body, not counting those inside strings.

Decoded, an empty one takes 35 times as much as its two bytes, and a rule may visit each of them: a body is also limited
by the memory and time that it costs. A large workload has a few thousand.
"""

_QUOTE = ord('"')
_PART_OR_TEXT = re.compile(rb'[{\[]|"(?:[^"\\]++|\\.)*+"', re.DOTALL)

LONGEST_MESSAGE = 16_384
"""Length limit of a refusal, from any source."""


def decode(body: bytes) -> tuple[str, Request]:
    """Return the review's version and its request. Raises ValueError for anything else than an AdmissionReview."""
    review = _decoder.decode(body)
    if review.api_version not in VERSIONS:
        raise ValueError(f"unsupported AdmissionReview version {review.api_version!r}")
    request = review.request
    # A stored object that is nested too deeply counts as absent, so that it can be changed and deleted.
    if request.old_object is not None:
        request = msgspec.structs.replace(request, old_object=without_depths(request.old_object))
    return review.api_version, request


def refused_unread(body: bytes) -> bytes | None:
    """Return the refusal of a body that would take too much memory, or None. Reads nothing but the uid.

    Raises ValueError for anything else than an AdmissionReview.
    """
    if not _has_too_many_parts(body):
        return None
    head = _head_decoder.decode(body)
    why = f"the object has too many parts: more than {MAX_PARTS} objects and arrays"
    return encode(head.api_version, head.request.uid, error(413, f"{why}, with those of an update counted twice"))


def _has_too_many_parts(body: bytes) -> bool:
    if body.count(b"{") + body.count(b"[") <= MAX_PARTS:
        return False  # the usual case
    parts = (True for found in _PART_OR_TEXT.finditer(body) if found[0][0] != _QUOTE)
    return next(islice(parts, MAX_PARTS, None), False)


def encode(version: str, uid: str, answer: Answer) -> bytes:
    """Return the review that answers the request with this uid, in its own version."""
    response: Json = {"uid": uid, "allowed": answer.allowed}
    if answer.warnings:
        response["warnings"] = [shortened(warning) for warning in answer.warnings]
    if answer.patch:
        operations = msgspec.json.encode([operation.document() for operation in answer.patch])
        response |= {"patchType": "JSONPatch", "patch": base64.b64encode(operations).decode()}
    if not answer.allowed:
        status: Json = {"code": answer.code, "message": shortened(answer.message)}
        response["status"] = status | ({"reason": answer.reason} if answer.reason else {})
    return msgspec.json.encode({"apiVersion": version, "kind": "AdmissionReview", "response": response})


def shortened(message: str) -> str:
    """Return the message, or the beginning of a long one."""
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"


_CONVERSION_VERSIONS = ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")


class _ConversionRequest(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[Json] = []


class _ConversionReview(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    request: _ConversionRequest


_conversion_decoder = msgspec.json.Decoder(_ConversionReview)


def convert(body: bytes) -> bytes:
    """Return the answer to a ConversionReview. Raises ValueError for other documents."""
    review = _conversion_decoder.decode(body)
    if review.api_version not in _CONVERSION_VERSIONS:
        raise ValueError(f"unsupported ConversionReview version {review.api_version!r}")
    request = review.request
    response: Json = {"uid": request.uid}
    try:
        response["convertedObjects"] = [_converted(item, request.desired_api_version) for item in request.objects]
        response["result"] = {"status": "Success"}
    except ValueError as fault:
        response |= {"convertedObjects": [], "result": {"status": "Failure", "message": shortened(str(fault))}}
    return msgspec.json.encode({"apiVersion": review.api_version, "kind": "ConversionReview", "response": response})


def _converted(document: Json, version: str) -> Json:
    source, kind = text(document.get("apiVersion")), text(document.get("kind"))
    converter = None
    with suppress(LookupError):
        converter = catalogue.named(source.partition("/")[0], kind).rules().convert
    if converter is None:
        raise ValueError(f"{source}, Kind={kind} is not a kind that can be converted")
    if source == version:
        raise ValueError(f"conversion of {kind} from {source} to itself was requested")
    return converter(document, version)
