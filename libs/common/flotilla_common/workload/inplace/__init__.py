"""In-place updates of pods: which changes are possible, starting, continuing and completing them."""

from flotilla_common.workload.inplace.calculate import calculate
from flotilla_common.workload.inplace.completion import completed
from flotilla_common.workload.inplace.refresh import refresh
from flotilla_common.workload.inplace.state import UpdateSpec
from flotilla_common.workload.inplace.update import InPlaceContext, UpdateRefused, start, update_in_place

__all__ = [
    "InPlaceContext",
    "UpdateRefused",
    "UpdateSpec",
    "calculate",
    "completed",
    "refresh",
    "start",
    "update_in_place",
]
