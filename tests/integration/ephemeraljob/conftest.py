"""One namespace per scenario, on the shared control plane."""

from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB
from tests.testkit.planes import namespace

space = namespace(EPHEMERAL_JOB)
