"""The interface between a controller's gatherer and the service: tables, and a few requests and actions.

The running service has one implementation (`flotilla_common.live`), planning from a recording another
(`replay_controller`).
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any, Protocol, TypeVar

import msgspec

from flotilla_common.api.meta import Object
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.control.events import Recorder
from flotilla_common.control.executor import Executor
from flotilla_common.control.fence import Fence
from flotilla_common.control.keystate import Key
from flotilla_common.control.watches import Watch
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api
from flotilla_common.mirror.feed import Followed
from flotilla_common.mirror.table import Table
from flotilla_common.node.reports import Answer, Report
from flotilla_common.node.serving import Sender
from flotilla_common.settings import Settings

T = TypeVar("T", bound=Object)
M = TypeVar("M", bound=msgspec.Struct)
Handler = Callable[[Sender, M], Awaitable[Answer | None]]
"""Answers a report; None if another replica has to."""


class Named(Protocol):
    """A table of objects that are read by name."""

    def follow(self, name: str) -> Followed:
        """Return what is known of the name, which is followed from now on until it is no longer wanted."""
        ...


class Tables(Protocol):
    """The tables of a controller, and information about the cluster."""

    @property
    def gates(self) -> Gates: ...

    @property
    def settings(self) -> Settings: ...

    @property
    def clock(self) -> Clock: ...

    def table(self, watch: Watch[T]) -> Table[T]:
        """Return the table of a watched resource; an empty table if it is not watched here."""
        ...

    def watched(self, watch: Watch[Any]) -> bool:
        """Report whether the resource is watched: its gate is on, and the cluster serves it."""
        ...

    def owns(self, namespace: str, name: str) -> bool:
        """Report whether this replica serves the object at this moment."""
        ...

    async def read(self, resource: Resource, namespace: str, name: str) -> object:
        """Read an object from the apiserver into its table. Raises ApiError or Unreachable."""
        ...


class ControllerContext(Tables, Protocol):
    """The context of a controller's gatherer."""

    @property
    def api(self) -> Api:
        """The apiserver's API, for background tasks that follow kinds found by discovery.

        Raises Unreachable where there is none.
        """
        ...

    async def get(self, resource: Resource, namespace: str, name: str) -> bytes:
        """Read an object that is not mirrored. Raises ApiError or Unreachable."""
        ...

    def requeue(self, namespace: str, name: str) -> None:
        """Plan the object again."""
        ...

    def named(self, watch: Watch[Any], wanted: Callable[[], Collection[str]], changed: Callable[[str], None]) -> Named:
        """Return the table of a resource that is watched by name.

        `wanted` returns the names that matter now; `changed` is called with a name that becomes known or unreadable.
        """
        ...

    async def read_named(self, resource: Resource, name: str) -> None:
        """Read all objects of that name from the apiserver into their table. Raises ApiError or Unreachable."""
        ...

    def confirm_deleted(self, watch: Watch[Any], key: Key, uid: str, asker: Key) -> bool:
        """Report whether the apiserver has confirmed that the object with this uid does not exist.

        Before it was asked the result is False, and the asker is planned again after its response.
        """
        ...

    def reported(self, obj: Object) -> Report | None:
        """Return a node agent's report about the controller's object that may not be in its status yet."""
        ...

    def add_task(self, task: Callable[[], Coroutine[Any, Any, None]], /) -> None:
        """Run the task while the service works."""
        ...


class ResponderContext(Tables, Protocol):
    """The context of a component that answers requests."""

    async def answer(self, kind: str, body: type[M], handler: Handler[M], *, by_any_replica: bool = False) -> None:
        """Answer requests of one kind.

        Every replica receives each request, and all but the replica that has to answer return None; with
        `by_any_replica` only one receives it.
        """
        ...

    async def newest(self, watch: Watch[T], namespace: str, name: str) -> T | None:
        """Return the newest version of an object on the bus, which is not mirrored.

        Return None without one, or if the bus does not respond or does not hold it in full.
        """
        ...

    def fence(self, namespace: str, name: str) -> Fence:
        """Return the fence for writes on the object, from now on."""
        ...

    def recorder(self, component: str, /) -> Recorder:
        """Return a recorder of events for a component that is no controller, such as a node agent."""
        ...

    def executor(self, recorder: Recorder, /) -> Executor:
        """Return an executor for writes without a plan, which a checked request asks for."""
        ...
