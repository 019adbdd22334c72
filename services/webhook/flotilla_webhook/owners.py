"""The way from a pod up to the workload that it belongs to (workloadspread.md §5.2, podunavailablebudget.md §5.1)."""

from collections.abc import Collection
from typing import NamedTuple

from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.kinds.workloadspread.targets import SPREAD, CustomWorkload, kinds_between
from flotilla_common.api.meta import OwnerReference, TargetRef, controller_of, group_of, metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.discovery import served
from flotilla_common.kube.interface import Api

SECONDS = 10.0
"""How long an owner is not asked again for its own: a Deployment may adopt a ReplicaSet, or let it go."""

_MOST = 10_000
_RESOURCES = {(one.group, one.kind): one for one in SPREAD}


class _Above(NamedTuple):
    """The controller of an owner, and until when it is believed."""

    until: float
    controller: OwnerReference | None


class Owners:
    """Whom pods belong to, by what the apiserver says."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._above: dict[str, _Above] = {}  # by the owner's uid

    async def lead_to(
        self, target: TargetRef, owner: OwnerReference, namespace: str, custom: Collection[CustomWorkload]
    ) -> bool:
        """Return whether the owner is the target, or belongs to it. Raises ApiError (404 for an owner that is not
        seen yet), Unreachable, and ValueError for a kind that nobody serves."""
        between = kinds_between(target.identity[:2], custom)
        current: OwnerReference | None = owner
        while current is not None:
            identity = group_of(current.api_version), current.kind, current.name
            if identity == target.identity:
                return True
            if identity[:2] not in between:
                return False
            current = await self._controller_of(current, namespace)
        return False

    async def _controller_of(self, owner: OwnerReference, namespace: str) -> OwnerReference | None:
        """Return the controller of an owner. It hardly ever changes, so it is not asked for with each pod."""
        now, held = self._clock.monotonic(), self._above.get(owner.uid)
        if held is None or held.until <= now:
            if len(self._above) >= _MOST:
                self._above.clear()
            resource = await self.resource(owner.api_version, owner.kind)
            found = controller_of(metadata_of(await self._api.get(resource, namespace, owner.name)))
            held = self._above[owner.uid] = _Above(now + SECONDS, found)
        return held.controller

    async def resource(self, api_version: str, kind: str) -> Resource:
        """Return the resource of a kind, which may be one that only the cluster knows. Raises ValueError, ApiError,
        Unreachable."""
        group, _, version = api_version.rpartition("/")
        known = _RESOURCES.get((group, kind))
        if known is not None:
            return known
        return (await served(self._api, group, version, kind)).resource


def controller_in(pod: Json) -> OwnerReference | None:
    """Return the controller of a pod; None without one."""
    for owner in mappings(member(pod, "metadata").get("ownerReferences")):
        if owner.get("controller") is True:
            return OwnerReference(
                api_version=text(owner.get("apiVersion")),
                kind=text(owner.get("kind")),
                name=text(owner.get("name")),
                uid=text(owner.get("uid")),
                controller=True,
            )
    return None
