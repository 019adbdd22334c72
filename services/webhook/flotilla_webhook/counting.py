"""Counting what lives below an object, straight from the apiserver, page by page."""

from datetime import datetime
from typing import TypeVar

import msgspec

from flotilla_common.api.meta import Model
from flotilla_common.api.resources import CLAIM, POD, Resource
from flotilla_common.kube.interface import Api, ApiError, Unreachable

PAGE = 500
"""Objects per page: a namespace of 10,000 pods must not need one answer of 100 MiB."""

_FINISHED = frozenset({"Succeeded", "Failed"})


class CountError(Exception):
    """The count could not be taken."""


class _Metadata(Model):
    deletion_timestamp: datetime | None = None


class _Status(Model):
    phase: str = ""


class _Phased(Model):
    """An object of a native kind."""

    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


class _Custom(Model):
    """An object of any kind: its status may have any shape."""

    metadata: _Metadata = _Metadata()


_Item = TypeVar("_Item", _Phased, _Custom)


class LiveCounts:
    """Counts over the live objects of the cluster. Every method raises CountError."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def active_pods(self, namespace: str) -> int:
        """Pods of the namespace that are neither finished nor terminating."""
        pods = await self._living(POD, namespace, _Phased)
        return sum(1 for pod in pods if pod.status.phase not in _FINISHED)

    async def bound_claims(self, namespace: str) -> int:
        """Bound claims of the namespace that are not terminating."""
        claims = await self._living(CLAIM, namespace, _Phased)
        return sum(1 for claim in claims if claim.status.phase == "Bound")

    async def custom_resources(self, group: str, version: str, plural: str) -> int:
        """Objects of all namespaces that are not terminating."""
        return len(await self._living(Resource(group, version, plural, kind=""), "", _Custom))

    async def _living(self, resource: Resource, namespace: str, kind: type[_Item]) -> list[_Item]:
        decode = msgspec.json.Decoder(kind).decode
        living: list[_Item] = []
        token = ""
        try:
            while True:
                page = await self.api.list(resource, namespace, limit=PAGE, token=token)
                items = [decode(raw) for raw in page.items]
                living += [item for item in items if item.metadata.deletion_timestamp is None]
                token = page.next_token
                if not token:
                    return living
        except (ApiError, Unreachable, msgspec.MsgspecError) as failure:
            raise CountError(str(failure)) from failure
