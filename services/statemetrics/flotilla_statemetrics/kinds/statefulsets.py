"""The metrics of StatefulSets, also under the names that they had in older releases of kruise-state-metrics."""

from collections.abc import Iterator

from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET, RollingUpdate, StatefulSet
from flotilla_common.api.numbers import strict_value
from flotilla_statemetrics.families import (
    Family,
    Series,
    StateKind,
    conditions,
    created,
    generation,
    number,
    object_labels,
    word,
)


def _max_unavailable(asts: StatefulSet) -> int:
    """Return the pods that may be unavailable. Percentages are rounded down, but nothing would ever move at 0."""
    rolling = asts.spec.update_strategy.rolling_update or RollingUpdate()
    return max(strict_value(rolling.max_unavailable, asts.spec.replicas, round_up=False), 1)


def _reserved(asts: StatefulSet) -> Iterator[Series]:
    """Yield a series for each ordinal or range as written: a range of two billion is one series."""
    for item in asts.spec.reserve_ordinals:
        yield (("ordinal", str(item)),), 1


def _families(kind: str) -> tuple[Family[StatefulSet], ...]:
    """Return the families that all releases have, with the name prefix `kind`."""
    return (
        created(f"{kind}_created"),
        object_labels(f"{kind}_labels"),
        generation(f"{kind}_metadata_generation"),
        number(f"{kind}_spec_replicas", "Desired pods.", lambda one: one.spec.replicas),
        number(
            f"{kind}_spec_strategy_rollingupdate_max_unavailable",
            "Pods that may be unavailable during a rollout.",
            _max_unavailable,
        ),
        Family(f"{kind}_spec_reserveordinals", "Ordinals that no pod may have.", _reserved),
        number(f"{kind}_status_replicas", "Pods.", lambda one: one.status.replicas),
        number(f"{kind}_status_replicas_available", "Available pods.", lambda one: one.status.available_replicas),
        number(f"{kind}_status_replicas_current", "Pods of the old revision.", lambda one: one.status.current_replicas),
        number(f"{kind}_status_replicas_ready", "Ready pods.", lambda one: one.status.ready_replicas),
        number(f"{kind}_status_replicas_updated", "Updated pods.", lambda one: one.status.updated_replicas),
        number(
            f"{kind}_status_observed_generation",
            "The generation that the status describes.",
            lambda one: one.status.observed_generation,
        ),
        conditions(f"{kind}_status_condition", lambda one: one.status.conditions),
        word(
            f"{kind}_status_current_revision",
            "The revision of pods before the rollout.",
            "revision",
            lambda one: one.status.current_revision,
        ),
        word(
            f"{kind}_status_update_revision",
            "The revision that pods are updated to.",
            "revision",
            lambda one: one.status.update_revision,
        ),
    )


def _strategy(name: str) -> Family[StatefulSet]:
    return word(name, "How pods are updated.", "type", lambda one: one.spec.update_strategy.type)


STATEFUL_SETS = StateKind(
    resource=STATEFUL_SET,
    type=StatefulSet,
    labels=("statefulset",),
    families=(*_families("kruise_statefulset"), _strategy("kruise_statefulset_spec_strategy_type")),
)

ADVANCED_STATEFUL_SETS = StateKind(
    resource=STATEFUL_SET,
    type=StatefulSet,
    labels=("advancedstatefulset", "statefulset"),
    families=(
        *_families("kruise_advancedstatefulset"),
        _strategy("kruise_advancedstatefulset_strategy_type"),
        number("kruise_advancedstatefulset_replicas", "Desired pods.", lambda one: one.spec.replicas),
    ),
)
"""The same objects under the older names."""
