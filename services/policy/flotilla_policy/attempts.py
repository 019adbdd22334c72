"""Writes results to pods, and tracks writes that the apiserver rejects for good.

A user's webhook or policy denies them, or they are invalid. Such a write is sent again after a backoff of its own, or
as soon as its content changes. Meanwhile the other pods of the node are written as usual, and a reason quotes the
apiserver's message.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.control.keystate import Memory
from flotilla_common.control.plan import Chain, Patch
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import first_names, named, pods_word
from flotilla_common.control.writes import WriteFailure

FIRST, LONGEST = timedelta(seconds=1), timedelta(minutes=5)
"""The first backoff after a rejection; it doubles up to the longest."""

_PHASE = "pod "
"""The prefix of phases and notes of pod writes; the pod's uid follows."""

_TIMES = ("lastProbeTime", "lastTransitionTime")


class Attempt(msgspec.Struct, frozen=True):
    """A write of a pod that was sent, and may have been rejected."""

    gist: str
    refusals: int = 0
    text: str = ""  # the apiserver's message
    until: datetime | None = None  # not to be sent again before


class Attempts(msgspec.Struct, frozen=True):
    """The attempts that earlier passes have noted, by uid of the pod."""

    made: Mapping[str, Attempt] = {}
    refused: Mapping[str, str] = {}  # writes of the last pass that were rejected for good, with the apiserver's message

    def of(self, patch: Patch, now: datetime) -> Attempt:
        """Return the state of the write before this pass sends it."""
        gist = gist_of(patch.body)
        last = self.made.get(patch.uid)
        if last is None or last.gist != gist:
            return Attempt(gist)
        text = self.refused.get(patch.uid, "")
        if not text:
            return last
        return Attempt(gist, last.refusals + 1, text, now + min(FIRST * 2 ** min(last.refusals, 10), LONGEST))


class PodWrite(msgspec.Struct, frozen=True):
    """A write of results to a pod."""

    patch: Patch
    pod: str  # the pod's name in reasons
    markers: tuple[str, ...] = ()  # the PodProbeMarkers of its results; reasons are grouped by them


def attempts_of(memory: Memory) -> Attempts:
    """Return the attempts that the last pass noted, and which of its writes were rejected for good."""
    made = {
        key.removeprefix(_PHASE): msgspec.json.decode(note, type=Attempt)
        for key, note in memory.notes.items()
        if key.startswith(_PHASE)
    }
    final = {refusal.text for refusal in memory.refused if refusal.final}
    refused = {
        phase.removeprefix(_PHASE): text
        for phase, text in memory.failures.items()
        if phase.startswith(_PHASE) and text in final
    }
    return Attempts(made, refused)


def send(writes: Iterable[PodWrite], before: Attempts, builder: PlanBuilder, now: datetime) -> None:
    """Add the writes that may be sent now to the plan, and a reason for rejected ones."""
    chains: list[Chain] = []
    refused: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for write in writes:
        attempt, phase = before.of(write.patch, now), f"{_PHASE}{write.patch.uid}"
        if attempt.until is None or builder.deadlines.passed(attempt.until, now):
            chains.append((msgspec.structs.replace(write.patch, phase=phase),))
        builder.notes[phase] = msgspec.json.encode(attempt).decode()
        if attempt.text:
            refused.setdefault((attempt.text, write.markers), []).append(write.pod)
    builder.stage(chains, stop_on_failure=False)
    for (text, _), pods in refused.items():
        _explain(text, pods, builder)


def _explain(text: str, pods: Sequence[str], builder: PlanBuilder) -> None:
    reason = WriteFailure(f"writing the results of probes to {pods_word(len(pods))} ({named(pods)})", text).reason
    builder.reasons.append(msgspec.structs.replace(reason, objects=first_names(pods)))


def gist_of(body: Json) -> str:
    """Return a digest of the write without its times."""
    conditions = [
        {key: value for key, value in condition.items() if key not in _TIMES}
        for condition in mappings(member(body, "status").get("conditions"))
    ]
    content = [member(body, "metadata"), conditions]
    return sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]
