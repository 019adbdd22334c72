"""Validation of a DaemonSet, in the version of the request (daemonset.md §3.2, §3.3).

The rules read the raw document that the apiserver will store. The pod template is judged by the apiserver, and comes
in as faults.
"""

from collections.abc import Iterable, Iterator

from flotilla_common.api.admission.fields import NON_NEGATIVE, Fault, forbidden, invalid
from flotilla_common.api.admission.plain import decoded
from flotilla_common.api.admission.workload import endless_faults, selector_faults, selector_of, too_long
from flotilla_common.api.documents import Json, mapping, member
from flotilla_common.api.kinds.daemonset.rollout_validation import rollout_faults
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet

LONGEST_NAME = 242
"""Characters. Revisions add a dash and up to 10 digits, and 253 are their limit; pods add less."""

_MUTABLE = (
    "template",
    "updateStrategy",
    "lifecycle",
    "burstReplicas",
    "minReadySeconds",
    "revisionHistoryLimit",
    "scaleStrategy",
)
_IMMUTABLE = f"updates to daemonset spec for fields other than {', '.join(_MUTABLE)} are forbidden"


def check_types(document: Json) -> None:
    """Raise ValueError if a field that Flotilla reads has a type that it cannot have. The fields of v1alpha1's spec are
    the same, only fewer."""
    decoded(document, DaemonSet)


def validate(document: Json, old: Json | None = None, template: Iterable[Fault] = ()) -> list[Fault]:
    """All faults of a DaemonSet, and of what an update of `old` must not change. `template`: what is wrong with its pod
    template."""
    spec = mapping(document.get("spec"))
    changes = _change_faults(spec, mapping(old.get("spec"))) if old is not None else ()
    return [*changes, *_spec_faults(document, spec, template)]


def name_warning(name: str) -> str:
    """What a name leads to that is too long for the revisions; empty if it fits."""
    return too_long(name, LONGEST_NAME, "the revisions' names get too long") if len(name) > LONGEST_NAME else ""


def _change_faults(spec: Json, old: Json) -> Iterator[Fault]:
    """The selector is all that the schema knows and that never changes."""
    if selector_of(spec) != selector_of(old):
        yield forbidden("spec", _IMMUTABLE)


def _spec_faults(document: Json, spec: Json, template: Iterable[Fault]) -> Iterator[Fault]:
    yield from selector_faults(spec, DAEMON_SET.kind)
    yield from template
    yield from endless_faults(spec, DAEMON_SET.kind)
    for name in ("minReadySeconds", "revisionHistoryLimit"):
        if (spec.get(name) or 0) < 0:
            yield invalid(f"spec.{name}", spec[name], NON_NEGATIVE)
    yield from rollout_faults(document)
    if member(spec, "lifecycle").get("inPlaceUpdate") is not None:
        yield forbidden("spec.lifecycle.inPlaceUpdate", "inPlaceUpdate hook has not supported yet")
