"""StatefulSet: its revisions and pods, by ordinal, and the growth of its claims."""

from collections.abc import Iterator

import msgspec

from flotilla_cli.tree.workload import OrderKey, Workload
from flotilla_cli.views.kindview import KindView
from flotilla_cli.views.progress import numbers_of_pods, progress_of_pods
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, RollingUpdate, StatefulSet
from flotilla_common.api.rollout import Lifecycle


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


VIEW = KindView(resource=STATEFUL_SET, workload=stateful_set, progress=progress_of_pods, guards_removal=True)
