"""Why pods of a CloneSet are not available, and why some that it let go are still there."""

from collections.abc import Iterator, Sequence

from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_common.api.core import Pod
from flotilla_common.api.rollout import Lifecycle
from flotilla_common.control.draft import Draft
from flotilla_common.workload.causes import Around, Group, explain_pods, lingers


def explain_unavailable(context: PlanContext, draft: Draft) -> Sequence[Group]:
    """Give the root causes of pods that are not available as reasons, whether or not anything waits for them."""
    spec = context.snapshot.cloneset.spec
    lifecycle = spec.lifecycle or Lifecycle()
    around = Around(now=context.now, lifecycle=lifecycle, min_ready_seconds=spec.min_ready_seconds)
    return explain_pods(draft, _pods(context), around)


def _pods(context: PlanContext) -> Iterator[Pod]:
    """Those that are not available, then those that do not go."""
    pods = context.pods
    yield from pods.first_unavailable
    yield from (pod for pod in pods.inactive if lingers(pod, context.now))
