"""The difference between two JSON documents as RFC 6902 operations: the answer of every mutating webhook."""

import msgspec

from flotilla_common.api.differences import differences
from flotilla_common.api.documents import Json, JsonValue


class Operation(msgspec.Struct, frozen=True):
    """One operation: add, remove or replace; `value` is meaningless for a removal."""

    op: str
    path: str
    value: JsonValue = None

    def document(self) -> Json:
        """The operation as it is sent."""
        bare: Json = {"op": self.op, "path": self.path}
        return bare if self.op == "remove" else bare | {"value": self.value}


def operations(before: JsonValue, after: JsonValue) -> list[Operation]:
    """What turns `before` into `after`, in the order of application; empty for equal documents."""
    return [Operation(one.op, "".join(map(_step, one.path)), one.value) for one in differences(before, after)]


def _step(key: str | int) -> str:
    """One step of a JSON pointer."""
    return "/" + str(key).replace("~", "~0").replace("/", "~1")
