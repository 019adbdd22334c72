"""Who may say and hear what on the bus (docs/adr/0007).

A node's agent speaks on its own report subjects and hears its own copies and answers, and that is all: no JetStream
API, which could be made to send anything anywhere, and no other node. A service publishes under its own name and reads
streams. `*` and `>` come only from here: names are checked before they become part of a subject.
"""

import re
from collections.abc import Mapping

import msgspec

from flotilla_common.bus import subjects

_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

EVERYTHING = ">"
OPERATOR = "flotilla"
"""The user of people and of the command line: may do everything."""


class Permissions(msgspec.Struct, frozen=True):
    """Subjects that a user may publish on and subscribe to. With `answers`, also the reply subjects of requests."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    answers: bool = False


def node_permissions(node: str) -> Permissions:
    """Of the agent of one node. ValueError for what is no node's name."""
    if not _NODE_NAME.fullmatch(node):
        raise ValueError(f"{node!r} is not the name of a node")
    own = subjects.token(node)
    return Permissions(
        publish=(f"report.v1.{own}.>",), subscribe=(f"node.v1.{own}.>", f"{subjects.node_inbox(node)}.>")
    )


_READING = (
    "$JS.API.STREAM.INFO.*",
    "$JS.API.STREAM.MSG.GET.*",
    "$JS.API.CONSUMER.CREATE.*",
    "$JS.API.CONSUMER.DELETE.*.*",
    "$JS.FC.>",
)
"""What an ordered read of a stream asks for."""


def _controller(service: str) -> Permissions:
    record = tuple(f"$JS.API.STREAM.{verb}.{stream}" for verb in ("CREATE", "UPDATE") for stream in ("act", "why"))
    return Permissions(
        publish=(f"act.v1.{service}.>", "why.v1.>", f"heartbeat.v1.{service}.*", *record, *_READING),
        subscribe=("_INBOX.>",),
    )


def _also(base: Permissions, *, publish: tuple[str, ...] = (), subscribe: tuple[str, ...] = ()) -> Permissions:
    return Permissions((*base.publish, *publish), (*base.subscribe, *subscribe), base.answers)


def _kinds(*kinds: str) -> tuple[str, ...]:
    return tuple(subjects.report_filter(kind) for kind in kinds)


_ANSWERS = "_INBOX_node.>"

SERVICES: Mapping[str, Permissions] = {
    "watcher": Permissions(
        publish=(
            "kube.v1.>",
            "node.v1.>",
            "heartbeat.v1.watcher.*",
            "$JS.API.STREAM.>",
            "$JS.API.CONSUMER.LIST.*",
            *_READING,
            _ANSWERS,
        ),
        subscribe=("_INBOX.>", *_kinds("follow"), "$SYS.REQ.USER.AUTH"),
        answers=True,
    ),
    "cloneset": _controller("cloneset"),
    "jobs": _also(
        _controller("jobs"),
        publish=(_ANSWERS,),
        subscribe=_kinds("pods", "nodeimages", "containerrecreaterequests", "secrets", "events"),
    ),
    "webhook": _controller("webhook"),
    OPERATOR: Permissions(publish=(EVERYTHING,), subscribe=(EVERYTHING,)),
}
"""Of the services, by name."""
