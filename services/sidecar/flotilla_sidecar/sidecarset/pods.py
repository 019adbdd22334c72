"""The pods of a SidecarSet, sorted by what they are to it (sidecarset.md §7.3, §7.5)."""

from collections.abc import Collection, Iterable

import msgspec

from flotilla_common.api.core import Namespace, Pod
from flotilla_common.api.kinds.sidecarset.matching import Reach
from flotilla_common.api.kinds.sidecarset.types import SidecarSet
from flotilla_sidecar.sidecarset.look import Look, look
from flotilla_sidecar.sidecarset.wanted import Wanted


class Pods(msgspec.Struct, kw_only=True):
    """The pods that match, and lists of those among them that something has to be done about."""

    matching: list[Pod] = []
    updated: int = 0
    ready: int = 0
    """They run what they are to run, and are ready: updated or not."""
    updated_ready: int = 0
    candidates: list[Pod] = []
    """They may be updated now."""
    restarting: list[Pod] = []
    """Updated, and not serving (yet), or about to be restarted for an earlier image: they use up maxUnavailable."""
    unupgradable: list[Pod] = []
    unmarked: list[Pod] = []
    """Of these, the ones whose condition does not say so yet."""
    busy: list[Pod] = []
    unchosen: list[Pod] = []
    """Not updated, and `updateStrategy.selector` does not choose them."""
    idle_due: list[tuple[Pod, Look]] = []
    """Containers of theirs have been replaced, and are to idle."""

    @property
    def matched(self) -> int:
        """How many there are."""
        return len(self.matching)

    @property
    def complete(self) -> bool:
        """All have the newest sidecars."""
        return self.updated >= self.matched


def sort_pods(found: Iterable[Pod], wanted: Wanted, namespaces: Collection[str] | None) -> Pods:
    """Sort the pods of these namespaces (None: of all)."""
    pods = Pods()
    for pod in found:
        if namespaces is not None and pod.metadata.namespace not in namespaces:
            continue
        seen = look(pod, wanted)
        if seen is not None:
            pods.matching.append(pod)
            _count(pods, pod, seen)
    return pods


def _count(pods: Pods, pod: Pod, seen: Look) -> None:
    pods.ready += seen.serving
    if seen.idle_due:
        pods.idle_due.append((pod, seen))
    if seen.updated:
        pods.updated += 1
        pods.updated_ready += seen.serving
        if not seen.serving:
            pods.restarting.append(pod)
    elif not seen.chosen:
        pods.unchosen.append(pod)
    elif not seen.upgradable:
        pods.unupgradable.append(pod)
        if not seen.marked:
            pods.unmarked.append(pod)
    elif seen.busy:
        pods.busy.append(pod)
        if seen.ready:
            pods.restarting.append(pod)
    else:
        pods.candidates.append(pod)


def selected_namespaces(sidecar_set: SidecarSet, namespaces: Iterable[Namespace]) -> frozenset[str] | None:
    """The namespaces whose pods are the SidecarSet's; None: all. Raises ValueError for a selector that cannot be
    read."""
    reach = Reach.of(sidecar_set)
    if reach.unreadable:
        raise ValueError("spec.namespaceSelector cannot be read")
    if reach.pinned is not None or reach.namespaces is None:
        return reach.pinned
    return frozenset(one.metadata.name for one in namespaces if reach.includes(one.metadata.labels))
