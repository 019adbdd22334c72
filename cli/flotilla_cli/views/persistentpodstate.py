"""PersistentPodState: the places of the pods."""

import msgspec

from flotilla_cli.views.kindview import KindView, Summary
from flotilla_cli.views.statefulset import by_ordinal
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE, PersistentPodState


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


VIEW = KindView(resource=PERSISTENT_POD_STATE, summary=persistent_pod_state)
