"""What in-place updates depend on besides the pod."""

from collections.abc import Mapping
from datetime import datetime

from flotilla_common.api.rollout import Lifecycle
from flotilla_common.control.plan import Frozen
from flotilla_common.gates import Gates
from flotilla_common.workload.recipe import RevisionRecipe


class InPlaceContext(Frozen):
    """The same for all pods of a workload in one pass."""

    recipe: RevisionRecipe
    lifecycle: Lifecycle | None  # the workload's hooks
    gates: Gates
    server_version: str  # the apiserver's gitVersion: how cpu and memory are changed
    now: datetime
    has_states: bool = True  # an update puts the pod into a lifecycle state; DaemonSet's does not
    revision_names: Mapping[str, str] = {}  # full names by what pods bear of them, where that is another
    drop_field_owners: bool = False  # makes this and all later writes of the pod cheaper for the apiserver (ADR 6)

    def revision_name(self, label: str) -> str:
        """Return the full name of the revision that a pod of this label is on."""
        return self.revision_names.get(label, label)
