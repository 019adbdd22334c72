"""One namespace per scenario, on the shared control plane."""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.workloadspread.types import WORKLOAD_SPREAD
from tests.testkit.planes import namespace

space = namespace(CLONE_SET, WORKLOAD_SPREAD, delete=True)
