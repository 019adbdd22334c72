"""One namespace per scenario, on the shared control plane.

A file that names flags of the services in `FLAGS` has a control plane and services of its own.
"""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from tests.testkit.planes import namespace, own_fleet

own = own_fleet()
space = namespace(CLONE_SET)
