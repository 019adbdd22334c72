"""Follows controllers from a pod up to its workload (workloadspread.md §5.2, podunavailablebudget.md §5.1)."""

from collections.abc import Collection
from typing import NamedTuple

from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.kinds.workloadspread.targets import SPREAD, CustomWorkload, kinds_between
from flotilla_common.api.meta import OwnerReference, TargetRef, controller_of, group_of, metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.discovery import served
from flotilla_common.kube.interface import Api

CACHED_SECONDS = 10.0
"""Time for which an owner's controller is cached: a Deployment may adopt or release a ReplicaSet."""

_MAX_CACHED = 10_000
_RESOURCES = {(one.group, one.kind): one for one in SPREAD}


class _CachedController(NamedTuple):
    """The controller of an owner, cached until a time."""

    until: float
    controller: OwnerReference | None


class Owners:
    """The controllers of pods and their owners, read from the apiserver."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._controllers: dict[str, _CachedController] = {}  # by the owner's uid

    async def lead_to(
        self, target: TargetRef, owner: OwnerReference, namespace: str, custom: Collection[CustomWorkload]
    ) -> bool:
        """Report whether the owner is the target, or belongs to it.

        Raises ApiError (404 for an owner that cannot be seen yet), Unreachable, and ValueError for a kind that is not
        served.
        """
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
        """Return the controller of an owner. It hardly ever changes, so it is not read for each pod."""
        now, held = self._clock.monotonic(), self._controllers.get(owner.uid)
        if held is None or held.until <= now:
            if len(self._controllers) >= _MAX_CACHED:
                self._controllers.clear()
            resource = await self.resource(owner.api_version, owner.kind)
            found = controller_of(metadata_of(await self._api.get(resource, namespace, owner.name)))
            held = self._controllers[owner.uid] = _CachedController(now + CACHED_SECONDS, found)
        return held.controller

    async def resource(self, api_version: str, kind: str) -> Resource:
        """Return the resource of a kind, which may be a custom one. Raises ValueError, ApiError, Unreachable."""
        group, _, version = api_version.rpartition("/")
        known = _RESOURCES.get((group, kind))
        if known is not None:
            return known
        return (await served(self._api, group, version, kind)).resource


def controller_in(pod: Json) -> OwnerReference | None:
    """Return the controller of a pod, or None."""
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
