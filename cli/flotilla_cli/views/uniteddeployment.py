"""UnitedDeployment: its subsets, and the workload of each."""

import msgspec

from flotilla_cli.views.kindview import KindView, Summary
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.kinds.uniteddeployment.types import (
    SCHEDULABLE,
    UNITED_DEPLOYMENT,
    SubsetStatus,
    UnitedDeployment,
)
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT


def summary(raw: bytes) -> Summary:
    """Tell of the subsets, in the order in which they are filled."""
    united = msgspec.json.decode(raw, type=UnitedDeployment)
    spec, status = united.spec, united.status
    headline = f"{status.ready_replicas} of {spec.replicas} pods are ready, {status.updated_replicas} are updated"
    if status.reserved_pods:
        headline += f", {status.reserved_pods} more are reserved"
    known = {subset.name: subset for subset in status.subset_statuses}
    names = [subset.name for subset in spec.topology.subsets]
    names += [name for name in known if name not in names]
    rows = [_row(known.get(name, SubsetStatus(name=name))) for name in names]
    return Summary(headline, ("SUBSET", "REPLICAS", "READY", "PARTITION", "RESERVED", "SCHEDULABLE"), rows)


def _row(subset: SubsetStatus) -> tuple[str, ...]:
    condition = next((one for one in subset.conditions if one.type == SCHEDULABLE), None)
    numbers = (subset.replicas, subset.ready_replicas, subset.partition, subset.reserved_pods)
    return (subset.name, *map(str, numbers), "" if condition is None else f"{condition.status} ({condition.reason})")


def _progress(spec: Json, status: Json) -> str:
    wanted, ready, updated = spec.get("replicas", 1), status.get("readyReplicas", 0), status.get("updatedReplicas", 0)
    return "" if ready == updated == wanted else f"{ready} of {wanted} pods ready, {updated} updated"


VIEW = KindView(
    resource=UNITED_DEPLOYMENT,
    summary=summary,
    children=(CLONE_SET, STATEFUL_SET, BUILT_IN_STATEFUL_SET, DEPLOYMENT),
    has_unknown_name=lambda made: made.kind != "ControllerRevision",  # names hang on its next version
    progress=_progress,
    guards_removal=True,
)
