"""The apiserver's refusals, with the codes, reasons, texts and details that the real one gives.

Clients decide by code and reason; the texts reach users through events and conditions, so they are the same too.
"""

from collections.abc import Sequence

import msgspec

from flotilla_common.control.plan import Json
from flotilla_common.kube.interface import ApiError

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class FieldFault(msgspec.Struct, frozen=True):
    """One thing that is wrong with an object."""

    type: str  # FieldValueRequired, FieldValueInvalid, FieldValueForbidden, …
    field: str
    message: str  # without the field


def refusal(code: int, reason: str, message: str, details: Json | None = None, retry_after: float = 0) -> ApiError:
    """Any refusal, with the Status that carries it."""
    status: Json = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details:
        status["details"] = details
    status["code"] = code
    return ApiError(code, reason, message, retry_after, msgspec.json.encode(status))


def not_found(where: str, name: str) -> ApiError:
    """`where` is the plural, with its group after a dot."""
    return refusal(404, "NotFound", f'{where} "{name}" not found', _details(where, name))


def unknown_resource() -> ApiError:
    """Return the error for a resource that is not served, because its CRD is missing: a page without a Status."""
    return ApiError(404, "", "404 page not found", body=b"404 page not found\n")


def already_exists(where: str, name: str) -> ApiError:
    return refusal(409, "AlreadyExists", f'{where} "{name}" already exists', _details(where, name))


def conflict(where: str, name: str, why: str = MODIFIED) -> ApiError:
    message = f'Operation cannot be fulfilled on {where} "{name}": {why}'
    return refusal(409, "Conflict", message, _details(where, name))


def invalid(kind: str, group: str, name: str, faults: Sequence[FieldFault]) -> ApiError:
    """All faults of an object at once."""
    texts = [f"{fault.field}: {fault.message}" for fault in faults]
    told = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    qualified = f"{kind}.{group}" if group else kind
    details: Json = {"name": name, "group": group, "kind": kind}
    details["causes"] = [{"reason": f.type, "message": f.message, "field": f.field} for f in faults]
    return refusal(422, "Invalid", f'{qualified} "{name}" is invalid: {told}', details)


def no_streams() -> ApiError:
    """Without the feature gate WatchList."""
    why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    return invalid("ListOptions", "meta.k8s.io", "", [forbidden_value("sendInitialEvents", why)])


def forbidden(where: str, name: str, why: str, causes: Sequence[Json] = ()) -> ApiError:
    details = _details(where, name) | ({"causes": list(causes)} if causes else {})
    return refusal(403, "Forbidden", f'{where} "{name}" is forbidden: {why}', details)


def bad_request(message: str) -> ApiError:
    return refusal(400, "BadRequest", message)


def internal(message: str) -> ApiError:
    return refusal(500, "InternalError", f"Internal error occurred: {message}")


def expired(message: str) -> ApiError:
    """Return the error for history that was compacted."""
    return refusal(410, "Expired", message)


def unsupported_patch(content_type: str, supported: Sequence[str]) -> ApiError:
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(supported)
    return refusal(415, "UnsupportedMediaType", message, {"contentType": content_type})


def required(field: str, message: str = "") -> FieldFault:
    return FieldFault("FieldValueRequired", field, f"Required value{': ' + message if message else ''}")


def invalid_value(field: str, value: object, message: str) -> FieldFault:
    told = msgspec.json.encode(value).decode() if value is not None else "null"
    return FieldFault("FieldValueInvalid", field, f"Invalid value: {told}: {message}")


def forbidden_value(field: str, message: str) -> FieldFault:
    return FieldFault("FieldValueForbidden", field, f"Forbidden: {message}")


def _details(where: str, name: str) -> Json:
    plural, _, group = where.partition(".")
    return {"name": name, "group": group, "kind": plural} if group else {"name": name, "kind": plural}
