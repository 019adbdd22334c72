"""Whether a wanted pod is to be deleted, by its user or for an update (statefulset.md §4.8, §4.10)."""

from flotilla_common.api.core import Pod
from flotilla_statefulset.statefulset.context import IN_PLACE_ONLY, RECREATE, PlanContext
from flotilla_statefulset.statefulset.pods import traits
from flotilla_statefulset.statefulset.revisions import in_place_spec


def is_due(context: PlanContext, ordinal: int, pod: Pod) -> bool | None:
    """None: that is not to be decided now, because updates are paused."""
    targets = context.targets
    if targets.on_delete:
        return False
    if targets.paused:
        return None
    return traits(pod).specified or (is_target(context, ordinal, pod) and must_be_recreated(context, pod))


def is_target(context: PlanContext, ordinal: int, pod: Pod) -> bool:
    """Whether the pod is to get the update revision."""
    if traits(pod).revision == context.update_name:
        return False
    targets = context.targets
    if targets.unordered_update:
        return len(context.pods.outdated) > targets.partition
    return targets.ordinals.rank(ordinal) >= targets.partition


def may_be_updated(context: PlanContext, ordinal: int, pod: Pod) -> bool:
    """Whether the pod's update may still come: else it has nothing to prepare for, and goes back into service."""
    if context.targets.on_delete:
        return False
    return context.targets.paused or is_target(context, ordinal, pod)


def must_be_recreated(context: PlanContext, pod: Pod) -> bool:
    """Whether the pod gets the update revision by another pod of its name."""
    policy = context.rolling.pod_update_policy or RECREATE
    if policy in (RECREATE, IN_PLACE_ONLY):
        return policy == RECREATE
    old = context.history.get(traits(pod).revision)
    return old is None or in_place_spec(old, context.revisions.update, context.snapshot.gates) is None
