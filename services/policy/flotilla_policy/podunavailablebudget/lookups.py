"""Reads from the apiserver what budgets need beyond the mirrors, concurrently with planning.

Mirrors lag, each resource independently. So the apiserver is asked before a budget is loosened because an object is
absent, or because nothing has happened for some time. Workloads of kinds that are not mirrored are read only there. A
pass without an answer proceeds without it, and the budget is planned again once the answer has arrived.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.errors import ApiError, found_or_none
from flotilla_common.api.meta import group_of, metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.customkinds import GroupKind
from flotilla_common.control.keystate import Key
from flotilla_common.control.reads import Reads
from flotilla_common.kube.discovery import served
from flotilla_common.kube.interface import Unreachable

FRESH_SECONDS = 1.0
"""The time for which an answer is reused."""

UNUSED_SECONDS = 30.0
"""The time for which an answer is kept for the pass that asked for it."""

POLL_SECONDS = 10.0
"""The interval of reading a workload that is not watched."""

UNKNOWN = -1
"""The replicas of a workload whose number is unknown."""

NODE_KIND: GroupKind = ("", "Node")
"""The kind that controls static pods. It has neither a namespace nor a scale."""


class Reference(NamedTuple):
    """A workload of a kind that is not mirrored. An empty `uid` means any object of the name."""

    api_version: str
    kind: str
    name: str
    uid: str = ""


class Read(NamedTuple):
    """A mirrored object to be read from the apiserver into its table."""

    resource: Resource
    name: str
    occasion: str = ""  # an answer is valid for the same occasion only


class WorkloadInfo(msgspec.Struct, frozen=True):
    """The result of looking up a workload: not found without a uid, unknown with a `fault`."""

    uid: str = ""
    replicas: int = UNKNOWN
    selector: Selector | None = None  # the selector of its pods, if its scale has one
    fault: str = ""


class _Question(NamedTuple):
    budget: Key
    wanted: frozenset[Reference | Read]


class _Answer(msgspec.Struct, frozen=True):
    at: float  # monotonic seconds
    workloads: Mapping[Reference, WorkloadInfo]
    read: frozenset[Read]


_NOTHING = _Answer(float("-inf"), {}, frozenset())


class Session:
    """The questions of one pass."""

    def __init__(self, answer: _Answer) -> None:
        self._answer = answer
        self.wanted: set[Reference | Read] = set()

    def workload(self, reference: Reference) -> WorkloadInfo | None:
        """Return the workload; None until the apiserver has answered."""
        self.wanted.add(reference)
        return self._answer.workloads.get(reference)

    def was_read(self, resource: Resource, name: str, occasion: str = "") -> bool:
        """Report whether the table has the object as the apiserver had it a moment ago."""
        read = Read(resource, name, occasion)
        self.wanted.add(read)
        return read in self._answer.read

    @property
    def complete(self) -> bool:
        """Report whether all questions have been answered."""
        return all(wanted in self._answer.read or wanted in self._answer.workloads for wanted in self.wanted)

    @property
    def polls(self) -> bool:
        """Report whether the pass depends on an object that is not watched."""
        return any(isinstance(wanted, Reference) for wanted in self.wanted)


class _Recorded(Session):
    """The questions of a pass that is replayed from a recording, which holds only mirrored objects."""

    def workload(self, reference: Reference) -> WorkloadInfo | None:
        return WorkloadInfo(fault=f"{reference.kind} {reference.name}: not part of the recording")

    def was_read(self, resource: Resource, name: str, occasion: str = "") -> bool:
        return True


class Lookups:
    """The open questions of all budgets, and the last answers."""

    def __init__(self, context: ControllerContext, whitelist: Callable[[], Collection[GroupKind]]) -> None:
        """Prepare to read workloads and scales.

        `whitelist`: the configured kinds, whose objects are read instead of their scales.
        """
        self._context = context
        self._clock = context.clock
        self._offline = _is_offline(context)
        self._whitelist = whitelist
        self._answers: dict[Key, _Answer] = {}
        self._used: set[Key] = set()
        self._open: dict[Key, _Question] = {}
        self._reads: Reads[_Question, None] = Reads(self._read, context.clock, context.requeue)
        context.add_task(self._reads.run)

    def begin(self, key: Key) -> Session:
        """Return the session of a pass over the budget, with the answers so far."""
        if self._offline:
            return _Recorded(_NOTHING)
        answer = self._answers.get(key, _NOTHING)
        kept = FRESH_SECONDS if key in self._used else UNUSED_SECONDS
        return Session(answer if self._clock.monotonic() < answer.at + kept else _NOTHING)

    def end(self, key: Key, session: Session) -> datetime | None:
        """Ask the open questions of the pass.

        Return when to plan the budget again because it depends on an object that is not watched; else None.
        """
        if not session.wanted:
            self.forget(key)
            return None
        if not session.complete:
            self._ask(key, frozenset(session.wanted))
            return None
        seconds = FRESH_SECONDS if key in self._used else POLL_SECONDS  # a change after the answer may be newer
        self._used.add(key)
        return self._clock.now() + timedelta(seconds=seconds) if session.polls else None

    def forget(self, key: Key) -> None:
        """Drop the questions and answers of the budget."""
        self._open.pop(key, None)
        self._answers.pop(key, None)
        self._used.discard(key)
        self._reads.forget(key)

    def _ask(self, key: Key, wanted: frozenset[Reference | Read]) -> None:
        question = self._open.get(key)
        if question is None or not wanted <= question.wanted:
            self._open[key] = question = _Question(key, wanted)
        self._reads.ask_only(key, question)

    async def _read(self, question: _Question) -> None:
        """Find the answers. Raises ApiError, Unreachable."""
        key, at = question.budget, self._clock.monotonic()
        workloads: dict[Reference, WorkloadInfo] = {}
        read: set[Read] = set()
        for wanted in question.wanted:
            if isinstance(wanted, Read):
                await self._context.read(wanted.resource, key[0], wanted.name)
                read.add(wanted)
            else:
                workloads[wanted] = await self._find(key[0], wanted)
        self._answers[key] = _Answer(at, workloads, frozenset(read))
        self._used.discard(key)
        if self._open.get(key) is question:
            del self._open[key]

    async def _find(self, namespace: str, reference: Reference) -> WorkloadInfo:
        try:
            info = await self._resolve(namespace, reference)
        except (ApiError, ValueError) as fault:
            return WorkloadInfo(fault=f"{reference.kind} {reference.name}: {fault}")
        return WorkloadInfo() if reference.uid and info.uid != reference.uid else info

    async def _resolve(self, namespace: str, reference: Reference) -> WorkloadInfo:
        """Read the workload from the apiserver (podunavailablebudget.md §5.3, 2 to 4).

        Raises ApiError, Unreachable, and ValueError for a kind that is not served.
        """
        group, version = group_of(reference.api_version), reference.api_version.rpartition("/")[2]
        if (group, reference.kind) == NODE_KIND:
            return WorkloadInfo(reference.uid)
        kind = await served(self._context.api, group, version, reference.kind)
        listed = (group, reference.kind) in self._whitelist()
        if kind.scaled and not listed:
            body = await found_or_none(self._context.api.get(kind.resource, namespace, reference.name, "scale"))
            if body is not None:
                return _of_scale(body)
        body = await found_or_none(self._context.api.get(kind.resource, namespace, reference.name))
        if body is None or (meta := metadata_of(body)).deletion_timestamp is not None:
            return WorkloadInfo()
        return WorkloadInfo(meta.uid, _replicas_in(body, 0) if listed else UNKNOWN)


def _of_scale(body: bytes) -> WorkloadInfo:
    document: Json = msgspec.json.decode(body, type=Json)
    written = text(member(document, "status").get("selector"))
    try:
        selector = Selector.read(written) if written else None
    except ValueError:
        selector = None
    return WorkloadInfo(metadata_of(body).uid, _replicas_in(body, 0), selector)


def _replicas_in(body: bytes, absent: int) -> int:
    replicas = member(msgspec.json.decode(body, type=Json), "spec").get("replicas")
    return replicas if isinstance(replicas, int) else absent


def _is_offline(context: ControllerContext) -> bool:
    """Report whether there is no apiserver to ask, because a recording is replayed."""
    try:
        context.api  # noqa: B018 - raises
    except Unreachable:
        return True
    return False
