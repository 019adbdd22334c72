"""Validation of a CloneSet, in the version of the request (cloneset.md §3.2, §3.3).

The rules read the raw document that the apiserver will store. What needs a look around comes in as faults that others
found: the pod template is judged by the apiserver, the named pods by whoever can read pods. Object metadata is the
apiserver's own business: it has judged it before it asks a validating webhook.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from flotilla_common.api.admission.fields import (
    NON_NEGATIVE,
    Fault,
    forbidden,
    invalid,
    not_supported,
    required,
)
from flotilla_common.api.admission.patch import operations
from flotilla_common.api.documents import Json, mapping, member, sequence, strings
from flotilla_common.api.kinds.cloneset.conversion import to_hub
from flotilla_common.api.kinds.cloneset.rollout_validation import rollout_faults
from flotilla_common.api.kinds.cloneset.types import CloneSet
from flotilla_common.api.meta import LabelSelector
from flotilla_common.api.podtemplate import canonical_object
from flotilla_common.api.selectors import Selector
from flotilla_common.api.versions import V1ALPHA1

PODS_TO_DELETE = "spec.scaleStrategy.podsToDelete"
NO_DEADLINE = 2147483647
"""The progress deadline that means none."""

LONGEST_NAME = 52
"""Characters. The label controller-revision-hash holds the name, a dash and up to 10 digits, and 63 are its limit."""

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
_IMAGE = re.compile(r"/containers/\d+/image")


def check_types(document: Json) -> None:
    """Raise ValueError if a field that Flotilla reads has a type that it cannot have."""
    msgspec.json.decode(msgspec.json.encode(to_hub(document)), type=CloneSet)


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


def template_changed(document: Json, old: Json | None) -> bool:
    """Whether the pod template, or what becomes volumes of it, is new."""
    new = mapping(document.get("spec"))
    before = mapping(old.get("spec")) if old else {}
    return old is None or any(new.get(key) != before.get(key) for key in ("template", "volumeClaimTemplates"))


def claim_faults(claims: Iterable[Json]) -> Iterator[Fault]:
    """Claim templates that cannot be read, or have no name: no pod could be made with them, and no revision either."""
    for index, claim in enumerate(claims):
        path = f"spec.volumeClaimTemplates[{index}]"
        try:
            canonical_object("PersistentVolumeClaimTemplate", msgspec.json.encode(claim))
        except ValueError as error:
            yield Fault(path, f"Invalid value: {error}")
        if not member(claim, "metadata").get("name"):
            yield required(f"{path}.metadata.name", "it is the name of the pods' volume")


def name_warning(name: str, *, short_hash: bool) -> str:
    """What a name leads to that is too long for the pods; empty if it fits (cloneset.md §9)."""
    begin = f"metadata.name has {len(name)} characters: with more than"
    if len(name) > LONGEST_POD_PREFIX:
        return f"{begin} {LONGEST_POD_PREFIX} the pods' names get too long, and they cannot be created"
    if short_hash or len(name) <= LONGEST_NAME:
        return ""
    return (
        f"{begin} {LONGEST_NAME} the pods' label controller-revision-hash gets too long, and they cannot be created "
        "(gate CloneSetShortHash avoids it)"
    )


def _spec_faults(document: Json, template: Iterable[Fault], pods: Iterable[Fault]) -> Iterator[Fault]:
    spec = mapping(document.get("spec"))
    if _number(spec, "replicas") < 0:
        yield invalid("spec.replicas", spec["replicas"], NON_NEGATIVE)
    yield from _selector_faults(spec)
    yield from template
    yield from _template_faults(member(spec, "template", "spec"))
    names = _pods_to_delete(document)
    if again := duplicated(names):
        yield invalid(PODS_TO_DELETE, list(names), f"duplicated items [{' '.join(again)}]")
    else:
        yield from pods
    yield from rollout_faults(document)
    if document.get("apiVersion") == V1ALPHA1:
        yield from _deadline_faults(spec)


def _selector_faults(spec: Json) -> Iterator[Fault]:
    given = spec.get("selector")
    if given is None:
        yield required("spec.selector")
        return
    try:
        selector = Selector.compile(msgspec.convert(given, LabelSelector))
    except ValueError as error:
        yield invalid("spec.selector", given, str(error))
        return
    if selector.empty:
        yield invalid("spec.selector", given, "empty selector is invalid for cloneset")
        return
    labels = member(spec, "template", "metadata").get("labels")
    if not selector.matches(strings(labels)):
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def _template_faults(pod: Json) -> Iterator[Fault]:
    restart = pod.get("restartPolicy")
    if restart not in (None, "", "Always"):
        yield not_supported("spec.template.spec.restartPolicy", restart, ["Always"])
    if pod.get("activeDeadlineSeconds") is not None:
        yield forbidden("spec.template.spec.activeDeadlineSeconds", "a CloneSet's pods have no deadline")


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
    if _selector(new) != _selector(before):
        yield forbidden("spec", _IMMUTABLE)
    if document.get("apiVersion") == V1ALPHA1 and member(new, "updateStrategy").get("type") == "InPlaceOnly":
        for change in operations(member(before, "template", "spec"), member(new, "template", "spec")):
            if change.op != "replace" or not _IMAGE.fullmatch(change.path):
                found = f"{change.op} {change.path}"
                yield forbidden("spec", f"only allowed to update images in spec for InPlaceOnly, but found {found}")
                return


def _selector(spec: Json) -> LabelSelector:
    return msgspec.convert(spec.get("selector") or {}, LabelSelector)


def _pods_to_delete(document: Json) -> list[str]:
    names = sequence(member(document, "spec", "scaleStrategy").get("podsToDelete"))
    return [name for name in names if isinstance(name, str)]


def _number(spec: Json, key: str) -> int:
    value = spec.get(key)
    return value if isinstance(value, int) else 0
