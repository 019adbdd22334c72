"""The recipe of one kind's ControllerRevisions: how they are built and recognized (common.md §7).

A revision is recognized by its content, compared in canonical form, never by its name: revisions that another release
or the reference wrote must be found again, because a false difference would roll out every pod of the fleet.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec

from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.documents import member, strings
from flotilla_common.api.jsontext import read_json
from flotilla_common.api.keys import REVISION_HASH_LABEL
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Frozen, Json
from flotilla_common.workload.hashing import revision_data


def short_hash(name: str) -> str:
    """Return the part of a revision name or hash label after its last dash, or all of it."""
    return name.rpartition("-")[2]


def belongs(label: str, revision_name: str) -> bool:
    """Report whether a pod with this `controller-revision-hash` is on the revision, by CloneSet's rule (§7.7)."""
    return label == revision_name or short_hash(label) == short_hash(revision_name)


class RevisionCodec(Frozen):
    """Encodes the ControllerRevisions of one kind, and labels them."""

    canonical: Callable[[bytes], bytes]
    """Returns the `data` of a revision as stored, hashed and compared, from `data` in any spelling.

    It must be pure, because its results are cached, and raises ValueError for invalid data.
    """
    labels: Callable[[Json], Mapping[str, str]] = lambda data: {}
    """Returns the labels that a new revision gets from its data; usually none."""
    belongs: Callable[[str, str], bool] = str.__eq__
    """Reports whether a pod is on the revision, given its revision label and the revision's `label`."""
    label: Callable[[ControllerRevision], str] = lambda revision: revision.metadata.name
    """Returns the value for a revision in labels and in-place states of pods; usually its name."""
    hash_label: str = REVISION_HASH_LABEL
    hash_label_follows_name: bool = False
    """After a name collision, use the hash of the final name in the hash label; otherwise of the first."""
    copies_annotations: bool = True
    """Copy all annotations of the owner to a new revision."""
    may_lack_labels: bool = False
    """Accept the owner's revisions without labels but the hash: the reference gave them none."""
    namespace: str = ""
    """The namespace of the revisions; empty is the owner's namespace."""
    name_limit: int = 223
    """Characters of the owner's name that are kept, which leaves room for a dash and the hash in an object name."""

    def data_of(self, revision: ControllerRevision) -> bytes:
        """Return the stored data in canonical form; empty, which equals no data, if it is invalid."""
        try:
            return cached_canonical(self.canonical, bytes(revision.data))
        except ValueError:
            return b""


class RevisionOwner(Frozen):
    """The part of a workload that its revisions depend on."""

    resource: Resource
    metadata: ObjectMeta
    selector: Selector  # over the labels of its revisions
    current_name: str = ""  # status.currentRevision
    update_name: str = ""  # status.updatedRevision, where the numbers of revisions may be equal
    collision_count: int | None = None  # status.collisionCount
    labels: Mapping[str, str] = {}  # of new revisions, besides those of the recipe
    annotations: Mapping[str, str] = {}  # of new revisions, and renewed on one that becomes the newest again


@lru_cache(maxsize=4096)
def cached_canonical(canonical: Callable[[bytes], bytes], data: bytes) -> bytes:
    """Return `canonical(data)`, cached because templates are needed in every pass, and rarely change.

    Raises ValueError for invalid data.
    """
    return canonical(data)


class _DataSpec(msgspec.Struct):
    template: msgspec.Raw = msgspec.Raw(b"null")


class _Data(msgspec.Struct):
    spec: _DataSpec = msgspec.field(default_factory=_DataSpec)


def template_data(template: bytes | msgspec.Raw) -> bytes:
    """Return the data of a kind whose revisions hold a pod template, as the user wrote it."""
    return b'{"spec":{"template":%b}}' % bytes(template)


def canonical_template_data(data: bytes) -> bytes:
    """Canonicalize the data of such a kind (`RevisionCodec.canonical`). Raises ValueError without a valid template."""
    try:
        template = read_json(data, _Data).spec.template
    except ValueError as error:
        raise ValueError(f"no template in the revision: {error}") from error
    return revision_data(template)


def template_labels(data: Json) -> Mapping[str, str]:
    """Return the template's labels, for revisions of such a kind (`RevisionCodec.labels`)."""
    return strings(member(data, "spec", "template", "metadata").get("labels"))
