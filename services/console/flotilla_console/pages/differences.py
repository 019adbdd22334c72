"""Differences of two revisions, as YAML."""

import difflib
from functools import lru_cache

import msgspec
import yaml

from flotilla_common.api.documents import Json, member
from flotilla_console.blocks.types import Diff, DiffLine
from flotilla_console.model.objects import Template, body_of

CONTEXT = 3
"""Equal lines that are shown around a difference."""

MOST_LINES = 2000
"""Lines of a template that are compared: the time grows with their square."""


def content(template: Template) -> Json:
    """Return what a revision or a ReplicaSet keeps: a pod template, or the sidecars of a SidecarSet."""
    spec = member(body_of(template, "data"), "spec")
    return member(spec, "template") or spec or member(body_of(template, "spec"), "template")


def difference(older: Template, newer: Template) -> Diff:
    """Return the difference between the templates of two revisions."""
    title = f"From {older.metadata.name} to {newer.metadata.name}"
    lines = _compared(msgspec.json.encode(content(older)), msgspec.json.encode(content(newer)))
    return Diff(title, lines)


@lru_cache(maxsize=128)  # a live page is built again whenever a pod changes
def _compared(older: bytes, newer: bytes) -> tuple[DiffLine, ...]:
    before, after = _lines(older), _lines(newer)
    if max(len(before), len(after)) > MOST_LINES:
        return (DiffLine(" ", f"a template has more than {MOST_LINES} lines: they are not compared"),)
    found: list[DiffLine] = []
    for line in difflib.unified_diff(before, after, n=CONTEXT, lineterm=""):
        if line.startswith(("---", "+++")) and len(found) == 0:
            continue
        if line.startswith("@@"):
            found += [DiffLine(" ", "…")] if found else []
        elif line[:1] == "+":
            found.append(DiffLine("+", line[1:]))
        elif line[:1] == "-":
            found.append(DiffLine("-", line[1:]))
        else:
            found.append(DiffLine(" ", line[1:]))
    return tuple(found) or (DiffLine(" ", "the templates are equal"),)


def _lines(data: bytes) -> list[str]:
    return yaml.safe_dump(msgspec.json.decode(data), sort_keys=False, allow_unicode=True, width=10_000).splitlines()
