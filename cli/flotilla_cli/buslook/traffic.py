"""What goes over the bus while we listen: how much, and of what."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from flotilla_common.bus import subjects
from flotilla_common.bus.interface import Message

WATCHED = ("kube.v1.>", "node.v1.>", "act.v1.>", "why.v1.>")
"""What is kept on streams. Decisions are these of why.v1 once more."""


class Share(msgspec.Struct, frozen=True):
    """What is said about the objects of one kind in one namespace, or by one service about them."""

    source: str  # kube, node, act or why
    namespace: str
    what: str
    messages: int
    bytes: int


class Traffic:
    """Counts messages."""

    def __init__(self) -> None:
        self._messages = Counter[tuple[str, str, str]]()
        self._bytes = Counter[tuple[str, str, str]]()
        self._streams = Counter[str]()

    def hear(self, message: Message) -> None:
        """One more."""
        size = len(message.subject) + len(message.data) + sum(map(len, [*message.headers, *message.headers.values()]))
        key = _key(message.subject.split("."))
        self._messages[key] += 1
        self._bytes[key] += size
        self._streams[_stream(message.subject)] += size

    @property
    def bytes_by_stream(self) -> Mapping[str, int]:
        """How much each stream was given."""
        return self._streams

    def largest(self, most: int) -> list[Share]:
        """Where most of it comes from."""
        return [Share(*key, self._messages[key], size) for key, size in self._bytes.most_common(most)]


def _key(tokens: list[str]) -> tuple[str, str, str]:
    """Source, namespace, and kind."""
    match tokens:
        case ["kube", _, _, plural, namespace, *_]:
            return "kube", subjects.untoken(namespace), plural
        case ["node", _, _, plural, namespace, *_]:
            return "node", subjects.untoken(namespace), plural
        case ["act", _, service, plural, namespace, *_]:
            return "act", subjects.untoken(namespace), f"{plural} by {service}"
        case ["why", _, plural, namespace, *_]:
            return "why", subjects.untoken(namespace), plural
        case _:
            return tokens[0], "", "markers"


def _stream(subject: str) -> str:
    """The stream that keeps the subject."""
    match subject.split("."):
        case ["kube", _, group, plural, *_]:
            return f"kube_{group}_{plural}"
        case ["node", _, _, plural, *_]:
            return f"node_{plural}"
        case [source, *_]:
            return source
        case _:
            return ""
