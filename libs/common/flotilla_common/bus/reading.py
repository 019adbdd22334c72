"""What the user that only reads may ask of JetStream (docs/adr/0018).

Whoever speaks to the JetStream API can write with it: an answer goes to whatever subject the request names, and so does
what a push consumer sends, both with the rights of the server. So this user asks under a prefix of its own, as stock
clients can (`--js-api-prefix`), and somebody who is trusted hands on what only reads, with an answer to its inbox.
"""

import msgspec

from flotilla_common.api.documents import Json, member, text

PREFIX = "reader.v1"
"""What stands for `$JS.API` in requests of this user."""

INBOX = "_INBOX_reader"
"""The beginning of all subjects on which it takes answers. Nobody else hears there."""

CONSUMER_SECONDS = 300
"""How long a consumer of this user stays while nobody pulls: somebody reads a page of `nats stream view`."""

_MARK = {"flotilla.user": "reader"}
_KEPT = (
    *("name", "durable_name", "description", "deliver_policy", "opt_start_seq", "opt_start_time"),
    *("filter_subject", "filter_subjects", "replay_policy", "headers_only", "deliver_subject", "idle_heartbeat"),
)
"""What a consumer of this user may choose: which messages it reads, and how they come."""


class Refused(Exception):
    """The request would do more than read; the text says what."""


class Wanted(msgspec.Struct, frozen=True):
    """A request that only reads."""

    verb: str  # in the terms of JetStream: STREAM.INFO.act
    data: bytes
    consumer: str = ""  # stream and name of a consumer that has to be this user's own


def is_inbox(reply: str) -> bool:
    """Whether an answer there is heard by this user only, and stored by nobody."""
    return reply.startswith(f"{INBOX}.")


def judged(subject: str, data: bytes) -> Wanted:
    """What is to be asked of JetStream for a request under the prefix. Raises Refused."""
    verb = subject.removeprefix(f"{PREFIX}.")
    match verb.split("."):
        case (
            ["INFO"]
            | ["STREAM" | "CONSUMER", "LIST" | "NAMES" | "INFO", *_]
            | ["STREAM", "MSG", "GET", _]
            | ["DIRECT", "GET", *_]
        ):
            return Wanted(verb, data)
        case ["CONSUMER", "MSG", "NEXT", stream, name] | ["CONSUMER", "DELETE", stream, name]:
            return Wanted(verb, data, f"{stream}.{name}")
        case ["CONSUMER", "CREATE", _, *_]:
            return Wanted(verb, _creation(data))
        case _:
            raise Refused(f"this user only reads, which {verb} does not")


def is_own(information: bytes) -> bool:
    """Whether a consumer was made by this user, by what the server tells of it."""
    told = msgspec.json.decode(information, type=Json)
    return _MARK.items() <= member(member(told, "config"), "metadata").items()


def refusal(why: str) -> bytes:
    """An answer in the form of JetStream's own."""
    return msgspec.json.encode({"error": {"code": 403, "description": why}})


def _creation(data: bytes) -> bytes:
    """The request for a consumer that sends to this user only, changes no other one and does not stay."""
    try:
        request = msgspec.json.decode(data, type=Json)
    except msgspec.DecodeError as error:
        raise Refused(f"a consumer that cannot be read: {error}") from error
    config = member(request, "config")
    target = text(config.get("deliver_subject"))
    if target and not is_inbox(target):
        raise Refused("a consumer could send to anybody: only to an inbox of this user's, or on demand")
    made = {key: config[key] for key in _KEPT if key in config} | {
        "ack_policy": "none",
        "inactive_threshold": CONSUMER_SECONDS * 10**9,
        "mem_storage": True,
        "num_replicas": 1,
        "metadata": _MARK,
    }
    return msgspec.json.encode({"stream_name": text(request.get("stream_name")), "config": made, "action": "create"})
