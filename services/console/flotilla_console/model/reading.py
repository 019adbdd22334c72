"""The common view of workloads of all kinds: their numbers, their limits, and the judgement on them."""

from typing import Literal

import msgspec

State = Literal["blocked", "held", "busy", "fine"]

STATES: tuple[State, ...] = ("blocked", "held", "busy", "fine")
"""The states in the order in which they need attention."""


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of pods, or of what else a kind counts (nodes, images, namespaces)."""

    desired: int = 0
    total: int = 0
    ready: int = 0
    updated: int | None = None  # None: the kind has no revisions
    expected: int = 0  # updated ones when the update is over
    failed: int = 0


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a workload, with the reason in one sentence."""

    state: State
    code: str = ""
    text: str = ""


FINE = Verdict(state="fine")


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of spec and status that workloads of all kinds have in common."""

    numbers: Numbers = Numbers()
    noun: str = "pod"  # that the numbers count
    observed: int | None = None  # the generation that the status is about; None: the kind does not say
    update_revision: str = ""
    current_revision: str = ""
    partition: str = ""  # as written; empty: none
    paused: bool = False
    on_delete: bool = False  # pods are updated when a user deletes them
    strategy: str = ""
    images: tuple[str, ...] = ()
    selector: bytes = b""  # of its pods, as JSON
    trouble: Verdict | None = None  # that its conditions show
    finished: bool = False  # nothing more will happen
    details: tuple[tuple[str, str], ...] = ()  # further facts: label and value
