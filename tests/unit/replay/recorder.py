"""Builds recordings by hand: a stand-in for the service plans on tables of its own, and publishes its messages."""

from datetime import datetime, timedelta
from typing import Any, cast

import msgspec

from flotilla_cli.bundle.records import Bundle, Header, Recorded
from flotilla_cli.replay.recording import RecordedTables
from flotilla_cloneset.cloneset.controller import CONTROLLER as CLONE_SETS
from flotilla_common.api.documents import merge
from flotilla_common.api.resources import Resource
from flotilla_common.bus import subjects
from flotilla_common.bus.affiliation import affiliation_of, outline
from flotilla_common.bus.interface import Bus
from flotilla_common.control.journal import Journal
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.plan import Action, Create, Delete, ObjectRef, Outcome, OutcomeKind, Patch, Plan
from flotilla_common.control.replay_controller import Planning, ReplayController
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.node.serving import Sender
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json

KEY = ("shop", "web")


class Wire:
    """The sink of what the journal publishes."""

    def __init__(self) -> None:
        self.published: list[tuple[str, bytes]] = []

    def publish_soon(self, subject: str, data: bytes) -> None:
        self.published.append((subject, data))


def subject_of(resource: Resource, namespace: str, body: Json) -> str:
    """Return the subject on which the watcher publishes the object."""
    name = body["metadata"]["name"]
    if not subjects.affiliated(resource):
        return subjects.kube(resource, namespace, name)
    return subjects.pod(namespace, name, affiliation_of(outline(msgspec.json.encode(body))))


class Recording:
    """A bundle in construction. Tests may shuffle `known` and `heard`."""

    def __init__(
        self, planning: Planning | None = None, *, spec: ControllerSpec[Any, Any] = CLONE_SETS, key: Key = KEY
    ) -> None:
        self.clock = FakeClock()
        self.planning = planning
        self.spec = spec
        self.key = key
        self.known: list[Recorded] = []
        self.heard: list[Recorded] = []
        self.version = 100
        self.bodies: dict[tuple[str, str], Json] = {}
        self._tables = RecordedTables(())
        self._controller = ReplayController(spec, self._tables, planning or Planning(), self.clock)
        self._wire = Wire()
        self._traces = 0
        self._journals: dict[str, Journal] = {}

    def kube(self, kind: str, body: Json, operation: str = subjects.MODIFIED) -> Recorded:
        """Return the watcher's message of an object, at its next version."""
        self.version += 1
        body = msgspec.json.decode(msgspec.json.encode({"kind": kind, **body}))
        resource, meta = self._resource(kind), body["metadata"]
        namespace = (self.key[0] or "shop") if resource.namespaced else ""
        meta |= {"resourceVersion": str(self.version)} | ({"namespace": namespace} if namespace else {})
        meta.setdefault("uid", f"uid-{meta['name']}")
        self.bodies[kind, meta["name"]] = body
        return Recorded(
            at=self.clock.now(),
            subject=subject_of(resource, namespace, body),
            headers={subjects.OP: operation, subjects.RV: meta["resourceVersion"], subjects.UID: meta["uid"]},
            body=body,
        )

    def report(self, node: str, body: Json, *, name: str = "") -> Recorded:
        """Return a report of a node's agent about the object (or another of that name), and deliver it."""
        assert self.spec.reports is not None
        namespace, name = self.key[0], name or self.key[1]
        self._controller.hear(Sender(node, namespace, name), body)
        subject = subjects.report(node, self.spec.reports.kind, namespace, name)
        return Recorded(at=self.clock.now(), subject=subject, body=body)

    def see(self, *messages: Recorded) -> None:
        """Deliver these messages to the service."""
        for message in messages:
            self._tables.take(message)

    def plan(self, memory: Memory | None = None) -> tuple[ObjectRef, Plan]:
        """Return the service's present decision."""
        decision = self._controller.decide(self.key, memory or Memory(), self.clock.now())
        assert decision is not None
        return decision.subject, decision.plan

    def say(
        self, subject: ObjectRef, plan: Plan, *, outcomes: dict[int, Outcome] | None = None, replica: str = "r1",
        words: bool = True, writes: int | None = None,
    ) -> list[Recorded]:  # fmt: skip
        """Publish a pass: its words, and its first `writes` writes; returns what the writes left, not yet published."""
        self._traces += 1
        trace = f"trace{self._traces}"
        new = Journal(cast("Bus", self._wire), self.clock, "service", replica)
        journal = self._journals.setdefault(replica, new)
        if words:
            journal.why(subject, plan, trace=trace)
        left: list[Recorded] = []
        actions = plan.actions
        actions += [plan.status] if plan.status is not None else []
        for index, action in enumerate(actions[:writes]):
            outcome = (outcomes or {}).get(index, Outcome(kind=OutcomeKind.OK))
            if outcome.ok and not isinstance(action, Delete):
                left.append(self._result(action))
                outcome = msgspec.structs.replace(outcome, version=left[-1].headers[subjects.RV])
            journal.act(subject, action, outcome, latency=0.001, trace=trace)
        self.heard += [
            Recorded(at=self.clock.now(), subject=name, body=msgspec.json.decode(data))
            for name, data in self._wire.published
        ]
        self._wire.published.clear()
        self.see(*left)
        return left

    def bundle(self, quiet: float = 0) -> Bundle:
        """Return the whole bundle; `quiet` seconds passed after the last message."""
        begin = self.known[-1].at if self.known else self.clock.now()
        namespace, name = self.key
        resource, planning = self.spec.resource, self.planning
        header = Header(version="test", resource=resource, namespace=namespace, name=name, planning=planning)
        end: datetime = (self.heard[-1].at if self.heard else begin) + timedelta(seconds=quiet)
        return Bundle(header=header, known=tuple(self.known), begin=begin, heard=tuple(self.heard), end=end)

    def _resource(self, kind: str) -> Resource:
        return next(watch.resource for watch in self.spec.all_watches if watch.resource.kind == kind)

    def _result(self, action: Action) -> Recorded:
        resource: Resource = action.resource
        if isinstance(action, Create):
            return self.kube(resource.kind, msgspec.json.decode(msgspec.json.encode(action.body)), subjects.ADDED)
        assert isinstance(action, Patch)
        return self.kube(resource.kind, merge(self.bodies[resource.kind, action.name], action.body))
