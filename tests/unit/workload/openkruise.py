"""Objects of OpenKruise 1.9 from a cluster (golden/README.md), as documents and as typed objects."""

from pathlib import Path

import msgspec

from flotilla_common.api.core import ControllerRevision
from tests.testkit.documents import Json

_GOLDEN = Path(__file__).parent / "golden"


def documents(file: str) -> list[Json]:
    """Return all objects of a file, as they were read back."""
    return msgspec.json.decode((_GOLDEN / f"{file}.json").read_bytes())


def cloneset(name: str) -> Json:
    """Return the stored CloneSet."""
    return next(one for one in documents("clonesets") if one["metadata"]["name"] == name)


def revisions(kind: str, owner: str = "") -> list[Json]:
    """Return the ControllerRevisions of one kind, or of one object of that kind."""
    found: list[Json] = []
    for one in documents("controllerrevisions"):
        (reference,) = one["metadata"]["ownerReferences"]
        if reference["kind"] == kind and owner in ("", reference["name"]):
            found.append(one)
    return found


def decoded(revision: Json) -> ControllerRevision:
    """Return the revision as in our mirror."""
    return msgspec.json.decode(msgspec.json.encode(revision), type=ControllerRevision)


def encoded(document: Json) -> bytes:
    """Return a document as it is sent."""
    return msgspec.json.encode(document)
