"""ControllerRevisions: choosing, creating, raising and forgetting them (common.md §7)."""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.meta import OwnerReference
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Chain, Delete, Frozen


def short_hash(name: str) -> str:
    """The part of a revision name or hash label after its last dash; all of it when there is none."""
    return name.rpartition("-")[2]


def belongs(label: str, revision_name: str) -> bool:
    """Whether a pod with this `controller-revision-hash` is on the revision, as CloneSet sees it (§7.7)."""
    return label == revision_name or short_hash(label) == short_hash(revision_name)


class RevisionChoice(Frozen):
    """The outcome of looking at the template and the stored revisions.

    `writes` is empty when nothing is to be done; the update revision can be planned with before it is written.
    """

    update: ControllerRevision
    current: ControllerRevision
    collision_count: int
    writes: Chain = ()


def choose_revisions(
    *,
    owner: OwnerReference,
    namespace: str,
    selector: Selector,
    annotations: Mapping[str, str],
    template: msgspec.Raw,
    claim_hash: str | None,
    stored: Sequence[ControllerRevision],
    current_name: str,
    collision_count: int | None,
) -> RevisionChoice:
    """Find or make the update revision of `template`, and find the current one (§7.4).

    `annotations` are the owner's. `claim_hash` is None for kinds without it. `stored` may hold revisions of others:
    they only matter where they occupy a name.
    """
    raise NotImplementedError


def surplus_revisions(
    stored: Collection[ControllerRevision], live: Collection[str], limit: int, *, owner_uid: str
) -> tuple[Delete, ...]:
    """Deletes of the owner's oldest revisions beyond `limit` that are not live (§7.5).

    `live` holds the names of the current and the update revision and the revision labels of all listed pods.
    """
    raise NotImplementedError
