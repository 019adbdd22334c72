"""The input and output of the causes: a pod's surroundings with its events, the cause, and its text.

Texts of the apiserver and kubelet are shortened: they lose wrappers of an error, but no facts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_common.api.core import Node, PersistentVolumeClaim
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.workload import Lifecycle

LONGEST = 300
"""Characters of a foreign text that are shown: its beginning names the cause."""

_NOISE = re.compile(
    r"rpc error: code = \w+ desc = |Error: |ErrImagePull: "
    r"|(?:Back-off pulling|[Ff]ailed to pull(?: and unpack)?) image \"[^\"]*\":? ?"
    r"|failed to (?:resolve (?:reference \"[^\"]*\"|image)|copy|do request): "
    r"|failed to create (?:containerd task|shim task|container): "
    r"|OCI runtime (?:create|start) failed: |runc (?:create|run) failed: "
    r"|(?:unable to start container process|error during container init|starting container process caused): "
    r"|,? no new claims to deallocate,?"
    r"| \(pod: \"[^\"]*\", container: [^)]*\)"
    r"|container_linux\.go:\d+: |process_linux\.go:\d+: "
)


def bare(text: str) -> str:
    """Return the text in one line, without the wrappers of an error, and cut to LONGEST."""
    line = " ".join(_NOISE.sub("", text).split()).rstrip(": ").removesuffix(": unknown")
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def last_line(text: str) -> str:
    """Return the last line with content, or ""."""
    lines = [line.strip() for line in text.splitlines()]
    return bare(next((line for line in reversed(lines) if line), ""))


def seconds_word(seconds: float) -> str:
    """Return "30 s"."""
    return f"{seconds:g} s"


def restarts_word(count: int) -> str:
    """Return "1 restart", "2 restarts"."""
    return "1 restart" if count == 1 else f"{count} restarts"


_CONTAINER = re.compile(r"spec\.\w+\{(.+)\}")


class _Series(Model):
    last_observed_time: datetime | None = None


class _Involved(Model):
    field_path: str = ""


class PodEvent(Model):
    """One event, in either of the two formats for counting."""

    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    reason: str = ""
    message: str = ""
    involved_object: _Involved = _Involved()
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: _Series | None = None

    @property
    def at(self) -> datetime | None:
        """The time when it was last observed."""
        observed = self.series.last_observed_time if self.series else None
        return observed or self.last_timestamp or self.event_time or self.metadata.creation_timestamp

    @property
    def container(self) -> str:
        """The container of the event; empty if it is about the whole pod."""
        found = _CONTAINER.fullmatch(self.involved_object.field_path)
        return found[1] if found else ""


def newest_first(events: Sequence[PodEvent]) -> list[PodEvent]:
    """Sort the events, newest first; events without a time come last."""
    timed = [(event.at, event) for event in events]
    known = [(at, event) for at, event in timed if at is not None]
    known.sort(key=lambda pair: pair[0], reverse=True)
    return [event for _, event in known] + [event for at, event in timed if at is None]


def about(
    events: Sequence[PodEvent], *reasons: str, container: str = "", since: datetime | None = None
) -> Iterator[PodEvent]:
    """Yield events with the given reasons, newest first, of one container if named, and since a time if given."""
    for event in newest_first(events):
        if event.reason not in reasons or (container and event.container not in ("", container)):
            continue
        if since is None or event.at is None or event.at >= since:
            yield event


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The cause why a pod does not serve; `message` is the same for pods with the same problem, `detail` is not."""

    code: str  # CamelCase and stable: docs/explain.md lists them
    message: str  # follows "web-1: "
    detail: str = ""  # restarts, last log line, the node
    stuck: bool = True  # a person has to act; False: it is in progress
    since: datetime | None = None  # only where the duration may matter to a reader

    @property
    def text(self) -> str:
        """Message and detail."""
        return f"{self.message} ({self.detail})" if self.detail else self.message


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim that a pod mounts. `found` is None if it does not exist."""

    found: PersistentVolumeClaim | None
    events: Sequence[PodEvent] = ()


class PodContext(msgspec.Struct, frozen=True, kw_only=True):
    """The known context of a pod. Missing entries are unknown, and nothing is concluded from them."""

    now: datetime | None = None
    events: Sequence[PodEvent] = ()  # about the pod
    claims: Mapping[str, Claim] = {}  # by name
    nodes: Mapping[str, Node | None] = {}  # by name; None: it surely does not exist
    silent: Mapping[str, datetime] = {}  # nodes with an expired kubelet lease, and its last renewal
    last_words: Mapping[str, str] = {}  # the last line that a container logged before its restart, by container
    lifecycle: Lifecycle | None = None  # the hooks of its workload
    min_ready_seconds: int = 0


NOTHING = PodContext()
"""No context: only the pod is known."""
