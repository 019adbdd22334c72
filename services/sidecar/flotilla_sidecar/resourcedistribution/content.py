"""Compares the content of Secrets and ConfigMaps: everything but metadata and status (resourcedistribution.md §5.3).

Only digests are kept of existing objects. So a large copy in a thousand namespaces costs little memory, and other
users' secrets of the same name are not kept in memory at all. The source is compared in the form that the apiserver
stores: `stringData`, an omitted type and base64 in several lines are no difference.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping

import msgspec

from flotilla_common.api.documents import Json, mapping, text
from flotilla_common.api.kinds.resourcedistribution.types import Source
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import SECRET

OPAQUE = "Opaque"
"""The default type of a Secret."""


Values = dict[str, str | None]


class Copy(Model):
    """An existing Secret or ConfigMap: its owner, and digests of its content."""

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    data: Values | None = None
    binary_data: Values | None = None
    immutable: bool | None = None
    digested: bool = False

    def __post_init__(self) -> None:
        """Replace all values by digests, and drop the metadata that may repeat them."""
        if self.digested:
            return
        bare = msgspec.structs.replace(self.metadata, labels={}, annotations={}, managed_fields=[])
        msgspec.structs.force_setattr(self, "digested", True)
        msgspec.structs.force_setattr(self, "metadata", bare)
        msgspec.structs.force_setattr(self, "data", _digested(self.data))
        msgspec.structs.force_setattr(self, "binary_data", _digested(self.binary_data))


class Part(msgspec.Struct, frozen=True):
    """The values of one member, and their digests."""

    values: Json
    digests: Mapping[str, str]


class Content(msgspec.Struct, frozen=True):
    """The desired content of a copy, in the form that the apiserver stores."""

    type: str
    data: Part
    binary_data: Part
    immutable: bool


def content_of(source: Source) -> Content:
    """Return the desired content of copies of the source."""
    document, data = source.document, mapping(source.document.get("data"))
    immutable = document.get("immutable") is True
    if source.resource != SECRET:
        plain = {key: _not_null(value) for key, value in data.items()}
        return Content("", _part(plain), _part(_binary(document.get("binaryData"))), immutable)
    written = {key: _encoded(_not_null(value)) for key, value in mapping(document.get("stringData")).items()}
    return Content(text(document.get("type")) or OPAQUE, _part(_binary(data) | written), _part({}), immutable)


def change(copy: Copy, wanted: Content) -> Json:
    """Return the merge patch that gives the copy the desired content; empty if it has it."""
    patch: Json = {
        "data": _changed(copy.data or {}, wanted.data),
        "binaryData": _changed(copy.binary_data or {}, wanted.binary_data),
    }
    patch = {member: values for member, values in patch.items() if values}
    if copy.type != wanted.type:
        patch["type"] = wanted.type or None
    if bool(copy.immutable) != wanted.immutable:
        patch["immutable"] = wanted.immutable or None
    return patch


def _changed(held: Mapping[str, str | None], wanted: Part) -> Json:
    if held == wanted.digests:
        return {}
    new = {key: value for key, value in wanted.values.items() if held.get(key) != wanted.digests[key]}
    return new | dict.fromkeys(held.keys() - wanted.values.keys())


def _part(values: Json) -> Part:
    return Part(values, {key: _digest(value) for key, value in values.items()})


def _digested(values: Values | None) -> Values:
    return {key: _digest(_not_null(value)) for key, value in (values or {}).items()}


def _digest(value: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()


def _binary(values: object) -> Json:
    """Return base64 values in canonical form. Invalid base64 is left for the apiserver to reject."""
    return {key: _canonical(_not_null(value)) for key, value in mapping(values).items()}


def _canonical(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        read = base64.b64decode(value.translate(_LINE_ENDS), validate=True)
    except (binascii.Error, ValueError):
        return value
    return base64.b64encode(read).decode()


_LINE_ENDS = dict.fromkeys(map(ord, "\r\n"))


def _encoded(value: object) -> object:
    return base64.b64encode(value.encode()).decode() if isinstance(value, str) else value


def _not_null(value: object) -> object:
    """Return an empty string for null, as the apiserver stores it."""
    return "" if value is None else value
