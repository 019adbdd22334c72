"""Types that specs of several workload kinds share: lifecycle hooks, update order, in-place settings.

See common.md §8.1, §11, §12.
"""

from flotilla_common.api.meta import IntOrString, LabelSelector, Model

POLICIES = ("ReCreate", "InPlaceIfPossible", "InPlaceOnly")
"""The update policies of pods."""


class LifecycleHook(Model):
    """A hook that holds a pod in a state until the user removes the label or finalizer."""

    labels_handler: dict[str, str] = {}
    finalizers_handler: list[str] = []
    mark_pod_not_ready: bool = False


class Lifecycle(Model):
    pre_delete: LifecycleHook | None = None
    in_place_update: LifecycleHook | None = None
    pre_normal: LifecycleHook | None = None


class WeightTerm(Model):
    weight: int = 0
    match_selector: LabelSelector = LabelSelector()


class OrderTerm(Model):
    ordered_key: str = ""


class PriorityStrategy(Model):
    """The order of pods in an update; only one of the two lists is used."""

    weight_priority: list[WeightTerm] = []
    order_priority: list[OrderTerm] = []


class ScatterTerm(Model):
    """A label whose pods are spread over the update."""

    key: str = ""
    value: str = ""


class InPlaceUpdateStrategy(Model):
    grace_period_seconds: int = 0
    image_pre_download_parallelism: IntOrString | None = None
    image_pre_download_timeout_seconds: int | None = None
    image_pre_download_min_updated_ready_pods: int | None = None
