"""One namespace per scenario, on the shared control plane."""

from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from tests.testkit.planes import namespace

space = namespace(STATEFUL_SET)
