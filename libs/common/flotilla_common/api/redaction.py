"""Redacts changes of objects: names the fields, and shows values only where they cannot be secrets.

Environments, arguments, probes and annotations often hold passwords. So strings are shown only in a list of fields that
never hold any; numbers and booleans are shown everywhere but in environments and data.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from flotilla_common.api.differences import Change, changes
from flotilla_common.api.documents import Json, member

LONGEST = 100
"""The number of characters of a value that are shown."""

MOST = 20
"""The number of changed fields that are shown; a replaced template may have hundreds."""

_DEEPEST = 12
_PLAIN = re.compile(
    r"(\.|^)(image|imagePullPolicy|type|[a-zA-Z]*[pP]olicy|partition|maxUnavailable|maxSurge|serviceAccountName|schedulerName"
    r"|priorityClassName|nodeName|serviceName|parallelism|cpu|memory|storage|ephemeral-storage|runtimeClassName)$"
    r"|^metadata\.labels\.|\.matchLabels\."
)
_HIDING = re.compile(r"\.(env|envFrom|data|stringData|args|command)\b|^metadata\.annotations\.")


def redacted_changes(before: Json, after: Json, *, values: bool = True) -> list[Json]:
    """Return the changes of spec, labels and annotations as `{"path", "from", "to"}`.

    Values that may be secrets are left out, and all values without `values`. Changes beyond MOST are summed up as
    `{"path": "and N more"}`.
    """
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
    """Return a changed field as `spec.replicas  3 → 5`, or the path alone if its values are redacted."""
    path = str(change.get("path", ""))
    if "to" not in change:
        return path
    return f"{path}  {_value(change.get('from'))} → {_value(change.get('to'))}"


def _value(value: object) -> str:
    return "-" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
