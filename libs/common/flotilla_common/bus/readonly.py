"""JetStream requests of the read-only user (docs/adr/0018).

Any client of the JetStream API can write with it: replies, and the messages of push consumers, go to any subject that
the request names, with the rights of the server. So this user sends requests under a prefix of its own, as stock
clients can (`--js-api-prefix`), and a trusted service forwards read-only requests, with replies to the user's inbox.
"""

import msgspec

from flotilla_common.api.documents import Json, member, text

PREFIX = "reader.v1"
"""The prefix that replaces `$JS.API` in requests of this user."""

INBOX = "_INBOX_reader"
"""The prefix of this user's inboxes; no other user may subscribe to them."""

CONSUMER_SECONDS = 300
"""Time that a consumer of this user stays without being pulled: enough to read a page of `nats stream view`."""

_MARK = {"flotilla.user": "reader"}
_KEPT = (
    *("name", "durable_name", "description", "deliver_policy", "opt_start_seq", "opt_start_time"),
    *("filter_subject", "filter_subjects", "replay_policy", "headers_only", "deliver_subject", "idle_heartbeat"),
)
"""Fields of a consumer that this user may set: which messages it reads, and how they are delivered."""


class Refused(Exception):
    """The request would do more than read; the text gives the reason."""


class Wanted(msgspec.Struct, frozen=True):
    """A request that only reads."""

    verb: str  # in JetStream's terms: STREAM.INFO.act
    data: bytes
    consumer: str = ""  # stream and name of a consumer, which must be this user's own


def is_inbox(reply: str) -> bool:
    """Report whether only this user receives a reply there, and no stream stores it."""
    return reply.startswith(f"{INBOX}.")


def checked(subject: str, data: bytes) -> Wanted:
    """Return the JetStream request for a request under the prefix. Raises Refused unless it only reads."""
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
            raise Refused(f"{verb} is not permitted: this user is read-only")


def is_own(information: bytes) -> bool:
    """Report whether a consumer was created by this user, given the server's information about it."""
    told = msgspec.json.decode(information, type=Json)
    return _MARK.items() <= member(member(told, "config"), "metadata").items()


def refusal(why: str) -> bytes:
    """Return a refusal in the format of JetStream's own errors."""
    return msgspec.json.encode({"error": {"code": 403, "description": why}})


def _creation(data: bytes) -> bytes:
    """Return a request for a consumer that sends to this user only, changes no other consumer and expires."""
    try:
        request = msgspec.json.decode(data, type=Json)
    except msgspec.DecodeError as error:
        raise Refused(f"invalid consumer request: {error}") from error
    config = member(request, "config")
    target = text(config.get("deliver_subject"))
    if target and not is_inbox(target):
        raise Refused("deliver_subject has to be an inbox of this user, or empty")
    made = {key: config[key] for key in _KEPT if key in config} | {
        "ack_policy": "none",
        "inactive_threshold": CONSUMER_SECONDS * 10**9,
        "mem_storage": True,
        "num_replicas": 1,
        "metadata": _MARK,
    }
    return msgspec.json.encode({"stream_name": text(request.get("stream_name")), "config": made, "action": "create"})
