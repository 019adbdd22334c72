"""Reads fields of raw documents. A field that is absent, null or of another type reads as empty."""

from collections.abc import Iterator

from flotilla_common.api.documents import Json, mappings, member, text


def number(document: Json, *path: str, default: int = 0) -> int:
    """Return the integer at the path, else the default."""
    value = member(document, *path[:-1]).get(path[-1])
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def word(document: Json, *path: str) -> str:
    """Return the string or number at the path as text."""
    value = member(document, *path[:-1]).get(path[-1])
    return str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""


def flag(document: Json, *path: str) -> bool:
    """Report whether the field at the path is true."""
    return member(document, *path[:-1]).get(path[-1]) is True


def images_of(template: Json) -> tuple[str, ...]:
    """Return the images of a pod template, each once."""
    spec = member(template, "spec")
    containers = (*mappings(spec.get("containers")), *mappings(spec.get("initContainers")))
    return tuple(dict.fromkeys(image for one in containers if (image := text(one.get("image")))))


def conditions(status: Json) -> Iterator[tuple[str, str, str, str]]:
    """Yield type, status, reason and message of each condition."""
    for one in mappings(status.get("conditions")):
        yield text(one.get("type")), text(one.get("status")), text(one.get("reason")), text(one.get("message"))
