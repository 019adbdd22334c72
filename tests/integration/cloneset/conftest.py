"""One namespace per scenario, on the shared control plane."""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from tests.testkit.planes import namespace

space = namespace(CLONE_SET)
