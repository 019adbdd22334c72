"""Classifies the pods of a SidecarSet (sidecarset.md §7.3, §7.5, §7.6).

Each pod is classified once per version, so a pass over ten thousand unchanged pods costs a dictionary look-up each. And
since the result holds everything that a plan depends on, a change of a pod affects a SidecarSet exactly when its result
changes.
"""

from collections.abc import Collection, Iterable

import msgspec

from flotilla_common.api.core import Namespace, Pod
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE
from flotilla_common.api.kinds.sidecarset.matching import PodMatcher
from flotilla_common.api.kinds.sidecarset.pods import Record, injected, records
from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_sidecar.sidecarset.containers import Consistency, ContainerPair, container_pair, working_containers
from flotilla_sidecar.sidecarset.desired import DesiredSidecars
from flotilla_sidecar.sidecarset.pod_records import upgradability


class PodState(msgspec.Struct, frozen=True):
    """The state of a pod that matches."""

    updated: bool
    """The pod has the newest sidecars, or will as soon as its kubelet has restarted them."""
    consistent: bool
    ready: bool
    chosen: bool
    """`updateStrategy.selector` allows the pod's update."""
    upgradable: bool
    """At most images differ."""
    busy: bool
    """The pod is not updated, and its kubelet has not applied an earlier image change."""
    idle_due: tuple[str, ...]
    """The containers that are replaced after a hot upgrade, and should idle."""
    marked: bool
    """The pod is not upgradable, and its condition shows that."""
    revision: str
    """The revision that the pod records; empty if none."""

    @property
    def serving(self) -> bool:
        """Report whether the pod runs its desired images and is ready."""
        return self.consistent and self.ready


_Known = tuple[DesiredSidecars, PodState | None]
_NOTHING = Record()


def pod_state(pod: Pod, desired: DesiredSidecars) -> PodState | None:
    """Return the pod's state for the SidecarSet; None if it does not match."""
    known: _Known | None = pod.memo.get(desired.memo_key)
    if known is None or known[0] is not desired:
        known = pod.memo[desired.memo_key] = (desired, _classify(pod, desired) if matches(pod, desired) else None)
    return known[1]


def matches(pod: Pod, desired: DesiredSidecars) -> bool:
    """Report whether the pod is active, selected, injected with the SidecarSet, and has all its containers."""
    # The namespace is checked elsewhere.
    meta = pod.metadata
    return (
        pod.active
        and desired.selector.matches(meta.labels)
        and desired.name in injected(meta.annotations)
        and _has_containers(pod, desired)
    )


def _has_containers(pod: Pod, desired: DesiredSidecars) -> bool:
    """Report whether the pod has the containers of all sidecars."""
    # A sidecar whose upgrade type has changed does not count, even if the name of its container matches.
    names = {container.name for container in (*pod.spec.init_containers, *pod.spec.containers)}
    if not desired.containers <= names:
        return False
    working = working_containers(pod.metadata.annotations)
    return all(sidecar.name in working for sidecar in desired.hot)


def _classify(pod: Pod, desired: DesiredSidecars) -> PodState:
    record = _record(pod, SIDECAR_SET_HASH, desired)
    consistency = Consistency(pod, desired.name)
    pairs = [container_pair(pod, sidecar) for sidecar in desired.hot]
    updated = record.hash == desired.hash
    upgradable = updated or _record(pod, SIDECAR_SET_HASH_WITHOUT_IMAGE, desired).hash == desired.hash_without_image
    revision = record.controller_revision
    return PodState(
        updated=updated,
        consistent=consistency.holds(desired.containers),
        ready=pod.ready and pod.status.phase == "Running" and all(pair.idles for pair in pairs),
        chosen=desired.chooses(pod.metadata.labels),
        upgradable=upgradable,
        busy=upgradable and not updated and _is_busy(consistency, desired),
        idle_due=_idle_due(pod, desired, pairs, consistency),
        marked=not upgradable and upgradability(pod).get(desired.name) is False,
        revision="" if isinstance(revision, msgspec.UnsetType) else revision,
    )


def _record(pod: Pod, key: str, desired: DesiredSidecars) -> Record:
    """Return the pod's record under that key; an empty one if it cannot be read."""
    try:
        return records(pod.metadata.annotations.get(key, "")).get(desired.name, _NOTHING)
    except ValueError:
        return _NOTHING


def _is_busy(consistency: Consistency, desired: DesiredSidecars) -> bool:
    for name in desired.containers:
        status = consistency.status(name)
        if status is not None and status.ready and not consistency.holds((name,)):
            return True
    return False


def _idle_due(
    pod: Pod, desired: DesiredSidecars, pairs: list[ContainerPair], consistency: Consistency
) -> tuple[str, ...]:
    """Return the replaced containers of a pod whose new ones work.

    The new ones run their image, and the pod, or everything else in it, is ready.
    """
    due = tuple(pair.other for pair in pairs if not pair.idles)
    former = {pair.other for pair in pairs}
    if not due or not consistency.holds(desired.containers - former):
        return ()
    ready = pod.ready and pod.status.phase == "Running"
    statuses = pod.status.container_statuses
    return due if ready or all(status.ready for status in statuses if status.name not in former) else ()


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


def sort_pods(candidates: Iterable[Pod], desired: DesiredSidecars, namespaces: Collection[str] | None) -> Pods:
    """Sort the pods of these namespaces; None means all."""
    pods = Pods()
    for pod in candidates:
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
    matcher = PodMatcher.of(sidecar_set)
    if matcher.unreadable:
        raise ValueError("spec.namespaceSelector cannot be read")
    if matcher.pinned is not None or matcher.namespaces is None:
        return matcher.pinned
    return frozenset(one.metadata.name for one in namespaces if matcher.includes(one.metadata.labels))
