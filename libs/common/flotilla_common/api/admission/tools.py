"""What the admission of a kind may look at besides the request. The webhook service provides it."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import CONFIG_MAP, Resource
from flotilla_common.gates import Gates


class Verdict(msgspec.Struct, frozen=True):
    """What is wrong with a pod template, and the paths of its members that the cluster does not know."""

    faults: list[Fault] = []
    dropped: list[str] = []


class Tools(Protocol):
    """Whatever is asked of the apiserver is asked at once, never of a cache. What asks may raise ApiError and
    Unreachable."""

    @property
    def gates(self) -> Gates:
        """The feature gates."""
        ...

    def now(self) -> datetime:
        """The time of the request."""
        ...

    @property
    def namespace(self) -> str:
        """The system's own namespace."""
        ...

    async def read(self, resource: Resource, namespace: str, name: str) -> bytes:
        """An object as it is stored."""
        ...

    async def read_all(self, resource: Resource, namespace: str = "") -> Sequence[bytes | msgspec.Raw]:
        """All objects of a namespace, or of all, as they are stored."""
        ...

    async def metadata_of(self, resource: Resource, namespace: str, names: Collection[str]) -> Mapping[str, ObjectMeta]:
        """Return the metadata of those of these objects that there are, by name. However many they are, it is listed,
        and nothing else of them."""
        ...

    async def template_verdict(self, namespace: str, template: Json, claims: list[Json]) -> Verdict:
        """What the apiserver says about a pod template (docs/adr/0002). Each claim template is a volume, too."""
        ...

    async def try_create(self, resource: Resource, namespace: str, document: Json) -> None:
        """See whether the apiserver takes an object, with a dry run: nothing is stored."""
        ...

    async def deletion_protection(self, request: Request) -> Answer:
        """Whether a workload may be deleted (deletionprotection.md)."""
        ...


Handler = Callable[[Request, Tools], Awaitable[Answer]]
"""Answers the requests of one webhook of one kind. May raise Refused."""


async def configuration(tools: Tools) -> dict[str, str]:
    """What administrators configure while everything runs, as it is now: the data of ConfigMap `kruise-configuration`;
    empty without it. Raises ApiError and Unreachable."""
    stored = await found_or_none(tools.read(CONFIG_MAP, tools.namespace, CONFIGURATION))
    return {} if stored is None else strings(member(msgspec.json.decode(stored, type=Json), "data"))
