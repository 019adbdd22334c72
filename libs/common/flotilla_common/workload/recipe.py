"""How one kind's ControllerRevisions are made and recognised (common.md §7).

A revision is recognised by its content, compared in canonical form, never by its name: revisions that another release
or the reference wrote must be found again, because a false difference would roll every pod of the fleet.
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
    """The part of a revision name or hash label after its last dash; all of it when there is none."""
    return name.rpartition("-")[2]


def belongs(label: str, revision_name: str) -> bool:
    """Whether a pod with this `controller-revision-hash` is on the revision, as CloneSet sees it (§7.7)."""
    return label == revision_name or short_hash(label) == short_hash(revision_name)


class RevisionRecipe(Frozen):
    """What differs between the kinds."""

    canonical: Callable[[bytes], bytes]
    """The `data` of a revision as it is stored, hashed and compared, from `data` as anybody may have written it. It has
    to be pure, for its results are cached, and raises ValueError for data that cannot be read."""
    labels: Callable[[Json], Mapping[str, str]] = lambda data: {}
    """Labels that a new revision takes out of its data; usually none."""
    belongs: Callable[[str, str], bool] = str.__eq__
    """(revision label of a pod, what `label` says of a revision): the pod is on the revision."""
    label: Callable[[ControllerRevision], str] = lambda revision: revision.metadata.name
    """By what the labels and in-place states of pods know a revision; usually its name."""
    hash_label: str = REVISION_HASH_LABEL
    hash_label_follows_name: bool = False
    """Where a name was taken, the hash label is that of the name found at last; else it stays the first one."""
    copies_annotations: bool = True
    """A new revision gets all annotations of its owner."""
    may_lack_labels: bool = False
    """The owner's revisions may have no labels but the hash: the reference gave them none."""
    namespace: str = ""
    """Where the revisions are kept; empty is the owner's namespace."""
    name_limit: int = 223
    """Characters of the owner's name that are kept: it leaves room for a dash and the hash in an object name."""

    def data_of(self, revision: ControllerRevision) -> bytes:
        """The stored data in canonical form; empty if it cannot be read, which no data is equal to."""
        try:
            return cached_canonical(self.canonical, bytes(revision.data))
        except ValueError:
            return b""


class RevisionOwner(Frozen):
    """A workload, as far as its revisions depend on it."""

    resource: Resource
    metadata: ObjectMeta
    selector: Selector  # over the labels of its revisions
    current_name: str = ""  # status.currentRevision
    update_name: str = ""  # status.updatedRevision, where the numbers of revisions may be equal
    collision_count: int | None = None  # status.collisionCount
    labels: Mapping[str, str] = {}  # of new revisions, beside those of the recipe
    annotations: Mapping[str, str] = {}  # of new revisions, and renewed on one that becomes the newest again


@lru_cache(maxsize=4096)
def cached_canonical(canonical: Callable[[bytes], bytes], data: bytes) -> bytes:
    """`canonical(data)`: templates are asked for in every pass, and hardly ever change. Raises ValueError: the data
    cannot be read."""
    return canonical(data)


class _DataSpec(msgspec.Struct):
    template: msgspec.Raw = msgspec.Raw(b"null")


class _Data(msgspec.Struct):
    spec: _DataSpec = msgspec.field(default_factory=_DataSpec)


def template_data(template: bytes | msgspec.Raw) -> bytes:
    """The data of a kind whose revisions hold a pod template, as the user wrote it."""
    return b'{"spec":{"template":%b}}' % bytes(template)


def canonical_template_data(data: bytes) -> bytes:
    """`RevisionRecipe.canonical` of such a kind. Raises ValueError: there is no readable template in the data."""
    try:
        template = read_json(data, _Data).spec.template
    except ValueError as error:
        raise ValueError(f"no template in the revision: {error}") from error
    return revision_data(template)


def template_labels(data: Json) -> Mapping[str, str]:
    """`RevisionRecipe.labels` of such a kind: the template's."""
    return strings(member(data, "spec", "template", "metadata").get("labels"))
