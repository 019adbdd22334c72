"""Whether one revision can become another in a running pod, and how (common.md §9.2)."""

from flotilla_common.api.core import ControllerRevision
from flotilla_common.gates import Gates
from flotilla_common.workload.inplace.spec import UpdateSpec


def calculate(
    old: ControllerRevision, new: ControllerRevision, *, gates: Gates, ignore_claim_hash: bool = False
) -> UpdateSpec | None:
    """The update spec, or None when the change is not in-place. Cached per pair of revisions."""
    raise NotImplementedError
