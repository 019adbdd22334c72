"""Counts the objects below an object, straight from the apiserver, page by page.

One live object is enough to protect its parent, so the first page that has any ends the search: its objects are the
count. A search that times out fails, and the caller refuses. Of custom resources only the metadata are read: objects
may be large, and their content is private.
"""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import msgspec

from flotilla_common.api.documents import Json, member
from flotilla_common.api.meta import Model
from flotilla_common.api.resources import CLAIM, CRD, POD, Resource
from flotilla_common.api.webhooks import COUNTED_LABEL
from flotilla_common.kube.interface import Api, ApiError, Unreachable, pages

SEARCH_SECONDS = 10.0
"""Timeout of a search: the apiserver waits for 30 seconds, and would then let the deletion happen."""

_ALLOW = f"a ClusterRole that allows it needs the label {COUNTED_LABEL}=true"

_FINISHED = ("Succeeded", "Failed")
_UNFINISHED = ",".join(f"status.phase!={phase}" for phase in _FINISHED)


class CountError(Exception):
    """The objects could not be counted."""


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
    """Counts of live objects: those of the first page that has any, or 0. Every method raises CountError."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def definition(self, name: str, uid: str) -> Json:
        """Return the stored CRD of this name and uid."""
        try:
            stored = msgspec.json.decode(await self.api.get(CRD, "", name), type=Json)
        except (ApiError, Unreachable, msgspec.MsgspecError, ValueError) as failure:
            raise CountError(str(failure)) from failure
        if member(stored, "metadata").get("uid") != uid:
            raise CountError(f"the CRD {name} has another uid")
        return stored

    async def active_pods(self, namespace: str) -> int:
        """Count the pods of the namespace that are neither finished nor terminating."""
        return await self._count(POD, namespace, _Phased, lambda pod: pod.status.phase not in _FINISHED, _UNFINISHED)

    async def bound_claims(self, namespace: str) -> int:
        """Count the bound claims of the namespace that are not terminating."""
        return await self._count(CLAIM, namespace, _Phased, lambda claim: claim.status.phase == "Bound")

    async def custom_resources(self, group: str, version: str, plural: str) -> int:
        """Count the objects of all namespaces that are not terminating."""
        resource = Resource(group, version, plural, kind="")
        try:
            return await self._count(resource, "", _Custom, lambda one: True, metadata_only=True)
        except CountError as failure:
            if isinstance(failure.__cause__, ApiError) and failure.__cause__.code == 403:
                raise CountError(f"{failure}; {_ALLOW}") from failure
            raise

    async def _count(
        self,
        resource: Resource,
        namespace: str,
        kind: type[_Item],
        counts: Callable[[_Item], bool],
        fields: str = "",
        *,
        metadata_only: bool = False,
    ) -> int:
        decode = msgspec.json.Decoder(kind).decode
        try:
            async with asyncio.timeout(SEARCH_SECONDS):
                async for page in pages(
                    self.api, resource, namespace, field_selector=fields, metadata_only=metadata_only
                ):
                    items = (decode(raw) for raw in page.items)
                    if found := sum(item.metadata.deletion_timestamp is None and counts(item) for item in items):
                        return found
        except TimeoutError as failure:
            raise CountError(f"the search took longer than {SEARCH_SECONDS:g} s") from failure
        except (ApiError, Unreachable, msgspec.MsgspecError) as failure:
            raise CountError(str(failure)) from failure
        return 0
