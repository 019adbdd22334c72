"""The interface for admission handlers to gates, time and apiserver; the webhook service implements it."""

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
    """The faults of a pod template, and the paths of its members that the cluster does not support."""

    faults: list[Fault] = []
    dropped: list[str] = []


class Tools(Protocol):
    """Reads for admission: from the apiserver, never from a cache. They may raise ApiError and Unreachable."""

    @property
    def gates(self) -> Gates:
        """Return the feature gates."""
        ...

    def now(self) -> datetime:
        """Return the time of the request."""
        ...

    @property
    def namespace(self) -> str:
        """Return the system's own namespace."""
        ...

    async def read(self, resource: Resource, namespace: str, name: str) -> bytes:
        """Return an object as it is stored."""
        ...

    async def read_all(self, resource: Resource, namespace: str = "") -> Sequence[bytes | msgspec.Raw]:
        """Return all objects of a namespace, or of all, as they are stored."""
        ...

    async def metadata_of(self, resource: Resource, namespace: str, names: Collection[str]) -> Mapping[str, ObjectMeta]:
        """Return the metadata of those of these objects that exist, by name, with one LIST of metadata."""
        ...

    async def template_verdict(self, namespace: str, template: Json, claims: list[Json]) -> Verdict:
        """Return the apiserver's verdict on a pod template (docs/adr/0002). Claim templates count as volumes."""
        ...

    async def try_create(self, resource: Resource, namespace: str, document: Json) -> None:
        """Check with a dry run that the apiserver accepts an object: nothing is stored."""
        ...

    async def deletion_protection(self, request: Request) -> Answer:
        """Answer whether a workload may be deleted (deletionprotection.md)."""
        ...


Handler = Callable[[Request, Tools], Awaitable[Answer]]
"""Answers the requests of one webhook of one kind. May raise Refused."""


async def configuration(tools: Tools) -> dict[str, str]:
    """Return the data of ConfigMap `kruise-configuration`; empty without it. Raises ApiError, Unreachable.

    Administrators change it at runtime, so it is read for each request.
    """
    stored = await found_or_none(tools.read(CONFIG_MAP, tools.namespace, CONFIGURATION))
    return {} if stored is None else strings(member(msgspec.json.decode(stored, type=Json), "data"))
