"""The rules of metadata that hold for all kinds: what is stored, what an update may change, when generations rise."""

from flotilla_common.api.documents import Json, mappings

_SYSTEM = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
"""What no update changes."""


def cleaned(metadata: Json) -> Json:
    """Return metadata as it is stored: no empty members, no managedFields (owners of fields are not tracked)."""
    return {key: value for key, value in metadata.items() if value not in ({}, [], "", None) and key != "managedFields"}


def kept(new: Json, old: Json) -> Json:
    """Return the metadata of an update with everything that updates cannot change."""
    changed = {key: value for key, value in cleaned(new).items() if key not in _SYSTEM}
    return changed | {key: old[key] for key in _SYSTEM if key in old}


def spec_of(document: Json) -> Json:
    """Return what an object asks for: whatever is neither metadata nor status."""
    return {key: value for key, value in document.items() if key not in ("metadata", "status")}


def owners_of(document: Json | None) -> list[Json]:
    """Return the owner references of an object."""
    return [] if document is None else mappings(document["metadata"].get("ownerReferences"))
