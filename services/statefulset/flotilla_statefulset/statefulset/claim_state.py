"""Compares a claim with its template, and its volume with the claim (statefulset.md §4.13)."""

from functools import lru_cache
from typing import NamedTuple

import msgspec

from flotilla_common.api import quantity
from flotilla_common.api.core import PersistentVolumeClaim
from flotilla_common.api.documents import mapping, member, sequence
from flotilla_common.api.jsontext import read_json
from flotilla_common.workload.claims import ClaimTemplate

STORAGE = "storage"

NODE_RESIZES = "FileSystemResizePending"
"""The condition of a claim whose volume has grown and whose file system grows when a pod mounts it."""

_MEMO = "statefulset_claim_state"


class DesiredClaim(msgspec.Struct, frozen=True):
    """The fields of a template that claims are compared by."""

    size: str
    storage_class: str | None
    access_modes: tuple[str, ...]


class ClaimState(NamedTuple):
    """The result of comparing a claim with its template."""

    compatible: bool  # equal to the template, or larger
    only_size_differs: bool
    ready: bool  # its capacity is what it requests
    completed: bool  # nothing is left to do, except perhaps a file system resize by its next pod


def desired_claim(template: ClaimTemplate) -> DesiredClaim:
    """Return the comparable fields of the template; the same object as long as the template stays."""
    return _read(msgspec.json.encode(template.document.get("spec")))


def claim_state(claim: PersistentVolumeClaim, wanted: DesiredClaim) -> ClaimState:
    """Compare a claim with its template. The result is cached on the claim."""
    memo: tuple[DesiredClaim, ClaimState] | None = claim.memo.get(_MEMO)
    if memo is None or memo[0] is not wanted:
        memo = claim.memo[_MEMO] = (wanted, _compare(claim, wanted))
    return memo[1]


def _compare(claim: PersistentVolumeClaim, wanted: DesiredClaim) -> ClaimState:
    asked = str(claim.spec.resources.requests.get(STORAGE, "0"))
    classes = (claim.spec.storage_class_name, wanted.storage_class)
    same = None in classes or classes[0] == classes[1]
    same = same and tuple(claim.spec.access_modes) == wanted.access_modes
    compatible = same and _reaches(asked, wanted.size)
    ready = _reaches(str(claim.status.capacity.get(STORAGE, "0")), asked)
    pending = (NODE_RESIZES, "True") in {(condition.type, condition.status) for condition in claim.status.conditions}
    return ClaimState(compatible, same, ready, compatible and (ready or pending))


@lru_cache(maxsize=1024)
def _read(spec: bytes) -> DesiredClaim:
    document = mapping(read_json(spec, object))
    storage_class = document.get("storageClassName")
    return DesiredClaim(
        size=str(member(document, "resources", "requests").get(STORAGE, "0")),
        storage_class=str(storage_class) if storage_class is not None else None,
        access_modes=tuple(str(mode) for mode in sequence(document.get("accessModes"))),
    )


@lru_cache(maxsize=1024)
def _reaches(size: str, wanted: str) -> bool:
    try:
        return quantity.parse(size) >= quantity.parse(wanted)
    except ValueError:
        return False
