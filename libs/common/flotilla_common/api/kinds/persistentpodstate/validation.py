"""What a PersistentPodState must not be, in its hub version (persistentpodstate.md §3).

Keys and weights are not judged: the scheduler and the apiserver do that when a pod comes back.
"""

from collections.abc import Collection, Iterable, Iterator

from flotilla_common.api.admission.fields import Fault, forbidden, invalid
from flotilla_common.api.documents import Json, mapping, member
from flotilla_common.api.kinds.persistentpodstate.types import PersistentPodState
from flotilla_common.api.kinds.persistentpodstate.whitelist import WHITE_LIST, CustomWorkload, supported

_TARGET = "spec.targetRef"


def spec_faults(document: Json, state: PersistentPodState, custom: Collection[CustomWorkload]) -> Iterator[Fault]:
    """The faults of the object by itself; `state` is the document as it is meant."""
    spec, target = state.spec, state.spec.target_ref
    if not (target.api_version and target.kind and target.name):
        yield invalid(_TARGET, _shown(document), "apiVersion, kind and name must not be empty")
    elif not supported(target.api_version, target.kind, custom):
        yield invalid(_TARGET, _shown(document), f"must be StatefulSet or in {WHITE_LIST}")
    if spec.required_persistent_topology is None and not spec.preferred_persistent_topology:
        detail = "requiredPersistentTopology and preferredPersistentTopology cannot be empty at the same time"
        yield invalid("spec", mapping(document.get("spec")), detail)


def change_faults(state: PersistentPodState, old: PersistentPodState) -> Iterator[Fault]:
    """Another version of the same workload is a change, too."""
    if state.spec.target_ref != old.spec.target_ref:
        yield forbidden(_TARGET, "targetRef is immutable")


def conflict_faults(document: Json, state: PersistentPodState, others: Iterable[PersistentPodState]) -> Iterator[Fault]:
    """A workload has one PersistentPodState. `others`: those of the namespace under other names."""
    for other in others:
        if other.spec.target_ref.identity == state.spec.target_ref.identity:
            detail = f"conflict with other PersistentPodState {other.metadata.name}"
            yield invalid(_TARGET, _shown(document), detail)


def _shown(document: Json) -> Json:
    return member(document, "spec", "targetRef")
