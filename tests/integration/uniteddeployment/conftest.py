"""One namespace per scenario, on the shared control plane."""

from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from tests.support.united import CHILDREN
from tests.testkit.planes import namespace

space = namespace(UNITED_DEPLOYMENT, *CHILDREN, delete=True)
