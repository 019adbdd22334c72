"""One namespace per scenario, on the shared control plane, with its three nodes.

A file that names flags of the services in `FLAGS` has a control plane and services of its own.
It may change its nodes and kill its processes, and its apiserver keeps an audit log.
"""

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.resources import JOB
from tests.testkit.planes import namespace, own_plane

own = own_plane("sidecar", "jobs")
space = namespace(BROADCAST_JOB, private=(ADVANCED_CRON_JOB, JOB))
