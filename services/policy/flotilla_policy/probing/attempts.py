"""Writes of results onto pods, and what becomes of those that the apiserver refuses for good: a webhook or a policy of
the user denies them, or they are invalid.

Such a write is sent again after a back-off of its own, or as soon as it says something else. Meanwhile the other pods
of the node are written as if nothing had happened, and a reason says in the apiserver's words why the pod is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

import msgspec

from flotilla_common.api.documents import Json, mappings, member
from flotilla_common.control.controller import Memory
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Chain, Patch
from flotilla_common.control.refusals import Refusal
from flotilla_common.control.wording import first_names, named, pods_word

FIRST, LONGEST = timedelta(seconds=1), timedelta(minutes=5)
"""Before the first try after a refusal; doubling up to the longest."""

_PHASE = "pod "
"""Marks the writes of pods, by uid, in what a pass leaves for the next one."""

_TIMES = ("lastProbeTime", "lastTransitionTime")


class Attempt(msgspec.Struct, frozen=True):
    """A write of a pod that was sent, and that may have been refused."""

    gist: str
    refusals: int = 0
    text: str = ""  # the apiserver's own words
    until: datetime | None = None  # not to be sent again before


class Attempts(msgspec.Struct, frozen=True):
    """The notes of earlier passes: attempts by uid of the pod."""

    made: Mapping[str, Attempt] = {}
    refused: Mapping[str, str] = {}  # those of the last pass that were refused for good, with the apiserver's words

    def of(self, patch: Patch, now: datetime) -> Attempt:
        """Return how far the write of the pod is, before this pass sends it."""
        gist = gist_of(patch.body)
        last = self.made.get(patch.uid)
        if last is None or last.gist != gist:
            return Attempt(gist)
        text = self.refused.get(patch.uid, "")
        if not text:
            return last
        return Attempt(gist, last.refusals + 1, text, now + min(FIRST * 2 ** min(last.refusals, 10), LONGEST))


class PodWrite(msgspec.Struct, frozen=True):
    """A write that brings results onto a pod."""

    patch: Patch
    pod: str  # as reasons name it
    markers: tuple[str, ...] = ()  # the PodProbeMarkers whose results it may bring: reasons about others are apart


def attempts_of(memory: Memory) -> Attempts:
    """Return the attempts that the last pass has noted, and which of its writes were refused for good."""
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


def send(writes: Iterable[PodWrite], before: Attempts, draft: Draft, now: datetime) -> None:
    """Add the writes that may be sent now to the plan, and a reason for those that were refused."""
    chains: list[Chain] = []
    refused: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for write in writes:
        attempt, phase = before.of(write.patch, now), f"{_PHASE}{write.patch.uid}"
        if attempt.until is None or draft.waits.passed(attempt.until, now):
            chains.append((msgspec.structs.replace(write.patch, phase=phase),))
        draft.notes[phase] = msgspec.json.encode(attempt).decode()
        if attempt.text:
            refused.setdefault((attempt.text, write.markers), []).append(write.pod)
    draft.stage(chains, stop_on_failure=False)
    for (text, _), pods in refused.items():
        _explain(text, pods, draft)


def _explain(text: str, pods: Sequence[str], draft: Draft) -> None:
    reason = Refusal(f"writing the results of probes to {pods_word(len(pods))} ({named(pods)})", text).reason
    draft.reasons.append(msgspec.structs.replace(reason, objects=first_names(pods)))


def gist_of(body: Json) -> str:
    """Return a digest of what the write says, but for times."""
    conditions = [
        {key: value for key, value in condition.items() if key not in _TIMES}
        for condition in mappings(member(body, "status").get("conditions"))
    ]
    said = [member(body, "metadata"), conditions]
    return sha256(msgspec.json.encode(said, order="sorted")).hexdigest()[:16]
