"""Reads a document at the paths that `changed_paths` returns."""

from typing import cast

from flotilla_common.control.plan import Json

LONGEST = 60
"""Characters of one value."""


def at(document: Json, path: str) -> str:
    """Return the value at a path, shortened if it is long; of a condition its status."""
    value: object = document
    for part in path.replace("[", ".[").split("."):
        if isinstance(value, list) and part.startswith("["):
            items = cast("list[Json]", value)
            value = next((item for item in items if part[1:-1] in (item.get("name"), item.get("type"))), None)
        elif isinstance(value, dict):
            value = cast("Json", value).get(part)
        else:
            value = None
    if isinstance(value, dict):
        value = cast("Json", value).get("status", cast("object", value))
    return str(value if value is not None else "…")[:LONGEST]
