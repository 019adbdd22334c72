"""One namespace per scenario, on the shared control plane; runs of all kinds are watched."""

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.imagelistpulljob.types import IMAGE_LIST_PULL_JOB
from flotilla_common.api.resources import JOB
from tests.testkit.planes import namespace

space = namespace(ADVANCED_CRON_JOB, JOB, BROADCAST_JOB, IMAGE_LIST_PULL_JOB)
