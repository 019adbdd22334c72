"""What the stand-in does to documents: patches, selectors, the metadata of new objects."""

from collections.abc import Mapping

from flotilla_common.api import documents, strategic
from tests.support.rest import MERGE, STRATEGIC
from tests.testkit.documents import Json


class Conflict(Exception):
    """The write demands another version or another object."""


def patched(stored: Json, patch: Json, content_type: str, subresource: str = "") -> Json:
    """Return the object with a patch applied; one of the status changes nothing else, one of the rest no status.

    Raises Conflict for another uid or resourceVersion, ValueError for a patch of another type.
    """
    expect(stored, patch)
    if content_type not in (MERGE, STRATEGIC):
        raise ValueError(f"{content_type} is not supported")
    merged: Json = strategic.merge(stored, patch) if content_type == STRATEGIC else documents.merge(stored, patch)
    return replaced(stored, merged, subresource)


def replaced(stored: Json, wanted: Json, subresource: str = "") -> Json:
    """Return the stored object after a write of this one."""
    expect(stored, wanted)
    if subresource:
        result = stored | {"status": wanted.get("status", {})}
    else:
        result = wanted | ({"status": stored["status"]} if "status" in stored else {})
    kept = {"uid": stored["metadata"]["uid"], "creationTimestamp": stored["metadata"].get("creationTimestamp")}
    metadata = wanted["metadata"] | kept
    if stored.get("spec") != result.get("spec"):
        metadata["generation"] = stored["metadata"].get("generation", 0) + 1
    return result | {"metadata": metadata}


def expect(stored: Json, written: Json) -> None:
    """Raise Conflict unless the uid and the version that a write names are those of the stored object."""
    named = written.get("metadata") or {}
    for member in ("uid", "resourceVersion"):
        if named.get(member) not in (None, "", stored["metadata"].get(member)):
            raise Conflict(f"the object has another {member}")


def selects(selector: str, labels: Mapping[str, str]) -> bool:
    """Report whether a label selector of the forms `key=value`, `key` and `!key` selects these labels."""
    for term in filter(None, selector.split(",")):
        key, equals, value = term.partition("=")
        if equals:
            matches = labels.get(key) == value.removeprefix("=")
        else:
            matches = key.removeprefix("!") in labels
            matches = matches != key.startswith("!")
        if not matches:
            return False
    return True


def names(selector: str) -> str:
    """Return the name that a field selector demands; empty for any. Raises ValueError for another field."""
    field, _, value = selector.partition("=")
    if field not in ("", "metadata.name"):
        raise ValueError(f"field {field} is not supported")
    return value
