"""One sentence that says what has to be done, out of all that is known (pure)."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum

import msgspec

from flotilla_cli.diagnosis.findings import Findings
from flotilla_cli.diagnosis.planning import Planning
from flotilla_cli.tree.why import Why
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.control.plan import Reason
from flotilla_common.control.refusals import CODES as REFUSALS
from flotilla_common.control.wording import first_names

IMPOSSIBLE = (
    "Undecodable",
    "PlanningFailed",
    "InvalidReplicas",
    "InvalidSelector",
    "InvalidTemplate",
    "InvalidSpec",
    "UnparseableSchedule",
    "SelectingAll",
    "NameTaken",
    "VolumesDiffer",
    "InPlaceImpossible",
    "ResizeImpossible",
)
"""Reasons of services that keep an object from getting on, whatever its pods do."""

TROUBLES = (
    "FailedOnNodes",
    "FailedImages",
    "SecretsMissing",
    "NoMatchingNodes",
    "NotRecreated",
    "CompletedAbnormally",
    "PodUnreadable",
    "Conflict",
    "NamespaceMissing",
    "CannotRead",
    "CreateFailed",
    "UpdateFailed",
    "DeleteFailed",
    "GenerationConflict",
    "TargetMissing",
    "TargetNotFollowed",
    "WaitingForClaim",
    "InvalidNumber",
    "NotUpgradable",
    "NoNodes",
    "PausedByFailure",
    "FailedPods",
    "Failed",
    "DeadlineExceeded",
    "ProgressDeadlineExceeded",
    "Mixed",
    "WaitingForContainers",
    "NeverRuns",
    "NameTooLong",
)
"""Reasons that somebody has to act on where pods do not tell of anything worse."""

WISHES = ("PausedByUser", "Paused", "OnDelete", "PartitionReached", "PartitionedScaling", "NotUpdate", "NotSelected")
"""Reasons that say that the spec itself wants it so."""

ASIDE = ("NodesExcluded", "Misscheduled", "Conflicts")
"""Reasons that tell of nodes or pods that are left out, and not how far the object is."""

DONE = ("Complete", "Completed", "AllNodesDone", "NoPods", "Recorded", "Distributed")


class Word(StrEnum):
    """What kind of state the sentence tells of."""

    STUCK = "stuck"  # somebody has to do something
    UNSTABLE = "unstable"  # all is there, but not for long
    ON_HOLD = "on hold"  # the spec wants it so
    WAITING = "waiting"  # it is under way
    DONE = "done"


STYLES = {Word.STUCK: "bold red", Word.UNSTABLE: "bold red", Word.ON_HOLD: "bold yellow", Word.WAITING: "bold yellow"}
"""How the word looks."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The sentence, and what else was found."""

    word: Word
    sentence: str
    causes: tuple[Reason, ...] = ()  # of pods and nodes, as found from outside

    @property
    def line(self) -> str:
        """What `explain` begins with."""
        return f"{self.word}: {self.sentence}"


def verdict(
    meta: ObjectMeta, why: Why | None, findings: Findings, planning: Planning, told: Sequence[Reason] = ()
) -> Verdict:
    """`told`: what the object itself says, for when there is no record of it."""
    word, sentence = next(_sentences(meta, why, findings, planning, told))
    causes = [
        Reason(code=group.cause.code, message=group.sentence, objects=first_names(group.pods))
        for group in (*findings.groups, *findings.unstable)
    ]
    return Verdict(word=word, sentence=sentence, causes=tuple(causes))


def _sentences(
    meta: ObjectMeta, why: Why | None, findings: Findings, planning: Planning, told: Sequence[Reason]
) -> Iterator[tuple[Word, str]]:
    """The gravest first."""
    reasons = why.reasons if why is not None and why.uid == meta.uid else tuple(told)
    stuck = [group.sentence for group in findings.groups if group.cause.stuck]
    moving = [group.sentence for group in findings.groups if not group.cause.stuck]
    if meta.deletion_timestamp is not None and meta.finalizers:
        yield Word.STUCK, f"it is being deleted, held by finalizer {', '.join(meta.finalizers)}"
    if planning.behind and planning.nobody:
        yield Word.STUCK, f"{planning.nobody}; {planning.behind}"
    yield from ((Word.STUCK, one) for one in _of(reasons, (*REFUSALS, *IMPOSSIBLE)))
    yield from ((Word.STUCK, one) for one in stuck)
    if planning.nobody:
        yield Word.STUCK, planning.nobody
    yield from ((Word.STUCK, one.message) for one in reasons if one.code in TROUBLES or _is_final(one))
    yield from ((Word.UNSTABLE, group.sentence) for group in findings.unstable)
    if planning.behind:
        yield Word.WAITING, planning.behind
    yield from ((Word.ON_HOLD, one) for one in _of(reasons, WISHES))
    yield from ((Word.WAITING, one) for one in moving)
    yield from _rest(reasons)


def _is_final(reason: Reason) -> bool:
    """Of codes that mostly mean that something is under way, the texts that do not."""
    return reason.message.endswith("leaves no room") or reason.message.startswith("no node agent has answered")


def _rest(reasons: Sequence[Reason]) -> Iterator[tuple[Word, str]]:
    """Nothing is known against it."""
    for one in reasons:
        if one.code not in (*DONE, *ASIDE):
            yield Word.WAITING, one.message.removeprefix("waiting: ").removeprefix("waiting ")
    yield Word.DONE, "; ".join(_of(reasons, DONE)) or "nothing to wait for"


def _of(reasons: Iterable[Reason], codes: Sequence[str]) -> list[str]:
    return [one.message for one in reasons if one.code in codes]
