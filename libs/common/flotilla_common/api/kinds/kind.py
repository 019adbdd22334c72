"""Declares the API of one kind as one value.

CRD, webhook entries and paths, conversion, roles, flags, the names on the command line and the watcher's resources are
all derived from it.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.gates import Gates

if TYPE_CHECKING:  # a service that plans the kind never loads its schema and admission
    from flotilla_common.api.kinds.rules import Rules


def rules_in(module: str) -> "Callable[[], Rules]":
    """Return a function that imports the module and returns its RULES."""
    return lambda: import_module(module).RULES


class Workers(msgspec.Struct, frozen=True):
    """The number of objects of the kind that are planned concurrently, and its flag `--<flag>-workers`."""

    default: int = 3
    flag: str = ""  # empty: there is no flag (install.md §4)


class Copy(msgspec.Struct, frozen=True):
    """A node's copy of an object. Copies with the same digest have the same content."""

    body: bytes
    digest: int


def whole(body: bytes) -> Copy:
    """Return a copy of the whole object. Raises msgspec.DecodeError."""
    return Copy(body, hash(metadata_of(body).resource_version))


class NodeRoute(msgspec.Struct, frozen=True):
    """The route from an object on kube.v1 to its node (docs/adr/0007). Both functions raise msgspec.DecodeError."""

    node: Callable[[bytes], str]
    """Returns the node that the object concerns, or an empty name. Called for every object."""
    copy: Callable[[bytes], Copy] = whole
    """Returns the node's copy of the object. Called only when the node's agent reads."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind. All members are light; `rules` imports the rest when it is called."""

    resource: Resource  # in the storage version
    doc: str  # the CRD's description, one sentence
    service: str  # the service with its controllers
    rules: "Callable[[], Rules]"
    versions: tuple[str, ...] = ("v1alpha1", "v1beta1")  # all are served
    short_names: tuple[str, ...] = ()
    scale: bool = False  # whether it has the scale subresource
    gates: tuple[str, ...] = ()  # feature gates without which it is not served, and its objects are refused
    one_gate: bool = False  # one of the gates is enough
    workers: Workers = Workers()
    made_by_us: bool = False  # its objects are created by the services, not by users
    node_route: NodeRoute | None = None  # node agents get copies of its objects
    confidential: bool = False  # its objects hold secrets: only their changes are published, without content
    parts: tuple[Resource, ...] = ()  # kinds that its objects' reasons name, with more detailed reasons of their own

    def closed(self, gates: Gates) -> tuple[str, ...]:
        """Return the closed gates that keep the kind from being served; empty if it is served."""
        closed = tuple(gate for gate in self.gates if not gates.on(gate))
        return () if self.one_gate and len(closed) < len(self.gates) else closed

    @property
    def name(self) -> str:
        """Return the name in manifests."""
        return self.resource.kind

    @property
    def singular(self) -> str:
        """Return the name in lower case, for paths, flags and folders."""
        return self.resource.kind.lower()

    @property
    def definition_name(self) -> str:
        """Return the name of its CRD."""
        return f"{self.resource.plural}.{self.resource.group}"

    @property
    def api_versions(self) -> tuple[str, ...]:
        """Return `group/version` of every version."""
        return tuple(f"{self.resource.group}/{version}" for version in self.versions)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the names that the command line accepts, in lower case."""
        return (self.singular, self.resource.plural, *self.short_names, self.definition_name)
