"""The metrics of CloneSets."""

from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet, RollingUpdate
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import lenient_value, partition_value
from flotilla_statemetrics.families import StateKind, conditions, created, generation, number, object_labels, word

DEFAULT_MAX_UNAVAILABLE = "20%"


def _rolling(cloneset: CloneSet) -> RollingUpdate:
    return cloneset.spec.update_strategy.rolling_update or RollingUpdate()


def _pods(cloneset: CloneSet, value: IntOrString, *, round_up: bool) -> int:
    return max(lenient_value(value, cloneset.spec.replicas, round_up), 0)


def _max_surge(cloneset: CloneSet) -> int:
    return _pods(cloneset, _rolling(cloneset).max_surge or 0, round_up=True)


def _max_unavailable(cloneset: CloneSet) -> int:
    """Return the pods that may be unavailable. Percentages are rounded down where surge is allowed, else up."""
    rolling = _rolling(cloneset)
    surging = not rolling.paused and _max_surge(cloneset) > 0
    wanted = DEFAULT_MAX_UNAVAILABLE if rolling.max_unavailable is None else rolling.max_unavailable
    return _pods(cloneset, wanted, round_up=not surging)


def _partition(cloneset: CloneSet) -> int:
    return partition_value(_rolling(cloneset).partition, cloneset.spec.replicas)


def _strategy(cloneset: CloneSet) -> str:
    """Return how pods are updated, in the words of v1alpha1, which kruise-state-metrics reads."""
    strategy = cloneset.spec.update_strategy
    return strategy.type if strategy.type == "OnDelete" else _rolling(cloneset).pod_update_policy


def _unavailable(cloneset: CloneSet) -> int:
    return max(cloneset.status.replicas - cloneset.status.available_replicas, 0)


CLONE_SETS = StateKind(
    resource=CLONE_SET,
    type=CloneSet,
    labels=("cloneset",),
    families=(
        created("kruise_cloneset_created"),
        object_labels("kruise_cloneset_labels"),
        generation("kruise_cloneset_spec_metadata_generation"),
        generation("kruise_cloneset_metadata_generation"),
        number("kruise_cloneset_spec_replicas", "Desired pods.", lambda one: one.spec.replicas),
        number("kruise_cloneset_spec_paused", "1 while the rollout is paused.", lambda one: int(_rolling(one).paused)),
        number(
            "kruise_cloneset_spec_strategy_rollingupdate_max_unavailable",
            "Pods that may be unavailable during a rollout.",
            _max_unavailable,
        ),
        number(
            "kruise_cloneset_spec_strategy_rollingupdate_max_surge",
            "Pods that may exist above the desired number during a rollout.",
            _max_surge,
        ),
        number("kruise_cloneset_spec_strategy_partition", "Pods that stay on old revisions.", _partition),
        word("kruise_cloneset_strategy_type", "How pods are updated.", "type", _strategy),
        word("kruise_cloneset_spec_strategy_type", "How pods are updated.", "type", _strategy),
        number("kruise_cloneset_status_replicas", "Pods.", lambda one: one.status.replicas),
        number("kruise_cloneset_status_replicas_ready", "Ready pods.", lambda one: one.status.ready_replicas),
        number(
            "kruise_cloneset_status_replicas_available", "Available pods.", lambda one: one.status.available_replicas
        ),
        number("kruise_cloneset_status_replicas_unavailable", "Pods that are not available.", _unavailable),
        number("kruise_cloneset_status_replicas_updated", "Updated pods.", lambda one: one.status.updated_replicas),
        number(
            "kruise_cloneset_status_replicas_updated_ready",
            "Updated pods that are ready.",
            lambda one: one.status.updated_ready_replicas,
        ),
        number(
            "kruise_cloneset_status_observed_generation",
            "The generation that the status describes.",
            lambda one: one.status.observed_generation,
        ),
        conditions("kruise_cloneset_status_condition", lambda one: one.status.conditions),
    ),
)
