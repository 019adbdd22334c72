"""The current objects, updated by a listener on the history, for a scenario's steps and conditions."""

import asyncio
from collections.abc import Callable, Iterator

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.plan import Json
from tests.simulation.history import History, Version

Key = tuple[Resource, str, str]


class CurrentState:
    """The newest version of every object."""

    def __init__(self, history: History) -> None:
        self.objects: dict[Key, Json] = {}
        self._changed = asyncio.Event()
        for version in history.versions:
            self._take(version)
        history.listeners.append(self._take)

    def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """One object, if it exists."""
        return self.objects.get((resource, namespace, name))

    def all(self, resource: Resource, namespace: str) -> Iterator[Json]:
        """Yield the objects of a namespace, oldest first."""
        return (
            found for (kind, where, _), found in list(self.objects.items()) if (kind, where) == (resource, namespace)
        )

    def pods(self, namespace: str, owner: str = "") -> list[Pod]:
        """Active pods, oldest first; of one controller if it is named."""
        pods = [msgspec.convert(found, type=Pod) for found in self.all(POD, namespace)]
        return [pod for pod in pods if pod.active and (not owner or owner_name(pod) == owner)]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Return at the first moment at which the condition holds. It is asked after every change."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def _take(self, version: Version) -> None:
        key = (version.resource, version.namespace, version.name)
        if version.after is None:
            self.objects.pop(key, None)
        else:
            self.objects[key] = version.after
        self._changed.set()


def owner_name(pod: Pod) -> str:
    """Return the name of the pod's controller; empty without one."""
    controller = controller_of(pod.metadata)
    return controller.name if controller is not None else ""


def image_of(pod: Pod) -> str:
    """Return the tag of the first container's image: the images of scenarios differ in nothing else."""
    return pod.spec.containers[0].image.rpartition(":")[2]
