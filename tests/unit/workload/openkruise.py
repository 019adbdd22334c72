"""Objects of OpenKruise 1.9 from a cluster (golden/README.md), as documents and as typed objects."""

from pathlib import Path
from typing import TypeVar

import msgspec

from flotilla_common.api.core import ControllerRevision
from flotilla_common.model.store import owners_of
from tests.testkit.documents import Json, decoded

T = TypeVar("T")
_GOLDEN = Path(__file__).parent / "golden"


def documents(file: str) -> list[Json]:
    """Return all objects of a file, as they were read back."""
    return msgspec.json.decode((_GOLDEN / f"{file}.json").read_bytes())


def stored(file: str, name: str = "") -> Json:
    """Return the only object of a file, or the one with this name."""
    (found,) = (one for one in documents(file) if name in ("", one["metadata"]["name"]))
    return found


def owned(file: str, owner: str, kind: type[T]) -> list[T]:
    """Return the objects of a file that have an owner of this name."""
    found = [one for one in documents(file) if owner in [ref["name"] for ref in owners_of(one)]]
    return decoded(found, list[kind])


def with_image(document: Json, value: str) -> Json:
    """Return the workload with another image, as its users give it one."""
    document["spec"]["template"]["spec"]["containers"][0]["image"] = value
    document["metadata"]["generation"] += 1
    return document


def cloneset(name: str) -> Json:
    """Return the stored CloneSet."""
    return stored("clonesets", name)


def revisions(kind: str, owner: str = "") -> list[Json]:
    """Return the ControllerRevisions of one kind, or of one object of that kind."""
    found: list[Json] = []
    for one in documents("controllerrevisions"):
        (reference,) = owners_of(one)
        if reference["kind"] == kind and owner in ("", reference["name"]):
            found.append(one)
    return found


def stored_revisions(kind: str, owner: str = "") -> list[ControllerRevision]:
    """Return the same as in our mirror."""
    return decoded(revisions(kind, owner), list[ControllerRevision])


def encoded(document: Json) -> bytes:
    """Return a document as it is sent."""
    return msgspec.json.encode(document)
