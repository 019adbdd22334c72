"""Reads from the apiserver what the controllers of a kind look at: once for all manifests of a command.

Secrets are never read, and what a controller reads by name is not, either: no plan of this command needs their content.
"""

from collections.abc import Sequence
from typing import Any

from flotilla_common.api.resources import SECRET, Resource
from flotilla_common.control.offline import Planning
from flotilla_common.control.watches import Watch
from flotilla_common.kube.interface import Api, ApiError
from flotilla_common.settings import Settings

PAGE = 500

_PRIVATE = {"namespace": "system_namespace", "daemon_config_namespace": "secrets_namespace"}
"""Settings that name a namespace, and what the options of planners call them."""


class Reader:
    """LISTs, each made once."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lists: dict[tuple[Resource, str], Sequence[bytes]] = {}
        self.refused: dict[str, str] = {}
        """What could not be read, by the plural, and what the apiserver says."""

    async def read(self, watch: Watch[Any], namespace: str, planning: Planning) -> Sequence[bytes]:
        """The objects that a controller sees of what it watches: for an object of a namespace those of the same."""
        if watch.resource == SECRET or watch.named:
            return ()
        if watch.private:
            namespace = str(planning.options.get(_PRIVATE[watch.private]) or getattr(Settings(), watch.private))
        return await self.list(watch.resource, namespace if watch.resource.namespaced else "")

    async def list(self, resource: Resource, namespace: str) -> Sequence[bytes]:
        """All objects; none of what this user may not read, or the cluster does not serve."""
        if (resource, namespace) not in self._lists:
            try:
                self._lists[resource, namespace] = await self._pages(resource, namespace)
            except ApiError as error:
                if error.code not in (403, 404):
                    raise
                self._lists[resource, namespace] = ()
                self.refused[resource.plural] = error.message
        return self._lists[resource, namespace]

    async def _pages(self, resource: Resource, namespace: str) -> Sequence[bytes]:
        found: list[bytes] = []
        token = ""
        while True:
            page = await self._api.list(resource, namespace, limit=PAGE, token=token)
            found += [bytes(raw) for raw in page.items]
            token = page.next_token
            if not token:
                return found
