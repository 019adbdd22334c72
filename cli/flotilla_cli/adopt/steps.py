"""The steps of plans: writes, each with conditions to wait for."""

from enum import StrEnum

import msgspec

from flotilla_common.api.documents import Json
from flotilla_insight.installation.objects import Place


class WriteVerb(StrEnum):
    """How an object is written."""

    PATCH = "patch"  # a merge patch
    STATUS = "patch status of"  # a merge patch of the status
    APPLY = "apply"  # server-side, forced
    RESTORE = "restore"  # the whole object as it was; created if it is gone
    DELETE = "delete"  # may be gone already


class Write(msgspec.Struct, frozen=True):
    """One write of one object."""

    verb: WriteVerb
    place: Place
    body: Json = {}


class PodsGone(msgspec.Struct, frozen=True):
    """Wait until a Deployment or DaemonSet has no pods."""

    owner: Place


class LeaseFree(msgspec.Struct, frozen=True):
    """Wait until a lease has no other holder."""

    lease: Place


class Available(msgspec.Struct, frozen=True):
    """Wait until all replicas of a Deployment are available."""

    deployment: Place


class Rewritten(msgspec.Struct, frozen=True):
    """Write every object of a CRD's kind unchanged, which converts it to the storage version."""

    definition: Json


class PolicyEnforced(msgspec.Struct, frozen=True):
    """Wait until the apiserver rejects a write by a policy, tested by dry runs."""

    write: Write  # a merge patch
    policy: str


class Delay(msgspec.Struct, frozen=True):
    """Wait for a number of seconds until every apiserver has noticed a change of a CRD, which cannot be observed."""

    seconds: float


Until = PodsGone | LeaseFree | Available | Rewritten | Delay | PolicyEnforced


class MigrationStep(msgspec.Struct, frozen=True):
    """One line of a plan."""

    what: str
    writes: tuple[Write, ...] = ()
    until: tuple[Until, ...] = ()


class MigrationPlan(msgspec.Struct, frozen=True):
    """The steps in order, notes for the user, and reasons to refuse, which prevent all steps."""

    steps: tuple[MigrationStep, ...] = ()
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def patch(place: Place, body: Json) -> Write:
    """Return a merge patch."""
    return Write(WriteVerb.PATCH, place, body)
