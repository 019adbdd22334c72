"""What administrators configure while everything runs: the data of ConfigMap `kruise-configuration`."""

import msgspec

from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.resources import CONFIG_MAP


async def configuration(tools: Tools) -> dict[str, str]:
    """As it is now; empty without the ConfigMap. Raises ApiError and Unreachable."""
    stored = await found_or_none(tools.read(CONFIG_MAP, tools.namespace, CONFIGURATION))
    return {} if stored is None else strings(member(msgspec.json.decode(stored, type=Json), "data"))
