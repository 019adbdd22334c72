"""PersistentPodState: the nodes of a StatefulSet's pods, so that new pods return there."""

from flotilla_common.api.kinds.kind import Kind, Workers, rules_in
from flotilla_common.api.kinds.persistentpodstate.types import PERSISTENT_POD_STATE

KIND = Kind(
    resource=PERSISTENT_POD_STATE,
    doc="A PersistentPodState records the nodes of a StatefulSet's pods, so that new pods return there.",
    service="statefulset",
    rules=rules_in("flotilla_common.api.kinds.persistentpodstate.api"),
    workers=Workers(8, "persistentpodstate"),
)
