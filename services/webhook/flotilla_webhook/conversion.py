"""Converts the objects of a ConversionReview into the wanted version, all or none (webhooks.md §6)."""

from contextlib import suppress

import msgspec

from flotilla_common.api.documents import Json, text
from flotilla_common.api.kinds import catalogue
from flotilla_webhook.wire import bounded

_VERSIONS = ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    uid: str
    desired_api_version: str = msgspec.field(name="desiredAPIVersion")
    objects: list[Json] = []


class _Review(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    request: _Request


_decoder = msgspec.json.Decoder(_Review)


def convert(body: bytes) -> bytes:
    """Return the answer to a ConversionReview. Raises ValueError for other documents."""
    review = _decoder.decode(body)
    if review.api_version not in _VERSIONS:
        raise ValueError(f"unsupported ConversionReview version {review.api_version!r}")
    request = review.request
    response: Json = {"uid": request.uid}
    try:
        response["convertedObjects"] = [_converted(item, request.desired_api_version) for item in request.objects]
        response["result"] = {"status": "Success"}
    except ValueError as fault:
        response |= {"convertedObjects": [], "result": {"status": "Failure", "message": bounded(str(fault))}}
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
