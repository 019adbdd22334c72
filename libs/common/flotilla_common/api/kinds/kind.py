"""What Flotilla knows of the API of one kind, as one value.

CRD, webhook entries and paths, conversion, roles, flags, the words of the command line and what the watcher publishes
are all made from it.
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
    """Return what loads the module when it is called, and returns the RULES that it declares."""
    return lambda: import_module(module).RULES


class Workers(msgspec.Struct, frozen=True):
    """How many objects of the kind are planned side by side, and the flag `--<flag>-workers` that changes it."""

    default: int = 3
    flag: str = ""  # empty: there is no flag (install.md §4)


class Copy(msgspec.Struct, frozen=True):
    """What a node gets of an object. Two copies with the same digest say the same."""

    body: bytes
    digest: int


def whole(body: bytes) -> Copy:
    """All of the object. Raises msgspec.DecodeError."""
    return Copy(body, hash(metadata_of(body).resource_version))


class NodeRoute(msgspec.Struct, frozen=True):
    """From an object, as it is published on kube.v1, to a node (docs/adr/0007). Both raise msgspec.DecodeError."""

    node: Callable[[bytes], str]
    """The node that the object concerns, empty if none. Asked for every object."""
    copy: Callable[[bytes], Copy] = whole
    """What that node gets of it. Asked only when the node's agent reads."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind. Everything here is light; `rules` imports the rest when it is called."""

    resource: Resource  # in the storage version
    doc: str  # the CRD's description, one sentence
    service: str  # whose controllers serve it
    rules: "Callable[[], Rules]"
    versions: tuple[str, ...] = ("v1alpha1", "v1beta1")  # all are served
    short_names: tuple[str, ...] = ()
    scale: bool = False  # whether it has the scale subresource
    gates: tuple[str, ...] = ()  # feature gates without which it is not served, and its objects are refused
    one_gate: bool = False  # one of the gates is enough
    workers: Workers = Workers()
    made_by_us: bool = False  # the services make its objects by themselves: one that is left is no user's
    node_route: NodeRoute | None = None  # node agents get copies of its objects
    confidential: bool = False  # its objects hold secrets: the bus says of them only that they changed
    parts: tuple[Resource, ...] = ()  # kinds whose objects the reasons of an object name, and which know more

    def closed(self, gates: Gates) -> tuple[str, ...]:
        """Return the gates that keep the kind from being served; none if it is."""
        closed = tuple(gate for gate in self.gates if not gates.on(gate))
        return () if self.one_gate and len(closed) < len(self.gates) else closed

    @property
    def name(self) -> str:
        """As it stands in manifests."""
        return self.resource.kind

    @property
    def singular(self) -> str:
        """In lower case: how paths, flags and folders name it."""
        return self.resource.kind.lower()

    @property
    def definition_name(self) -> str:
        """The name of its CRD."""
        return f"{self.resource.plural}.{self.resource.group}"

    @property
    def api_versions(self) -> tuple[str, ...]:
        """`group/version` of every version."""
        return tuple(f"{self.resource.group}/{version}" for version in self.versions)

    @property
    def words(self) -> tuple[str, ...]:
        """What people may call it on the command line, in lower case."""
        return (self.singular, self.resource.plural, *self.short_names, self.definition_name)
