"""The terms of a StatefulSet; its scenarios are in files of their own, one per theme."""

from collections.abc import Iterable
from itertools import count, islice

import msgspec

from flotilla_common.api.kinds.statefulset.types import (
    STATEFUL_SET,
    ClaimRetentionPolicy,
    RollingUpdate,
    StatefulSet,
    StatefulSetSpec,
)
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import lenient_value
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Json
from tests.simulation.oracles import ordinals, set_claims
from tests.simulation.oracles.terms import Numbered, Terms
from tests.simulation.oracles.view import of_kind
from tests.simulation.scenarios.scenario import Scenario

EVERY = 20
"""The ordinary sweep tries each so-many-th fault: forty scenarios pass much the same points, and those of the machinery
are CloneSets' as well."""


def in_sets(*scenarios: Scenario) -> tuple[Scenario, ...]:
    """Scenarios about StatefulSets."""
    change = {"kind": STATEFUL_SET.kind, "services": ("statefulset",), "every": EVERY}
    return tuple(msgspec.structs.replace(one, **change) for one in scenarios)


def statefulset_terms(document: Json) -> Terms:
    """Return the terms of a StatefulSet (statefulset.md §4.6 to §4.9)."""
    statefulset = msgspec.convert(_typed(document), type=StatefulSet)
    spec = statefulset.spec
    rolling = spec.update_strategy.rolling_update or RollingUpdate()
    idle = spec.update_strategy.type == "OnDelete" or rolling.paused  # nothing is taken out of service by us
    unordered = rolling.unordered_update is not None
    return Terms(
        selector=Selector.compile(spec.selector),
        replicas=spec.replicas,
        max_unavailable=0 if idle else _at_least_one(rolling.max_unavailable, spec.replicas),
        partition=rolling.partition if unordered else 0,
        min_ready_seconds=rolling.min_ready_seconds,
        lifecycle=spec.lifecycle,
        recreates=not idle and rolling.pod_update_policy == "ReCreate",
        current_revision=statefulset.status.current_revision,
        terminating=statefulset.metadata.deletion_timestamp is not None,
        numbered=_numbered(document, spec, 0 if unordered else rolling.partition),
    )


def _numbered(document: Json, spec: StatefulSetSpec, partition: int) -> Numbered:
    name: str = document["metadata"]["name"]
    in_order = spec.pod_management_policy == "OrderedReady"
    limit = spec.scale_strategy.max_unavailable if spec.scale_strategy else None
    wanted = tuple(_ordinals(spec))
    claims: list[Json] = document["spec"].get("volumeClaimTemplates") or []
    policy = spec.persistent_volume_claim_retention_policy or ClaimRetentionPolicy()
    return Numbered(
        name=name,
        ordinals=wanted,
        in_order=in_order,
        by_hand=spec.update_strategy.type == "OnDelete",
        waiting=1 if in_order else None if limit is None else _at_least_one(limit, spec.replicas),
        kept=frozenset(wanted[:partition]),
        claims=tuple(claim["metadata"]["name"] for claim in claims),
        with_set=policy.when_deleted == "Delete",
        with_pod=policy.when_scaled == "Delete",
    )


def _ordinals(spec: StatefulSetSpec) -> Iterable[int]:
    """Return the ordinals, counted one by one. Scenarios set a start only where its gate is on."""
    reserved: set[int] = set()
    for item in spec.reserve_ordinals:
        first, _, last = str(item).partition("-")
        reserved |= {*range(int(first), int(last or first) + 1)}
    start = spec.ordinals.start if spec.ordinals else 0
    return islice((ordinal for ordinal in count(start) if ordinal not in reserved), spec.replicas)


def _at_least_one(value: IntOrString, replicas: int) -> int:
    return max(lenient_value(value, replicas, round_up=False), 1)


def _typed(document: Json) -> Json:
    """Without the members that stay raw in the type."""
    raw = ("template", "volumeClaimTemplates")
    return {**document, "spec": {name: value for name, value in document["spec"].items() if name not in raw}}


TERMS = {STATEFUL_SET: statefulset_terms}
RULES = (
    lambda: of_kind(STATEFUL_SET, ordinals.identity),
    lambda: of_kind(STATEFUL_SET, ordinals.lower_ones_first),
    lambda: of_kind(STATEFUL_SET, ordinals.highest_one_first),
    lambda: of_kind(STATEFUL_SET, ordinals.Descending()),
    lambda: of_kind(STATEFUL_SET, ordinals.lowest_ones_kept),
    lambda: of_kind(STATEFUL_SET, set_claims.never_deleted),
    lambda: of_kind(STATEFUL_SET, set_claims.wanted_ones_stay),
    lambda: of_kind(STATEFUL_SET, set_claims.tied_before_they_go),
    lambda: of_kind(STATEFUL_SET, set_claims.not_of_earlier_pods),
)
