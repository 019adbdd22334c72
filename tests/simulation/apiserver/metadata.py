"""Validation of metadata, the same for all kinds."""

import re

from flotilla_common.api.documents import mapping, mappings, sequence, strings
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.errors import FieldFault, forbidden_value, invalid_value

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_NAME_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_KEY_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_STANDARD_FINALIZERS = ("orphan", "foregroundDeletion", "kubernetes")


def create_faults(metadata: Json) -> list[FieldFault]:
    """Return the faults of a new object's metadata."""
    name = str(metadata["name"])
    valid = len(name) <= 253 and _NAME.fullmatch(name)
    return ([] if valid else [invalid_value("metadata.name", name, _NAME_TEXT)]) + _faults(metadata, {})


def update_faults(metadata: Json, old: Json, asked: Json) -> list[FieldFault]:
    """Return the faults of an update's metadata. `asked`: as the client sent it."""
    immutable = [key for key in ("uid", "deletionTimestamp") if asked.get(key) and asked[key] != old.get(key)]
    faults = [invalid_value(f"metadata.{key}", asked[key], "field is immutable") for key in immutable]
    if "deletionTimestamp" in old:
        fresh = sorted(set(metadata.get("finalizers", ())) - set(old.get("finalizers", ())))
        if fresh:
            told = "[]string{" + ", ".join(f'"{name}"' for name in fresh) + "}"
            why = f"no new finalizers can be added if the object is being deleted, found new finalizers {told}"
            faults.append(forbidden_value("metadata.finalizers", why))
    return faults + _faults(metadata, old)


def _faults(metadata: Json, old: Json) -> list[FieldFault]:
    """Return the faults of members that are not shared with a validated version."""
    found: list[FieldFault] = []
    for member, check in _CHECKS.items():
        if metadata.get(member) is not old.get(member):
            found += check(metadata.get(member))
    return found


def _label_faults(labels: object) -> list[FieldFault]:
    found: list[FieldFault] = []
    for key, value in strings(labels).items():
        if not _KEY.fullmatch(key):
            found.append(invalid_value("metadata.labels", key, _KEY_TEXT))
        if not _VALUE.fullmatch(value):
            found.append(invalid_value("metadata.labels", value, _VALUE_TEXT))
    return found


def _annotation_faults(annotations: object) -> list[FieldFault]:
    wrong = [key for key in mapping(annotations) if not _KEY.fullmatch(key.lower())]
    return [invalid_value("metadata.annotations", key, _KEY_TEXT) for key in wrong]


def _finalizer_faults(finalizers: object) -> list[FieldFault]:
    found: list[FieldFault] = []
    for index, name in enumerate(map(str, sequence(finalizers))):
        if not _KEY.fullmatch(name):
            found.append(invalid_value("metadata.finalizers", name, _KEY_TEXT))
        elif "/" not in name and name not in _STANDARD_FINALIZERS:
            why = "name is neither a standard finalizer name nor is it fully qualified"
            found.append(invalid_value(f"metadata.finalizers[{index}]", name, why))
    return found


def _owner_faults(references: object) -> list[FieldFault]:
    found: list[FieldFault] = []
    owners = mappings(references)
    controllers = [owner for owner in owners if owner.get("controller") is True]
    if len(controllers) > 1:
        why = 'Only one reference can have Controller set to true. Found "true" in references for '
        why += " and ".join(f"{owner.get('kind')}/{owner.get('name')}" for owner in controllers[:2])
        found.append(invalid_value("metadata.ownerReferences", owners, why))
    for owner in owners:
        empty = [name for name in ("apiVersion", "kind", "name", "uid") if not owner.get(name)]
        found += [invalid_value(f"metadata.ownerReferences.{name}", "", "must not be empty") for name in empty]
    return found


_CHECKS = {
    "labels": _label_faults,
    "annotations": _annotation_faults,
    "finalizers": _finalizer_faults,
    "ownerReferences": _owner_faults,
}
