"""One namespace per scenario, on the shared control plane.

A file that names flags of the services in `FLAGS` has a control plane and services of its own.
"""

from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from tests.testkit.planes import namespace, own_fleet

own = own_fleet("statefulset")
space = namespace(STATEFUL_SET)
