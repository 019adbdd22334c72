"""Decides whether a wanted pod must be deleted: by request, for an update, or because it is broken and outdated.

See statefulset.md §4.8 and §4.10.
"""

from flotilla_common.api.core import Pod
from flotilla_common.workload.lifecycle import PREPARING_DELETE
from flotilla_statefulset.statefulset.claims import volumes_fit
from flotilla_statefulset.statefulset.context import IN_PLACE_ONLY, RECREATE, PlanContext
from flotilla_statefulset.statefulset.pods import traits
from flotilla_statefulset.statefulset.revisions import in_place_spec


def is_due(context: PlanContext, ordinal: int, pod: Pod) -> bool | None:
    """Report whether the pod must be deleted; None while updates are paused and it cannot be decided."""
    targets = context.targets
    if targets.on_delete:
        return False
    if targets.paused:
        return None
    if traits(pod).specified or is_off_revision(context, ordinal, pod):
        return True
    return is_target(context, ordinal, pod) and must_be_recreated(context, ordinal, pod)


def is_broken(context: PlanContext, ordinal: int, pod: Pod) -> bool:
    """Report whether a wanted pod does not serve, though it is neither terminating nor finished."""
    if ordinal not in context.pods.unavailable or ordinal in context.pods.waiting:
        return False  # the case of nearly all pods
    kind = traits(pod)
    return not kind.terminating and not kind.finished


def is_off_revision(context: PlanContext, ordinal: int, pod: Pod) -> bool:
    """Report whether a broken pod that the partition keeps is on neither revision that a new pod could get.

    It is deleted, and comes back on the revision that it should have.
    """
    if not is_broken(context, ordinal, pod):
        return False
    known = (context.update_name, context.revisions.current.metadata.name)
    if traits(pod).revision in known or context.targets.on_delete or context.rolling.pod_update_policy == IN_PLACE_ONLY:
        return False
    return not is_target(context, ordinal, pod)


def is_left_to_user(context: PlanContext, ordinal: int, pod: Pod) -> bool:
    """Report whether a broken pod is not on its desired revision, and only the user may delete it.

    This is so with OnDelete, or if the partition was raised above the pod. The rollout does not wait for it.
    """
    targets = context.targets
    if not is_broken(context, ordinal, pod) or traits(pod).state == PREPARING_DELETE:
        return False
    if targets.on_delete:
        return not context.is_updated(ordinal, pod)
    kept = not targets.unordered_update and targets.ordinals.rank(ordinal) < targets.partition
    return kept and traits(pod).revision != context.revisions.current.metadata.name


def is_target(context: PlanContext, ordinal: int, pod: Pod) -> bool:
    """Report whether the pod should get the update revision."""
    if context.is_updated(ordinal, pod):
        return False
    targets = context.targets
    if targets.unordered_update:
        return len(context.pods.outdated) > targets.partition
    return targets.ordinals.rank(ordinal) >= targets.partition


def may_be_updated(context: PlanContext, ordinal: int, pod: Pod) -> bool:
    """Report whether the pod's update may still come: if not, it has nothing to prepare for and returns to service."""
    if context.targets.on_delete:
        return False
    return context.targets.paused or is_target(context, ordinal, pod)


def must_be_recreated(context: PlanContext, ordinal: int, pod: Pod) -> bool:
    """Report whether the pod gets the update revision, or a volume that it lacks, only by recreation."""
    policy = context.rolling.pod_update_policy or RECREATE
    if policy in (RECREATE, IN_PLACE_ONLY):
        return policy == RECREATE
    if not volumes_fit(pod, ordinal, context.claims):
        return True
    old = context.history.get(traits(pod).revision)
    return old is None or in_place_spec(old, context.revisions.update, context.snapshot.gates) is None
