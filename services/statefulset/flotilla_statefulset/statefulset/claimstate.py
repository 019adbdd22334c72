"""A claim against its template: is it as large as that says, and is its volume? (statefulset.md §4.13)."""

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
"""The condition of a claim whose volume has grown, and whose file system grows when a pod uses it."""

_MEMO = "statefulset_claim_state"


class Wanted(msgspec.Struct, frozen=True):
    """What a template says that claims are compared by."""

    size: str
    storage_class: str | None
    access_modes: tuple[str, ...]


class ClaimState(NamedTuple):
    """What a claim is, compared with its template."""

    compatible: bool  # as the template says, or larger
    only_size_differs: bool
    ready: bool  # it has the capacity that it asks for
    completed: bool  # nothing is left to do but, perhaps, what its next pod brings about


def wanted_of(template: ClaimTemplate) -> Wanted:
    """What claims of the template should be; the same value as long as the template stays."""
    return _read(msgspec.json.encode(template.document.get("spec")))


def claim_state(claim: PersistentVolumeClaim, wanted: Wanted) -> ClaimState:
    """Compare; remembered with the claim."""
    memo: tuple[Wanted, ClaimState] | None = claim.memo.get(_MEMO)
    if memo is None or memo[0] is not wanted:
        memo = claim.memo[_MEMO] = (wanted, _compare(claim, wanted))
    return memo[1]


def _compare(claim: PersistentVolumeClaim, wanted: Wanted) -> ClaimState:
    asked = str(claim.spec.resources.requests.get(STORAGE, "0"))
    classes = (claim.spec.storage_class_name, wanted.storage_class)
    same = None in classes or classes[0] == classes[1]
    same = same and tuple(claim.spec.access_modes) == wanted.access_modes
    compatible = same and _reaches(asked, wanted.size)
    ready = _reaches(str(claim.status.capacity.get(STORAGE, "0")), asked)
    pending = any(one.type == NODE_RESIZES and one.status == "True" for one in claim.status.conditions)
    return ClaimState(compatible, same, ready, compatible and (ready or pending))


@lru_cache(maxsize=1024)
def _read(spec: bytes) -> Wanted:
    document = mapping(read_json(spec, object))
    storage_class = document.get("storageClassName")
    return Wanted(
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
