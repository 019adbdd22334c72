"""What administrators configure while everything runs: the data of ConfigMap `kruise-configuration`."""

import msgspec

from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.errors import ApiError
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.resources import CONFIG_MAP


async def configuration(tools: Tools) -> dict[str, str]:
    """As it is now; empty without the ConfigMap. Raises ApiError and Unreachable."""
    try:
        stored = msgspec.json.decode(await tools.read(CONFIG_MAP, tools.namespace, CONFIGURATION), type=Json)
    except ApiError as failure:
        if failure.code == 404:
            return {}
        raise
    return strings(member(stored, "data"))
