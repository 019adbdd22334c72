"""What an object looks like on the bus: the apiserver's JSON without managedFields, and the headers that go with it.

Only the outermost members and those of metadata are told apart; everything else is carried over as bytes (4 µs for a
3 KB pod on the development machine).
"""

import msgspec

from flotilla_common.api.meta import FieldOwner
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.kube.reflector import HeadMeta
from flotilla_common.tracing.context import change

_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_owners = msgspec.json.Decoder(list[FieldOwner]).decode
_APPLIED = b'"operation":"Apply"'
_encode = msgspec.json.Encoder().encode


class Content:
    """Makes the bodies and headers of one resource's messages."""

    def __init__(self, resource: Resource, max_payload: int, *, withheld: bool = False) -> None:
        """`withheld`: the objects may hold secrets, so they are only named."""
        self._type = {
            "apiVersion": msgspec.Raw(_encode(resource.api_version)),
            "kind": msgspec.Raw(_encode(resource.kind)),
        }
        self._max_payload = max_payload
        self._withheld = withheld

    def body(self, item: msgspec.Raw) -> bytes:
        """The object without the bulk of managedFields. LIST items of built-in kinds get their apiVersion and kind."""
        members = _decode_members(item)
        metadata = _decode_members(members["metadata"])
        owners = metadata.pop("managedFields", None)
        if owners is not None:
            if _APPLIED in bytes(owners):  # somebody's server-side apply: who, but not which fields
                metadata["managedFields"] = msgspec.Raw(_encode(_decode_owners(owners)))
            members["metadata"] = msgspec.Raw(_encode(metadata))
        return _encode(self._type | members)

    def message(self, op: str, epoch: str, head: HeadMeta, item: msgspec.Raw) -> tuple[bytes, dict[str, str]]:
        """Body and headers. A deleted object is its identity: followers need no more, and the bus keeps as many of them
        as rollouts leave behind in five minutes. So is one beyond the bus's payload, or withheld, to be fetched."""
        headers = self.headers(op, epoch, head)
        if op == subjects.DELETED:
            return self.identity(head), headers
        if self._withheld:
            return self.identity(head), headers | {subjects.WITHHELD: "true"}
        body = self.body(item)
        if len(body) + sum(len(name) + len(value) + 4 for name, value in headers.items()) > self._max_payload:
            headers[subjects.OVERSIZE] = "true"
            body = self.identity(head)
        return body, headers

    def headers(self, op: str, epoch: str, head: HeadMeta) -> dict[str, str]:
        """The trace is that of the change which made the generation, the span is the version."""
        headers = {
            subjects.OP: op,
            subjects.RV: head.resource_version,
            subjects.UID: head.uid,
            subjects.EPOCH: epoch,
        }
        if head.uid:
            span = change(head.uid, head.generation).version(head.resource_version)
            headers[subjects.TRACEPARENT] = span.traceparent
        return headers

    def identity(self, head: HeadMeta) -> bytes:
        """The least that says which object is meant."""
        metadata = {
            "name": head.name,
            "namespace": head.namespace,
            "uid": head.uid,
            "resourceVersion": head.resource_version,
        }
        return _encode(self._type | {"metadata": metadata})
