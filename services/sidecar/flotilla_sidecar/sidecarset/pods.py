"""Sorts the pods of a SidecarSet by their state (sidecarset.md §7.3, §7.5)."""

from collections.abc import Collection, Iterable

import msgspec

from flotilla_common.api.core import Namespace, Pod
from flotilla_common.api.kinds.sidecarset.matching import Reach
from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_sidecar.sidecarset.desired import DesiredSidecars
from flotilla_sidecar.sidecarset.pod_state import PodState, pod_state


class Pods(msgspec.Struct, kw_only=True):
    """The pods that match, and the subsets that need an action."""

    matching: list[Pod] = []
    updated: int = 0
    ready: int = 0
    """Pods that run their desired images and are ready, updated or not."""
    updated_ready: int = 0
    candidates: list[Pod] = []
    """Pods that may be updated now."""
    restarting: list[Pod] = []
    """Updated pods that do not serve (yet), or pods about to restart for an earlier image: they use maxUnavailable."""
    unupgradable: list[Pod] = []
    unmarked: list[Pod] = []
    """The subset of these whose condition does not show it yet."""
    busy: list[Pod] = []
    unchosen: list[Pod] = []
    """Pods that are not updated, and that `updateStrategy.selector` does not match."""
    idle_due: list[tuple[Pod, PodState]] = []
    """Pods with replaced containers that should idle."""

    @property
    def matched(self) -> int:
        """The number of pods that match."""
        return len(self.matching)

    @property
    def complete(self) -> bool:
        """Report whether all pods have the newest sidecars."""
        return self.updated >= self.matched


def sort_pods(found: Iterable[Pod], desired: DesiredSidecars, namespaces: Collection[str] | None) -> Pods:
    """Sort the pods of these namespaces; None means all."""
    pods = Pods()
    for pod in found:
        if namespaces is not None and pod.metadata.namespace not in namespaces:
            continue
        state = pod_state(pod, desired)
        if state is not None:
            pods.matching.append(pod)
            _count(pods, pod, state)
    return pods


def _count(pods: Pods, pod: Pod, state: PodState) -> None:
    pods.ready += state.serving
    if state.idle_due:
        pods.idle_due.append((pod, state))
    if state.updated:
        pods.updated += 1
        pods.updated_ready += state.serving
        if not state.serving:
            pods.restarting.append(pod)
    elif not state.chosen:
        pods.unchosen.append(pod)
    elif not state.upgradable:
        pods.unupgradable.append(pod)
        if not state.marked:
            pods.unmarked.append(pod)
    elif state.busy:
        pods.busy.append(pod)
        if state.ready:
            pods.restarting.append(pod)
    else:
        pods.candidates.append(pod)


def selected_namespaces(sidecar_set: SidecarSet, namespaces: Iterable[Namespace]) -> frozenset[str] | None:
    """Return the namespaces whose pods belong to the SidecarSet; None means all.

    Raises ValueError for an unreadable selector.
    """
    reach = Reach.of(sidecar_set)
    if reach.unreadable:
        raise ValueError("spec.namespaceSelector cannot be read")
    if reach.pinned is not None or reach.namespaces is None:
        return reach.pinned
    return frozenset(one.metadata.name for one in namespaces if reach.includes(one.metadata.labels))
