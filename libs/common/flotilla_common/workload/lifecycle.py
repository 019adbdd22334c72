"""Lifecycle states of pods, and the hooks that hold them (common.md §8)."""

from datetime import datetime

from flotilla_common.api.cloneset import Lifecycle, LifecycleHook
from flotilla_common.api.core import Pod
from flotilla_common.workload.podedit import PodEdit

PREPARING_NORMAL = "PreparingNormal"
NORMAL = "Normal"
PREPARING_UPDATE = "PreparingUpdate"
UPDATING = "Updating"
UPDATED = "Updated"
PREPARING_DELETE = "PreparingDelete"


def state_of(pod: Pod) -> str:
    """The pod's state; empty for one without the label, which counts like Normal."""
    return pod.state


def hooked(hook: LifecycleHook | None, pod: Pod) -> bool:
    """At least one of the hook's labels or finalizers holds the pod."""
    raise NotImplementedError


def fully_hooked(hook: LifecycleHook | None, pod: Pod) -> bool:
    """All of the hook's labels and finalizers are there. False without a hook, True for one that lists nothing."""
    raise NotImplementedError


def write_state(edit: PodEdit, state: str, lifecycle: Lifecycle | None, now: datetime, *, rehook: bool = False) -> bool:
    """Put the pod into `state`, with what belongs to it: time, KruisePodReady marks, hook labels (`rehook`).

    True when the label changes (the marks may change even if not).
    """
    raise NotImplementedError


def initial_labels(state: str = PREPARING_NORMAL) -> dict[str, str]:
    """Labels of a pod about to be created."""
    raise NotImplementedError


def state_annotations(now: datetime) -> dict[str, str]:
    """Annotations that go with a state written at `now`."""
    raise NotImplementedError
