"""The apiserver as the user of an action, with the failures of every other client: ApiError and Unreachable."""

from collections.abc import Awaitable, Mapping
from typing import Protocol, TypeVar

import msgspec

from flotilla_common.api.resources import Resource
from flotilla_common.kube.client import METADATA_ONLY, page_of
from flotilla_common.kube.interface import ApiError, Lists, Page, delete_options
from flotilla_console.access.acting import Refused, UserApi
from flotilla_console.access.identity import Identity

T = TypeVar("T")

BAD_REQUEST = 400
"""The code of a request that was refused before it reached the apiserver."""


class Client(Lists, Protocol):
    """The requests that actions make as a user. All raise ApiError and Unreachable."""

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes: ...

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str,
        *,
        params: Mapping[str, str] | None = None,
    ) -> bytes: ...

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes: ...

    async def delete(self, resource: Resource, namespace: str, name: str, *, uid: str = "") -> bytes: ...


class AsUser(Protocol):
    """Gives clients whose requests are the user's."""

    def __call__(self, identity: Identity) -> Client: ...


class UserClient:
    """The requests of one user."""

    def __init__(self, user: UserApi) -> None:
        self._user = user

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        return await _answered(self._user.get(resource, namespace, name))

    async def list(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        token: str = "",
        metadata_only: bool = False,
        shard_selector: str = "",
    ) -> Page:
        """Return one page."""
        params = {
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
            "limit": str(limit) if limit else "",
            "continue": token,
            "shardSelector": shard_selector,
        }
        given = {name: value for name, value in params.items() if value}
        accept = METADATA_ONLY if metadata_only else "application/json"
        return page_of(resource, await _answered(self._user.list(resource, namespace, given, accept)))

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        content_type: str,
        *,
        params: Mapping[str, str] | None = None,
    ) -> bytes:
        dry_run = "dryRun" in (params or {})
        return await _answered(self._user.patch(resource, namespace, name, body, content_type, dry_run=dry_run))

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        return await _answered(self._user.post(resource, namespace, body))

    async def delete(self, resource: Resource, namespace: str, name: str, *, uid: str = "") -> bytes:
        options = msgspec.json.encode(delete_options(resource, uid))
        return await _answered(self._user.delete(resource, namespace, name, options))


async def _answered(request: Awaitable[T]) -> T:
    """Return the answer to a request. Raises ApiError instead of Refused, Unreachable."""
    try:
        return await request
    except Refused as error:
        raise ApiError(error.code or BAD_REQUEST, "", str(error)) from error
