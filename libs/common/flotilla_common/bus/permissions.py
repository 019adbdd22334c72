"""Permissions of each user of the bus (docs/adr/0007).

A node's agent publishes its own reports and heartbeat, receives its own copies and replies, and nothing else: no
JetStream API, through which anything could be sent anywhere, and no other node. A service publishes under its own name
and reads streams. `*` and `>` come only from here: names are checked before they become part of a subject.
"""

import re
from collections.abc import Iterable

import msgspec

from flotilla_common.api.kinds.podunavailablebudget.types import POD_UNAVAILABLE_BUDGET
from flotilla_common.api.resources import Resource
from flotilla_common.bus import readonly, subjects
from flotilla_common.bus.heartbeat import NODE_AGENT

_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

EVERYTHING = ">"
OPERATOR = "flotilla"
"""The user for people and for the command line: may do everything."""
READER = "reader"
"""The read-only user: receives everything that is published, and can change nothing."""


class Permissions(msgspec.Struct, frozen=True):
    """Subjects that a user may publish on and subscribe to. With `answers`, also the reply subjects of requests."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = False


def is_node_name(text: str) -> bool:
    """Report whether the text is a valid node name, so that nothing in it has a meaning in subjects."""
    return _NODE_NAME.fullmatch(text) is not None


def node_permissions(node: str) -> Permissions:
    """Return the permissions of the agent of one node. Raises ValueError for an invalid node name."""
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
"""Subjects of the requests of an ordered read."""

_READING_ONE = (
    ("$JS.API.STREAM.INFO.", ""),
    ("$JS.API.CONSUMER.CREATE.", ""),
    ("$JS.API.CONSUMER.DELETE.", ".*"),
    ("$JS.FC.", ".>"),
)
"""Subjects of the requests of an ordered read of one stream: the text before and after the stream's name."""


_ANSWERS = "_INBOX_node.>"
"""Inboxes of node agents."""


def webhook_permissions() -> Permissions:
    """Return the permissions of the webhook.

    It publishes heartbeats and the writes that it observes, its replicas ask each other for places, and it reads the
    last decisions about budgets.
    """
    own, places = ("act.v1.webhook.>", "heartbeat.v1.webhook.*"), subjects.places("*")
    budgets = subjects.last_why(POD_UNAVAILABLE_BUDGET, "*", "*")
    inbox = f"{subjects.service_inbox('webhook')}.>"
    return Permissions(publish=(*own, places, budgets), subscribe=(inbox, places), answers=True)


def service_permissions(service: str, answers: Iterable[str] = ()) -> Permissions:
    """Return the permissions of a service that reads streams, and publishes its writes and reasons.

    `answers` are the kinds of node agents' reports and requests that it answers.
    """
    kinds = tuple(subjects.report_filter(kind) for kind in answers)
    verbs, streams = ("CREATE", "UPDATE"), (stream.name for stream in subjects.RECORDS)
    records = tuple(f"$JS.API.STREAM.{verb}.{stream}" for stream in streams for verb in verbs)
    own = (f"act.v1.{service}.>", "why.v1.>", f"heartbeat.v1.{service}.*")
    return Permissions(
        publish=(*own, *records, *_READING, *((_ANSWERS,) if kinds else ())),
        subscribe=(f"{subjects.service_inbox(service)}.>", *kinds),
    )


def mirror_permissions(service: str, resources: Iterable[Resource]) -> Permissions:
    """Return the permissions of a service that reads the streams of these resources and sends heartbeats."""
    streams = [subjects.kube_stream(resource).name for resource in resources]
    asked = tuple(f"{before}{stream}{after}" for stream in streams for before, after in _READING_ONE)
    return Permissions(
        publish=(f"heartbeat.v1.{service}.*", *asked), subscribe=(f"{subjects.service_inbox(service)}.>",)
    )


def observer_permissions(service: str) -> Permissions:
    """Return the permissions of a service that reads all streams and heartbeats, and publishes its own heartbeat."""
    return Permissions(
        publish=(f"heartbeat.v1.{service}.*", *_READING),
        subscribe=(f"{subjects.service_inbox(service)}.>", "heartbeat.v1.*.*"),
    )


def publisher_permissions(service: str, answers: Iterable[str]) -> Permissions:
    """Return the permissions of the service that publishes the streams.

    It also stores old messages of the records again, authenticates node agents, answers their requests of the kinds in
    `answers`, and forwards the JetStream requests of read-only users.
    """
    kinds = tuple(subjects.report_filter(kind) for kind in answers)
    streams = ("$JS.API.STREAM.>", "$JS.API.CONSUMER.LIST.*", "$JS.API.CONSUMER.CREATE.*.*", *_READING)
    renewed = [subject for spec in subjects.RECORDS if spec.leaves_gaps for subject in spec.subjects]
    return Permissions(
        publish=("kube.v1.>", "node.v1.>", *renewed, f"heartbeat.v1.{service}.*", *streams, *_HANDED_ON, _ANSWERS),
        subscribe=(f"{subjects.service_inbox(service)}.>", *kinds, f"{readonly.PREFIX}.>", "$SYS.REQ.USER.AUTH"),
        answers=True,
    )


_HANDED_ON = (
    "$JS.API.INFO",
    "$JS.API.DIRECT.GET.>",
    "$JS.API.CONSUMER.NAMES.*",
    "$JS.API.CONSUMER.INFO.*.*",
    "$JS.API.CONSUMER.CREATE.*.*.>",
    "$JS.API.CONSUMER.MSG.NEXT.*.*",
    f"{readonly.INBOX}.>",
)
"""Other requests of read-only users that are forwarded (see `readonly`), and the inbox for refusals."""

READER_PERMISSIONS = Permissions(
    publish=(f"{readonly.PREFIX}.>",),
    subscribe=(
        *("kube.v1.>", "node.v1.>", "act.v1.>", "why.v1.>", "decisions.v1.>", "heartbeat.v1.>"),
        f"{readonly.INBOX}.>",
    ),
)
OPERATOR_PERMISSIONS = Permissions(publish=(EVERYTHING,), subscribe=(EVERYTHING,))
