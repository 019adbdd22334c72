"""Validation of a CloneSet, in the version of the request (cloneset.md §3.2, §3.3).

The rules read the raw document that the apiserver will store. What needs a look around comes in as faults that others
found: the pod template is judged by the apiserver, the named pods by whoever can read pods. Object metadata is the
apiserver's own business: it has judged it before it asks a validating webhook.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from flotilla_common.api.admission.fields import NON_NEGATIVE, Fault, forbidden, invalid
from flotilla_common.api.admission.plain import decoded
from flotilla_common.api.admission.workload import (
    LABEL_TOO_LONG,
    LONGEST_NAME,
    change_beyond_images,
    endless_faults,
    selector_faults,
    selector_of,
    too_long,
)
from flotilla_common.api.documents import Json, mapping, member, sequence
from flotilla_common.api.kinds.cloneset.conversion import to_hub
from flotilla_common.api.kinds.cloneset.rollout_validation import rollout_faults
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.versions import V1ALPHA1

PODS_TO_DELETE = "spec.scaleStrategy.podsToDelete"
NO_DEADLINE = 2147483647
"""The progress deadline that means none."""

LONGEST_POD_PREFIX = 247
"""Characters. Pods add a dash and 5 to the name, and 253 are their limit."""

_MUTABLE = (
    "replicas",
    "template",
    "lifecycle",
    "scaleStrategy",
    "updateStrategy",
    "minReadySeconds",
    "progressDeadlineSeconds",
    "volumeClaimTemplates",
    "revisionHistoryLimit",
)
_IMMUTABLE = f"updates to cloneset spec for fields other than {', '.join(_MUTABLE)} are forbidden"


def check_types(document: Json) -> None:
    """Raise ValueError if a field that Flotilla reads has a type that it cannot have."""
    decoded(to_hub(document), CloneSet)


def validate(
    document: Json, old: Json | None = None, template: Iterable[Fault] = (), pods: Iterable[Fault] = ()
) -> list[Fault]:
    """All faults of a CloneSet, and of what an update of `old` must not change. `template`: what is wrong with its pod
    template, `pods`: with its podsToDelete."""
    return [*(_change_faults(document, old) if old is not None else ()), *_spec_faults(document, template, pods)]


def duplicated(names: Iterable[str]) -> list[str]:
    """Names that occur more than once, each once."""
    return [name for name, count in Counter(names).items() if count > 1]


def newly_to_delete(document: Json, old: Json | None) -> list[str]:
    """Names added to podsToDelete, if the version looks them up: v1beta1 leaves unknown names to the controller."""
    names: list[str] = _pods_to_delete(document)
    if document.get("apiVersion") != V1ALPHA1 or duplicated(names):
        return []
    known = set(_pods_to_delete(old)) if old else set[str]()
    return [name for name in names if name not in known]


def name_warnings(name: str, *, short_hash: bool) -> list[str]:
    """What a name leads to that is too long for the pods; nothing if it fits (cloneset.md §9)."""
    if longer := too_long(name, LONGEST_POD_PREFIX, "the pods' names get too long"):
        return longer
    if short_hash:
        return []
    return [f"{warning} (gate CloneSetShortHash avoids it)" for warning in too_long(name, LONGEST_NAME, LABEL_TOO_LONG)]


def _spec_faults(document: Json, template: Iterable[Fault], pods: Iterable[Fault]) -> Iterator[Fault]:
    spec = mapping(document.get("spec"))
    if _number(spec, "replicas") < 0:
        yield invalid("spec.replicas", spec["replicas"], NON_NEGATIVE)
    yield from selector_faults(spec, CLONE_SET.kind)
    yield from template
    yield from endless_faults(spec, CLONE_SET.kind)
    names = _pods_to_delete(document)
    if again := duplicated(names):
        yield invalid(PODS_TO_DELETE, list(names), f"duplicated items [{' '.join(again)}]")
    else:
        yield from pods
    yield from rollout_faults(document)
    if document.get("apiVersion") == V1ALPHA1:
        yield from _deadline_faults(spec)


def _deadline_faults(spec: Json) -> Iterator[Fault]:
    path, deadline = "spec.progressDeadlineSeconds", spec.get("progressDeadlineSeconds")
    if deadline is None:
        return
    if deadline < 0:
        yield invalid(path, deadline, NON_NEGATIVE)
    if deadline != NO_DEADLINE and deadline <= _number(spec, "minReadySeconds"):
        yield invalid(path, deadline, "must be greater than minReadySeconds")


def _change_faults(document: Json, old: Json) -> Iterator[Fault]:
    new, before = mapping(document.get("spec")), mapping(old.get("spec"))
    if selector_of(new) != selector_of(before):
        yield forbidden("spec", _IMMUTABLE)
    only_images = document.get("apiVersion") == V1ALPHA1 and member(new, "updateStrategy").get("type") == "InPlaceOnly"
    if only_images and (found := change_beyond_images(new, before)):
        yield forbidden("spec", f"only allowed to update images in spec for InPlaceOnly, but found {found}")


def _pods_to_delete(document: Json) -> list[str]:
    names = sequence(member(document, "spec", "scaleStrategy").get("podsToDelete"))
    return [name for name in names if isinstance(name, str)]


def _number(spec: Json, key: str) -> int:
    value = spec.get(key)
    return value if isinstance(value, int) else 0
