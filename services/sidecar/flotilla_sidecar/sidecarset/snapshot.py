"""The input of planning one SidecarSet, gathered beforehand and frozen."""

from collections.abc import Collection, Mapping

import msgspec

from flotilla_common.api.core import ControllerRevision, Namespace, Pod
from flotilla_common.api.kinds.podunavailablebudget.types import PodUnavailableBudget
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET, SidecarSet
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import ObjectRef
from flotilla_common.gates import Gates


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the service that change decisions."""

    system_namespace: str = "kruise-system"  # where revisions are kept
    drop_field_owners: bool = True  # clear managedFields of pods that are updated in place (docs/adr/0006)


class SidecarSetSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One SidecarSet and its surroundings at one moment."""

    sidecar_set: SidecarSet
    pods: Collection[Pod] = ()  # pods of all namespaces that record its injection, in any state
    namespaces: Collection[Namespace] = ()  # all; needed only for a namespaceSelector
    revisions: Collection[ControllerRevision] = ()  # of the system namespace: with its label, or its name as prefix
    budgets: Mapping[Key, PodUnavailableBudget] = {}  # budgets that its pods name, by namespace and name
    gates: Gates = Gates()
    options: Options = Options()

    @property
    def subject(self) -> ObjectRef:
        """The SidecarSet, as events and the bus name it."""
        return ObjectRef.of(SIDECAR_SET, self.sidecar_set.metadata)
