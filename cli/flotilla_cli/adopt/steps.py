"""What plans are made of: steps, each some writes and what is waited for after them."""

from enum import StrEnum

import msgspec

from flotilla_cli.install.kinds import Place
from flotilla_common.api.documents import Json


class Verb(StrEnum):
    """How an object is written."""

    PATCH = "patch"  # a merge patch
    STATUS = "patch status of"  # a merge patch, of the status
    APPLY = "apply"  # server-side, by force
    RESTORE = "restore"  # the whole object as it was; made anew if it is gone
    DELETE = "delete"  # may be gone already


class Write(msgspec.Struct, frozen=True):
    """One write of one object."""

    verb: Verb
    place: Place
    body: Json = {}


class PodsGone(msgspec.Struct, frozen=True):
    """Until a Deployment or DaemonSet has no pods."""

    owner: Place


class Quiet(msgspec.Struct, frozen=True):
    """Until nobody else holds a lease."""

    lease: Place


class Available(msgspec.Struct, frozen=True):
    """Until all replicas of a Deployment are available."""

    deployment: Place


class Rewritten(msgspec.Struct, frozen=True):
    """Every object of a CRD's kind is written once as it is, which brings it into the storage version."""

    definition: Json


class Refused(msgspec.Struct, frozen=True):
    """Until the apiserver refuses a write by a policy. The write is tried, and never done."""

    write: Write  # a merge patch
    policy: str


class Noticed(msgspec.Struct, frozen=True):
    """Until every apiserver has noticed a change of a CRD: so many seconds, as nothing tells."""

    seconds: float


Until = PodsGone | Quiet | Available | Rewritten | Noticed | Refused


class Step(msgspec.Struct, frozen=True):
    """One line of a plan."""

    what: str
    writes: tuple[Write, ...] = ()
    until: tuple[Until, ...] = ()


class Plan(msgspec.Struct, frozen=True):
    """The steps in order, what the user should know before, and what speaks against it; nothing is done then."""

    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def patch(place: Place, body: Json) -> Write:
    """A merge patch."""
    return Write(Verb.PATCH, place, body)
