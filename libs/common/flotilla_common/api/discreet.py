"""What of a change may be told: which field, and its values only where no secret can be in them.

Environments, arguments, probes and annotations hold passwords often enough, so strings are told by name: those in a
field of which it is known that it holds none. Numbers and switches are told, but not in environments and data.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from flotilla_common.api.differences import Change, changes
from flotilla_common.api.documents import Json, member

LONGEST = 100
"""Characters of a value that are told."""

MOST = 20
"""Fields of a change that are told; a template that is replaced may have hundreds."""

_DEEPEST = 12
_PLAIN = re.compile(
    r"(\.|^)(image|imagePullPolicy|type|[a-zA-Z]*[pP]olicy|partition|maxUnavailable|maxSurge|serviceAccountName|schedulerName"
    r"|priorityClassName|nodeName|serviceName|parallelism|cpu|memory|storage|ephemeral-storage|runtimeClassName)$"
    r"|^metadata\.labels\.|\.matchLabels\."
)
_HIDING = re.compile(r"\.(env|envFrom|data|stringData|args|command)\b|^metadata\.annotations\.")


def told_changes(before: Json, after: Json, *, values: bool = True) -> list[Json]:
    """The changes of spec, labels and annotations as `{"path", "from", "to"}`; a value that may not be told is left
    out. Without `values` none is told. What is beyond the most is `{"path": "and N more"}`."""
    found = list(_wishes(before, after))
    told: list[Json] = [_told(change, values=values) for change in found[:MOST]]
    return told + ([{"path": f"and {len(found) - MOST} more"}] if len(found) > MOST else [])


def _wishes(before: Json, after: Json) -> Iterator[Change]:
    yield from changes({"spec": before.get("spec", {})}, {"spec": after.get("spec", {})}, _DEEPEST)
    for part in ("labels", "annotations"):
        old, new = member(before, "metadata", part), member(after, "metadata", part)
        yield from changes({"metadata": {part: old}}, {"metadata": {part: new}}, 3)


def _told(change: Change, *, values: bool) -> Json:
    shown: Json = {"path": change.path}
    if values and _tellable(change.path, change.before) and _tellable(change.path, change.after):
        shown |= {"from": _cut(change.before), "to": _cut(change.after)}
    return shown


def _tellable(path: str, value: Any) -> bool:
    if _HIDING.search(path):
        return False
    return value is None or isinstance(value, bool | int | float) or (isinstance(value, str) and _plain(path))


def _plain(path: str) -> bool:
    return _PLAIN.search(path) is not None


def _cut(value: Any) -> Any:
    return f"{value[: LONGEST - 1]}…" if isinstance(value, str) and len(value) > LONGEST else value


def change_text(change: Mapping[str, Any]) -> str:
    """One changed field: `spec.replicas  3 → 5`, or the field alone where its values are not told."""
    path = str(change.get("path", ""))
    if "to" not in change:
        return path
    return f"{path}  {_value(change.get('from'))} → {_value(change.get('to'))}"


def _value(value: object) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
