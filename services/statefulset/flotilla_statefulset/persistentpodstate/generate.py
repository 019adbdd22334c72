"""Generates the PersistentPodStates that workloads request by annotation (persistentpodstate.md §4).

The source annotations are stored on the generated object, so that plans need no history: as long as the workload's
annotations are unchanged, the spec is left alone, with any edits that users have made.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

from flotilla_common.api.kinds.persistentpodstate.types import (
    PERSISTENT_POD_STATE,
    PersistentPodAnnotation,
    PersistentPodState,
    PersistentPodStateSpec,
    PreferredTopology,
    Topology,
)
from flotilla_common.api.meta import ObjectMeta, controller_of
from flotilla_common.control.plan import Create, Intent, Json, Patch, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.writes import create_of, delete_of, patch_of
from flotilla_statefulset.persistentpodstate.snapshot import StateSnapshot, Workload

AUTO = "kruise.io/auto-generate-persistent-pod-state"
REQUIRED = "kruise.io/required-persistent-topology"
PREFERRED = "kruise.io/preferred-persistent-topology"
ANNOTATIONS = "kruise.io/persistent-pod-annotations"
GENERATED_FROM = "kruise.io/generated-from"
"""On a generated PersistentPodState: the values of the three annotations from which it was made."""

WEIGHT = 100


def asks(meta: ObjectMeta) -> bool:
    """Report whether the workload requests a PersistentPodState."""
    return meta.annotations.get(AUTO) == "true"


def generate(snapshot: StateSnapshot, builder: PlanBuilder) -> bool:
    """Plan what the annotations request. Return True if the object or its spec is about to change."""
    asking = asking_among(snapshot.namesakes)
    owner = _owner(snapshot, asking)
    for other in asking:
        if owner is not None and other is not owner:
            whose = "targets" if snapshot.state is not None else "belongs to"
            text = f"{other.called} gets none: this one {whose} {owner.called}"
            builder.reason(State.STUCK, "GenerationConflict", text)
        elif owner is None:
            text = f"{other.called} gets none: this one has another owner"
            builder.reason(State.STUCK, "GenerationConflict", text)
    if owner is None:
        return False
    if snapshot.state is None:
        return _create(snapshot, owner, builder)
    if owner in asking:
        return _renew(snapshot.state, owner, builder)
    return not asks(owner.metadata) and _delete(snapshot, snapshot.state, owner, builder)


def asking_among(namesakes: Collection[Workload]) -> list[Workload]:
    """Return the workloads that should have a generated PersistentPodState."""
    return [one for one in namesakes if asks(one.metadata) and wanted(one) is not None and not one.terminating]


def wanted(workload: Workload) -> PersistentPodStateSpec | None:
    """Return the spec that the annotations describe; None if they name no topology.

    Values are split at commas, and blanks are kept (§4).
    """
    values = workload.metadata.annotations
    required, preferred, annotations = (_keys(values.get(name, "")) for name in (REQUIRED, PREFERRED, ANNOTATIONS))
    if not required and not preferred:
        return None
    terms = [PreferredTopology(weight=WEIGHT, preference=Topology(keys=preferred))] if preferred else []
    return PersistentPodStateSpec(
        target_ref=workload.reference,
        required_persistent_topology=Topology(keys=required) if required else None,
        preferred_persistent_topology=terms,
        persistent_pod_annotations=[PersistentPodAnnotation(key=key) for key in annotations],
    )


def source(annotations: Mapping[str, str]) -> str:
    """Return the values of the three annotations as canonical JSON."""
    values = {name.rpartition("/")[2]: annotations.get(name, "") for name in (REQUIRED, PREFERRED, ANNOTATIONS)}
    return msgspec.json.encode(values).decode()


def _keys(value: str) -> list[str]:
    return value.split(",") if value else []


def _owner(snapshot: StateSnapshot, asking: Sequence[Workload]) -> Workload | None:
    """Return the namesake that the PersistentPodState belongs to, or will belong to."""
    state = snapshot.state
    if state is None:
        return asking[0] if asking else None
    controller = controller_of(state.metadata)
    if controller is not None:
        return next((workload for workload in snapshot.namesakes if workload.metadata.uid == controller.uid), None)
    target = state.spec.target_ref.identity
    return next((workload for workload in snapshot.namesakes if workload.reference.identity == target), None)


def _create(snapshot: StateSnapshot, owner: Workload, builder: PlanBuilder) -> bool:
    if snapshot.rival:
        text = f"{owner.called} already has one: {snapshot.rival}"
        builder.reason(State.STUCK, "GenerationConflict", text)
        return False
    builder.reason(State.PROGRESSING, "Generated", f"generated from the annotations of {owner.called}")
    builder.stage([(_made(snapshot, owner),)])
    return True


def _made(snapshot: StateSnapshot, owner: Workload) -> Create:
    reference = owner.reference
    controller: Json = msgspec.to_builtins(reference) | {"uid": owner.metadata.uid, "controller": True}
    body: Json = {
        **PERSISTENT_POD_STATE.type_meta,
        "metadata": {
            "name": snapshot.name,
            "namespace": snapshot.namespace,
            "annotations": {GENERATED_FROM: source(owner.metadata.annotations)},
            "ownerReferences": [controller],
        },
        "spec": msgspec.to_builtins(wanted(owner)),
    }
    return create_of(PERSISTENT_POD_STATE, body, Intent.CREATE, f"annotations of {owner.called}")


def _renew(state: PersistentPodState, owner: Workload, builder: PlanBuilder) -> bool:
    """Update the generated fields, unless the annotations are unchanged."""
    spec, recorded = wanted(owner), source(owner.metadata.annotations)
    assert spec is not None, "only workloads that request a topology get here"
    known = state.metadata.annotations.get(GENERATED_FROM)
    if spec.target_ref.identity != state.spec.target_ref.identity:
        text = f"{owner.called} gets none: this one targets another workload"
        builder.reason(State.STUCK, "GenerationConflict", text)
        return False
    builder.reason(State.NOTE, "Generated", f"follows the annotations of {owner.called}")
    if known == recorded or (known is None and _parts(spec) == _parts(state.spec)):
        return False
    builder.stage([(_patch(state, spec, recorded),)])
    return True


def _parts(spec: PersistentPodStateSpec) -> tuple[object, ...]:
    return (
        spec.required_persistent_topology,
        spec.preferred_persistent_topology,
        spec.persistent_pod_annotations,
    )


def _patch(state: PersistentPodState, spec: PersistentPodStateSpec, recorded: str) -> Patch:
    """Build the patch of the generated fields."""
    # The target stays: only its version could differ, and that is immutable.
    changed: Json = msgspec.to_builtins(spec)
    parts = ("requiredPersistentTopology", "preferredPersistentTopology", "persistentPodAnnotations")
    body: Json = {
        "metadata": {"annotations": {GENERATED_FROM: recorded}},
        "spec": {part: changed.get(part) for part in parts},
    }
    cause = "the annotations of its workload changed"
    return patch_of(PERSISTENT_POD_STATE, state.metadata, Intent.UPDATE, cause, body=body, on_version=True)


def _delete(snapshot: StateSnapshot, state: PersistentPodState, owner: Workload, builder: PlanBuilder) -> bool:
    """Delete an object that the workload controls, once the apiserver confirms that it is no longer requested."""
    controller = controller_of(state.metadata)
    if controller is None or controller.uid != owner.metadata.uid:
        return False
    found = snapshot.confirmed_read.found if snapshot.confirmed_read is not None else None
    if found is None or found.uid != owner.metadata.uid or asks(found):
        builder.reason(State.PROGRESSING, "ReadingTarget", f"checking whether {owner.called} still requests it")
        return False
    cause = f"{owner.called} no longer requests it"
    builder.reason(State.PROGRESSING, "NoLongerWanted", cause)
    builder.stage([(delete_of(PERSISTENT_POD_STATE, state.metadata, Intent.DELETE, cause),)])
    return True
