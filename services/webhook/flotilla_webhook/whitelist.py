"""The kinds of workloads that administrators name beside StatefulSets, read from the apiserver (persistentpodstate.md
§7)."""

import msgspec

from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.errors import ApiError
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.kinds.persistentpodstate.whitelist import CustomWorkload, custom_workloads
from flotilla_common.api.resources import CONFIG_MAP
from flotilla_common.kube.interface import Api


class WhiteList:
    """As it is at each question."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self._namespace = namespace

    async def read(self) -> list[CustomWorkload]:
        """None without the ConfigMap. Raises ApiError, Unreachable, and ValueError for one that cannot be read."""
        try:
            body = await self._api.get(CONFIG_MAP, self._namespace, CONFIGURATION)
        except ApiError as failure:
            if failure.code == 404:
                return []
            raise
        return custom_workloads(strings(member(msgspec.json.decode(body, type=Json), "data")))
