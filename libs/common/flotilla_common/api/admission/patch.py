"""The difference between two JSON documents as RFC 6902 operations.

Only add, remove and replace are used, the smallest value that differs is addressed, and arrays are compared by
position. Besides being the answer of every mutating webhook, the operations are what "only images may change" is judged
by.
"""

from collections.abc import Iterator
from typing import cast

import msgspec

from flotilla_common.api.documents import Json, JsonValue


class Operation(msgspec.Struct, frozen=True):
    """One operation; `value` is meaningless for a removal."""

    op: str
    path: str
    value: JsonValue = None

    def document(self) -> Json:
        """The operation as it is sent."""
        bare: Json = {"op": self.op, "path": self.path}
        return bare if self.op == "remove" else bare | {"value": self.value}


def operations(before: JsonValue, after: JsonValue) -> list[Operation]:
    """What turns `before` into `after`, in the order of application; empty for equal documents."""
    return list(_compare("", before, after))


def _compare(path: str, before: JsonValue, after: JsonValue) -> Iterator[Operation]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _objects(path, before, after)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _arrays(path, cast("list[JsonValue]", before), cast("list[JsonValue]", after))
    elif not _same(before, after):
        yield Operation("replace", path, after)


def _objects(path: str, before: Json, after: Json) -> Iterator[Operation]:
    for key in sorted(before.keys() | after.keys()):
        here = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in after:
            yield Operation("remove", here)
        elif key not in before:
            yield Operation("add", here, after[key])
        else:
            yield from _compare(here, before[key], after[key])


def _arrays(path: str, before: list[JsonValue], after: list[JsonValue]) -> Iterator[Operation]:
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        yield from _compare(f"{path}/{index}", old, new)
    for index in range(len(before), len(after)):
        yield Operation("add", f"{path}/{index}", after[index])
    for index in reversed(range(len(after), len(before))):
        yield Operation("remove", f"{path}/{index}")


def _same(before: JsonValue, after: JsonValue) -> bool:
    """Equality of scalars that does not take true for 1."""
    return before == after and isinstance(before, bool) == isinstance(after, bool)
