"""One namespace per scenario, on the shared control plane, with its three nodes.

A file that names flags of the services in `FLAGS` has a control plane and services of its own.
It may change its nodes, and its apiserver keeps an audit log.
"""

from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from tests.testkit.planes import namespace, own_plane

own = own_plane("daemonset")
space = namespace(DAEMON_SET)
