"""The metrics of DaemonSets."""

from flotilla_common.api.kinds.daemonset.types import DAEMON_SET, DaemonSet, RollingUpdate
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import strict_value
from flotilla_statemetrics.families import StateKind, conditions, created, generation, number, object_labels, word


def _rolling(daemonset: DaemonSet) -> RollingUpdate:
    return daemonset.spec.update_strategy.rolling_update or RollingUpdate()


def _nodes(daemonset: DaemonSet, value: IntOrString | None, *, round_up: bool) -> int:
    """Resolve the value to nodes. Percentages are of the nodes that should have a pod."""
    return max(strict_value(value or 0, daemonset.status.desired_number_scheduled, round_up), 0)


DAEMON_SETS = StateKind(
    resource=DAEMON_SET,
    type=DaemonSet,
    labels=("daemonset",),
    families=(
        created("kruise_daemonset_created"),
        object_labels("kruise_daemonset_labels"),
        generation("kruise_daemonset_metadata_generation"),
        number(
            "kruise_daemonset_spec_strategy_rollingupdate_max_surge",
            "Nodes that may have a second pod during a rollout.",
            lambda one: _nodes(one, _rolling(one).max_surge, round_up=True),
        ),
        number(
            "kruise_daemonset_spec_strategy_partition",
            "Nodes whose pods stay on old revisions.",
            lambda one: _nodes(one, _rolling(one).partition, round_up=False),
        ),
        word(
            "kruise_daemonset_spec_strategy_type",
            "How pods are updated.",
            "type",
            lambda one: one.spec.update_strategy.type,
        ),
        number(
            "kruise_daemonset_status_current_number_scheduled",
            "Nodes that have a pod and should have one.",
            lambda one: one.status.current_number_scheduled,
        ),
        number(
            "kruise_daemonset_status_desired_number_scheduled",
            "Nodes that should have a pod.",
            lambda one: one.status.desired_number_scheduled,
        ),
        number(
            "kruise_daemonset_status_number_available",
            "Nodes with an available pod.",
            lambda one: one.status.number_available,
        ),
        number(
            "kruise_daemonset_status_number_misscheduled",
            "Nodes that have a pod and should have none.",
            lambda one: one.status.number_misscheduled,
        ),
        number("kruise_daemonset_status_number_ready", "Nodes with a ready pod.", lambda one: one.status.number_ready),
        number(
            "kruise_daemonset_status_number_unavailable",
            "Nodes that should have a pod and have no available one.",
            lambda one: one.status.number_unavailable,
        ),
        number(
            "kruise_daemonset_status_observed_generation",
            "The generation that the status describes.",
            lambda one: one.status.observed_generation,
        ),
        number(
            "kruise_daemonset_status_updated_number_scheduled",
            "Nodes with an updated pod.",
            lambda one: one.status.updated_number_scheduled,
        ),
        conditions("kruise_daemonset_status_condition", lambda one: one.status.conditions),
    ),
)
