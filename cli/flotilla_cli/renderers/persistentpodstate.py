"""PersistentPodState: a card with the places of the pods."""

from functools import partial

import msgspec

from flotilla_cli.card.card import Rendering
from flotilla_cli.card.live import LiveCard
from flotilla_cli.picture import Opener
from flotilla_cli.renderers.statefulset import by_ordinal
from flotilla_common.api.kinds.persistentpodstate.types import PersistentPodState


def persistent_pod_state(raw: bytes) -> Rendering:
    """Whose pods are remembered and for how long, and where each of them was."""
    found = msgspec.json.decode(raw, type=PersistentPodState)
    target = found.spec.target_ref
    kept = found.spec.persistent_pod_state_retention_policy or "WhenScaled"
    rows = [
        (name, state.node_name or "-", _pairs(state.node_topology_labels), _pairs(state.annotations))
        for name, state in sorted(found.status.pod_states.items(), key=lambda entry: by_ordinal(entry[0]))
    ]
    headline = f"pods of {target.kind} {target.name} ({target.api_version}), kept until {_MOMENTS.get(kept, kept)}"
    return Rendering(headline, ("POD", "NODE", "LABELS", "ANNOTATIONS"), rows)


_MOMENTS = {"WhenScaled": "scaled away", "WhenDeleted": "the workload is deleted"}


def _pairs(values: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted(values.items())) or "-"


picture: Opener = partial(LiveCard, persistent_pod_state)
