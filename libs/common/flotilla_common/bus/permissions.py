"""Who may say and hear what on the bus (docs/adr/0007).

A node's agent speaks on its own report subjects, says that it lives, hears its own copies and answers, and that is all:
no JetStream API, which could be made to send anything anywhere, and no other node. A service publishes under its own
name and reads streams. `*` and `>` come only from here: names are checked before they become part of a subject.
"""

import re
from collections.abc import Iterable

import msgspec

from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.resources import Resource
from flotilla_common.bus import reading, subjects
from flotilla_common.bus.heartbeat import NODE_AGENT

_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

EVERYTHING = ">"
OPERATOR = "flotilla"
"""The user of people and of the command line: may do everything."""
READER = "reader"
"""The user of whoever watches: sees everything that is published, and can change nothing."""


class Permissions(msgspec.Struct, frozen=True):
    """Subjects that a user may publish on and subscribe to. With `answers`, also the reply subjects of requests."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = False


def is_node_name(text: str) -> bool:
    """Whether a node may be called so: nothing in it has a meaning in subjects."""
    return _NODE_NAME.fullmatch(text) is not None


def node_permissions(node: str) -> Permissions:
    """Of the agent of one node. Raises ValueError for what is no node's name."""
    if not is_node_name(node):
        raise ValueError(f"{node!r} is not the name of a node")
    own = subjects.token(node)
    return Permissions(
        publish=(f"report.v1.{own}.>", subjects.heartbeat(NODE_AGENT, node)),
        subscribe=(f"node.v1.{own}.>", f"{subjects.node_inbox(node)}.>"),
    )


_READING = (
    "$JS.API.STREAM.INFO.*",
    "$JS.API.STREAM.MSG.GET.*",
    "$JS.API.CONSUMER.CREATE.*",
    "$JS.API.CONSUMER.DELETE.*.*",
    "$JS.FC.>",
)
"""What an ordered read of a stream asks for."""

_READING_ONE = (
    ("$JS.API.STREAM.INFO.", ""),
    ("$JS.API.CONSUMER.CREATE.", ""),
    ("$JS.API.CONSUMER.DELETE.", ".*"),
    ("$JS.FC.", ".>"),
)
"""Subjects of the requests of an ordered read of one stream: the text before the stream's name, and after it."""


_ANSWERS = "_INBOX_node.>"
"""Where node agents take answers."""


def webhook_permissions() -> Permissions:
    """Return those of the webhook. It publishes that it lives and what it sees done, its replicas ask each other for
    places, and it reads the last decisions about budgets."""
    own, places = ("act.v1.webhook.>", "heartbeat.v1.webhook.*"), subjects.places("*")
    budgets = subjects.last_why(POD_UNAVAILABLE_BUDGET, "*", "*")
    inbox = f"{subjects.service_inbox('webhook')}.>"
    return Permissions(publish=(*own, places, budgets), subscribe=(inbox, places), answers=True)


def service_permissions(service: str, answers: Iterable[str] = ()) -> Permissions:
    """Of a service that reads streams, and publishes what it does and why. `answers`: the kinds of reports and requests
    of node agents that it answers."""
    kinds = tuple(subjects.report_filter(kind) for kind in answers)
    verbs, streams = ("CREATE", "UPDATE"), (stream.name for stream in subjects.RECORDS)
    records = tuple(f"$JS.API.STREAM.{verb}.{stream}" for stream in streams for verb in verbs)
    own = (f"act.v1.{service}.>", "why.v1.>", f"heartbeat.v1.{service}.*")
    return Permissions(
        publish=(*own, *records, *_READING, *((_ANSWERS,) if kinds else ())),
        subscribe=(f"{subjects.service_inbox(service)}.>", *kinds),
    )


def mirror_permissions(service: str, resources: Iterable[Resource]) -> Permissions:
    """Return the permissions of a service that reads the streams of these resources, and publishes its heartbeat."""
    streams = [subjects.kube_stream(resource).name for resource in resources]
    asked = tuple(f"{before}{stream}{after}" for stream in streams for before, after in _READING_ONE)
    return Permissions(
        publish=(f"heartbeat.v1.{service}.*", *asked), subscribe=(f"{subjects.service_inbox(service)}.>",)
    )


def publisher_permissions(service: str, answers: Iterable[str]) -> Permissions:
    """Of the service that fills the streams, says who node agents are, answers these requests of theirs, and asks
    JetStream for whoever only reads."""
    kinds = tuple(subjects.report_filter(kind) for kind in answers)
    streams = ("$JS.API.STREAM.>", "$JS.API.CONSUMER.LIST.*", "$JS.API.CONSUMER.CREATE.*.*", *_READING)
    return Permissions(
        publish=("kube.v1.>", "node.v1.>", f"heartbeat.v1.{service}.*", *streams, *_HANDED_ON, _ANSWERS),
        subscribe=(f"{subjects.service_inbox(service)}.>", *kinds, f"{reading.PREFIX}.>", "$SYS.REQ.USER.AUTH"),
        answers=True,
    )


_HANDED_ON = (
    "$JS.API.INFO",
    "$JS.API.DIRECT.GET.>",
    "$JS.API.CONSUMER.NAMES.*",
    "$JS.API.CONSUMER.INFO.*.*",
    "$JS.API.CONSUMER.CREATE.*.*.>",
    "$JS.API.CONSUMER.MSG.NEXT.*.*",
    f"{reading.INBOX}.>",
)
"""What readers ask for besides (`reading`), and where they are told no."""

READER_PERMISSIONS = Permissions(
    publish=(f"{reading.PREFIX}.>",),
    subscribe=(
        *("kube.v1.>", "node.v1.>", "act.v1.>", "why.v1.>", "decisions.v1.>", "heartbeat.v1.>"),
        f"{reading.INBOX}.>",
    ),
)
OPERATOR_PERMISSIONS = Permissions(publish=(EVERYTHING,), subscribe=(EVERYTHING,))
