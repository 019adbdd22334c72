"""What a controller's gatherer is built from: tables, and the few things that it may ask for or do besides.

The running service offers one implementation (`flotilla_common.live`), planning from a recording another (`offline`).
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from typing import Any, Protocol, TypeVar

import msgspec

from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.controller import Key
from flotilla_common.control.events import Recorder
from flotilla_common.control.executor import Executor
from flotilla_common.control.fence import Fence
from flotilla_common.control.watches import Watch
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.named import Followed
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import Answer, Report
from flotilla_common.node.serving import Sender
from flotilla_common.settings import Settings

T = TypeVar("T", bound=Object)
M = TypeVar("M", bound=msgspec.Struct)
Handler = Callable[[Sender, M], Awaitable[Answer | None]]
"""Answers a report; None when another replica is to."""


class Named(Protocol):
    """A table of chosen names."""

    def follow(self, name: str) -> Followed:
        """How far the name is known; it is followed from now on, until it is no longer wanted."""
        ...


class Tables(Protocol):
    """The tables of a controller, and what is known about the cluster."""

    @property
    def gates(self) -> Gates: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def clock(self) -> Clock: ...

    def table(self, watch: Watch[T]) -> Table[T]:
        """The table of a watched resource; an empty one when it is not watched here."""
        ...

    def watched(self, watch: Watch[Any]) -> bool:
        """Whether the resource is watched: its gate is on, and the cluster serves it."""
        ...

    def owns(self, namespace: str, name: str) -> bool:
        """This replica serves the object, at this very moment."""
        ...

    async def read(self, resource: Resource, namespace: str, name: str) -> object:
        """Bring an object into its table, from the apiserver itself. Raises ApiError or Unreachable."""
        ...


class Wiring(Tables, Protocol):
    """For the gatherer of a controller."""

    @property
    def api(self) -> Api:
        """The apiserver, for tasks beside that follow kinds which only the cluster knows. Raises Unreachable where
        there is none."""
        ...

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        """Read an object that is not mirrored. Raises ApiError or Unreachable."""
        ...

    def wake(self, watch: Watch[T], keys: Callable[[T | None, T | None], Iterable[Key]]) -> None:
        """Plan these objects after a change (old, new) of a watched one."""
        ...

    def again(self, namespace: str, name: str) -> None:
        """Plan the object again."""
        ...

    def named(self, watch: Watch[Any], wanted: Callable[[], Collection[str]], changed: Callable[[str], None]) -> Named:
        """Where names are asked for, of what is watched by name. `wanted` says which of them matter now; `changed` is
        told of one that is known from now on, or cannot be read."""
        ...

    async def read_named(self, resource: Resource, name: str) -> None:
        """Bring all objects of that name into their table, from the apiserver itself. Raises ApiError or
        Unreachable."""
        ...

    def surely_gone(self, watch: Watch[Any], key: Key, uid: str, asker: Key) -> bool:
        """The apiserver has said that the object with this uid does not exist. Until it has been asked: False, and the
        asker is planned again once it has answered."""
        ...

    def reported(self, obj: Object) -> Report | None:
        """What a node agent reported about the controller's object that may not be in its status yet."""
        ...

    def beside(self, task: Callable[[], Coroutine[Any, Any, None]], /) -> None:
        """Run the task while the service works."""
        ...


class Answering(Tables, Protocol):
    """For a part of a service that answers requests."""

    async def answer(self, kind: str, body: type[M], handler: Handler[M], *, by_any_replica: bool = False) -> None:
        """Answer requests of one kind. Every replica hears each of them, and all but the one that is to answer return
        None; with `by_any_replica` only one hears it."""
        ...

    def fence(self, namespace: str, name: str) -> Fence:
        """The right to write for the object, from now on."""
        ...

    def recorder(self, component: str, /) -> Recorder:
        """Events in the name of a component that is no controller, such as a node agent."""
        ...

    def executor(self, recorder: Recorder, /) -> Executor:
        """For writes that no plan decides: what somebody else was told and we have checked."""
        ...
