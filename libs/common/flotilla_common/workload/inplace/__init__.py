"""Updating pods where they run: what can be changed, starting it, carrying it on, knowing when it is done."""

from flotilla_common.workload.inplace.calculate import calculate
from flotilla_common.workload.inplace.completion import completed
from flotilla_common.workload.inplace.refresh import Refresh, refresh
from flotilla_common.workload.inplace.spec import UpdateSpec
from flotilla_common.workload.inplace.start import start

__all__ = ["Refresh", "UpdateSpec", "calculate", "completed", "refresh", "start"]
