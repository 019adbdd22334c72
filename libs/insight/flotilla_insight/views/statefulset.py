"""StatefulSet with its revisions, pods and claims, and PersistentPodState with the places of the pods."""

from collections.abc import Iterator

import msgspec

from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE, PersistentPodState
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, RollingUpdate, StatefulSet
from flotilla_common.api.workload import Lifecycle
from flotilla_insight.views.kindview import KindView, Summary
from flotilla_insight.views.progress import numbers_of_pods, progress_of_pods
from flotilla_insight.workload import OrderKey, Workload


def stateful_set(raw: bytes | msgspec.Raw) -> Workload:
    """Read a StatefulSet as a workload."""
    statefulset = msgspec.json.decode(raw, type=StatefulSet)
    spec, status = statefulset.spec, statefulset.status
    rolling = spec.update_strategy.rolling_update or RollingUpdate()
    return Workload(
        kind=STATEFUL_SET.kind,
        metadata=statefulset.metadata,
        selector=spec.selector,
        lifecycle=spec.lifecycle or Lifecycle(),
        numbers=numbers_of_pods(spec.replicas, status, max(spec.replicas - rolling.partition, 0)),
        observed_generation=status.observed_generation,
        update_revision=status.update_revision,
        current_revision=status.current_revision,
        partition=rolling.partition,
        paused=rolling.paused,
        on_delete=spec.update_strategy.type == "OnDelete",
        min_ready_seconds=rolling.min_ready_seconds,
        details=tuple(_details(statefulset)),
        order=by_ordinal,
    )


def by_ordinal(name: str) -> OrderKey:
    """Return a key that orders pods by their ordinals: web-9 comes before web-10."""
    stem, _, ordinal = name.rpartition("-")
    return (stem, int(ordinal)) if ordinal.isdecimal() else (name, -1)


def _details(statefulset: StatefulSet) -> Iterator[str]:
    spec, status = statefulset.spec, statefulset.status
    if spec.reserve_ordinals:
        yield f"reserved ordinals: {', '.join(map(str, spec.reserve_ordinals))}"
    for claims in status.volume_claims:
        fitting, grown = claims.compatible_replicas, claims.compatible_ready_replicas
        if grown < status.replicas:
            growing = f", {fitting - grown} of them still growing" if grown < fitting else ""
            yield f"claims of {claims.volume_claim_name}: {fitting} of {status.replicas} as the template says{growing}"


def persistent_pod_state(raw: bytes) -> Summary:
    """Describe the workload, how long places are kept, and the place of each pod."""
    found = msgspec.json.decode(raw, type=PersistentPodState)
    target = found.spec.target_ref
    kept = found.spec.persistent_pod_state_retention_policy or "WhenScaled"
    rows = [
        (name, state.node_name or "-", _pairs(state.node_topology_labels), _pairs(state.annotations))
        for name, state in sorted(found.status.pod_states.items(), key=lambda entry: by_ordinal(entry[0]))
    ]
    headline = f"pods of {target.kind} {target.name} ({target.api_version}), kept until {_MOMENTS.get(kept, kept)}"
    return Summary(headline, ("POD", "NODE", "LABELS", "ANNOTATIONS"), rows)


_MOMENTS = {"WhenScaled": "scaled away", "WhenDeleted": "the workload is deleted"}


def _pairs(values: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(values.items())) or "-"


VIEWS = (
    KindView(resource=STATEFUL_SET, workload=stateful_set, progress=progress_of_pods, guards_removal=True),
    KindView(resource=PERSISTENT_POD_STATE, summary=persistent_pod_state),
)
