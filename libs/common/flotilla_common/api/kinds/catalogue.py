"""Lists the kinds that Flotilla serves, and finds them by resource or name."""

from collections.abc import Iterator

from flotilla_common.api.kinds.advancedcronjob import kind as advancedcronjob
from flotilla_common.api.kinds.broadcastjob import kind as broadcastjob
from flotilla_common.api.kinds.cloneset import kind as cloneset
from flotilla_common.api.kinds.containerrecreaterequest import kind as containerrecreaterequest
from flotilla_common.api.kinds.daemonset import kind as daemonset
from flotilla_common.api.kinds.ephemeraljob import kind as ephemeraljob
from flotilla_common.api.kinds.imagelistpulljob import kind as imagelistpulljob
from flotilla_common.api.kinds.imagepulljob import kind as imagepulljob
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.kinds.nodeimage import kind as nodeimage
from flotilla_common.api.kinds.nodepodprobe import kind as nodepodprobe
from flotilla_common.api.kinds.persistentpodstate import kind as persistentpodstate
from flotilla_common.api.kinds.podprobemarker import kind as podprobemarker
from flotilla_common.api.kinds.podunavailablebudget import kind as podunavailablebudget
from flotilla_common.api.kinds.resourcedistribution import kind as resourcedistribution
from flotilla_common.api.kinds.sidecarset import kind as sidecarset
from flotilla_common.api.kinds.statefulset import kind as statefulset
from flotilla_common.api.kinds.uniteddeployment import kind as uniteddeployment
from flotilla_common.api.kinds.workloadspread import kind as workloadspread
from flotilla_common.api.resources import Resource

KINDS: tuple[Kind, ...] = (
    advancedcronjob.KIND,
    broadcastjob.KIND,
    cloneset.KIND,
    containerrecreaterequest.KIND,
    daemonset.KIND,
    ephemeraljob.KIND,
    imagelistpulljob.KIND,
    imagepulljob.KIND,
    nodeimage.KIND,
    nodepodprobe.KIND,
    persistentpodstate.KIND,
    podprobemarker.KIND,
    podunavailablebudget.KIND,
    resourcedistribution.KIND,
    sidecarset.KIND,
    statefulset.KIND,
    uniteddeployment.KIND,
    workloadspread.KIND,
)
"""All kinds, by name.

A new kind is a folder beside these and a line here. Read the list through the module, and only when it is needed.
"""


def kind_of(resource: Resource) -> Kind:
    """Return the kind of a resource. Raises LookupError for a resource that is not ours."""
    return _only((kind for kind in KINDS if kind.resource == resource), f"{resource.kind} {resource.api_version}")


def is_confidential(resource: Resource) -> bool:
    """Report whether objects of the resource may hold secrets, which must not reach the bus."""
    return any(kind.confidential for kind in KINDS if kind.resource == resource)


def named(group: str, name: str) -> Kind:
    """Return the kind of that group and name, in any version. Raises LookupError."""
    found = (kind for kind in KINDS if (kind.resource.group, kind.name) == (group, name))
    return _only(found, f"{name} of {group}")


def called(word: str) -> Kind:
    """Return the kind with that name on the command line, in any case. Raises LookupError."""
    return _only((kind for kind in KINDS if word.lower() in kind.words), word)


def _only(found: Iterator[Kind], what: str) -> Kind:
    kind = next(found, None)
    if kind is None:
        raise LookupError(f"{what} is not one of Flotilla's kinds")
    return kind
