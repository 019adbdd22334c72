"""Reads from the apiserver what the controllers of a kind look at: once for all manifests of a command.

Of Secrets only those are read that bear the name of a Secret that is distributed.
"""

from collections.abc import Sequence
from typing import Any

from flotilla_common.api.resources import SECRET, Resource
from flotilla_common.control.offline import Planning
from flotilla_common.control.watches import Watch
from flotilla_common.kube.interface import Api, ApiError, pages
from flotilla_common.settings import Settings

_PRIVATE = {"namespace": "system_namespace", "daemon_config_namespace": "secrets_namespace"}
"""Settings that name a namespace, and what the options of planners call them."""


class Reader:
    """LISTs, each made once. `refused`: what could not be read, by the plural, and what the apiserver says."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lists: dict[tuple[Resource, str, str], Sequence[bytes]] = {}
        self.refused: dict[str, str] = {}

    async def read(self, watch: Watch[Any], namespace: str, planning: Planning) -> Sequence[bytes]:
        """The objects that a controller sees of what it watches: for an object of a namespace those of the same."""
        if watch.named or watch.resource == SECRET:
            return ()
        if watch.private:
            namespace = str(planning.options.get(_PRIVATE[watch.private]) or getattr(Settings(), watch.private))
        return await self.list(watch.resource, namespace if watch.resource.namespaced else "")

    async def list(self, resource: Resource, namespace: str, name: str = "") -> Sequence[bytes]:
        """All objects, or those of that name in all namespaces. None of what this user may not read, or the cluster
        does not serve."""
        key = (resource, namespace, name)
        if key not in self._lists:
            try:
                self._lists[key] = await self._pages(*key)
            except ApiError as error:
                if error.code not in (403, 404):
                    raise
                self._lists[key] = ()
                self.refused[resource.plural] = error.message
        return self._lists[key]

    async def _pages(self, resource: Resource, namespace: str, name: str) -> Sequence[bytes]:
        listed = pages(self._api, resource, namespace, field_selector=f"metadata.name={name}" if name else "")
        return [bytes(raw) async for page in listed for raw in page.items]
