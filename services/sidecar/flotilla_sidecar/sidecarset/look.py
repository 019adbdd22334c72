"""Classifies one pod for one SidecarSet, once per version of the pod (sidecarset.md §7.3, §7.6).

A pass over ten thousand unchanged pods costs a dictionary look-up each. And since the result holds everything that a
plan depends on, a change of a pod affects a SidecarSet exactly when its result changes.
"""

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import SIDECAR_SET_HASH, SIDECAR_SET_HASH_WITHOUT_IMAGE
from flotilla_common.api.kinds.sidecarset.records import Record, injected, records
from flotilla_sidecar.sidecarset.condition import verdicts
from flotilla_sidecar.sidecarset.consistency import Consistency
from flotilla_sidecar.sidecarset.twins import Twins, twins_of, working_containers
from flotilla_sidecar.sidecarset.wanted import Wanted


class Look(msgspec.Struct, frozen=True):
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


_Known = tuple[Wanted, Look | None]
_NOTHING = Record()


def look(pod: Pod, wanted: Wanted) -> Look | None:
    """Return the pod's state for the SidecarSet; None if it does not match."""
    known: _Known | None = pod.memo.get(wanted.memo_key)
    if known is None or known[0] is not wanted:
        known = pod.memo[wanted.memo_key] = (wanted, _look(pod, wanted) if matches(pod, wanted) else None)
    return known[1]


def matches(pod: Pod, wanted: Wanted) -> bool:
    """Report whether the pod is active, selected, injected with the SidecarSet, and has all its containers."""
    # The namespace is checked elsewhere.
    meta = pod.metadata
    return (
        pod.active
        and wanted.selector.matches(meta.labels)
        and wanted.name in injected(meta.annotations)
        and _has_containers(pod, wanted)
    )


def _has_containers(pod: Pod, wanted: Wanted) -> bool:
    """Report whether the pod has the containers of all sidecars."""
    # A sidecar whose upgrade type has changed does not count, even if the name of its container matches.
    names = {container.name for container in (*pod.spec.init_containers, *pod.spec.containers)}
    if not wanted.containers <= names:
        return False
    return not wanted.hot or working_containers(pod.metadata.annotations).keys() >= {one.name for one in wanted.hot}


def _look(pod: Pod, wanted: Wanted) -> Look:
    record = _record(pod, SIDECAR_SET_HASH, wanted)
    consistency = Consistency(pod, wanted.name)
    twins = [twins_of(pod, sidecar) for sidecar in wanted.hot]
    updated = record.hash == wanted.hash
    upgradable = updated or _record(pod, SIDECAR_SET_HASH_WITHOUT_IMAGE, wanted).hash == wanted.hash_without_image
    revision = record.controller_revision
    return Look(
        updated=updated,
        consistent=consistency.holds(wanted.containers),
        ready=pod.ready and pod.status.phase == "Running" and all(pair.idles for pair in twins),
        chosen=wanted.chooses(pod.metadata.labels),
        upgradable=upgradable,
        busy=upgradable and not updated and _is_busy(consistency, wanted),
        idle_due=_idle_due(pod, wanted, twins, consistency),
        marked=not upgradable and verdicts(pod).get(wanted.name) is False,
        revision="" if isinstance(revision, msgspec.UnsetType) else revision,
    )


def _record(pod: Pod, key: str, wanted: Wanted) -> Record:
    """Return the pod's record under that key; an empty one if it cannot be read."""
    try:
        return records(pod.metadata.annotations.get(key, "")).get(wanted.name, _NOTHING)
    except ValueError:
        return _NOTHING


def _is_busy(consistency: Consistency, wanted: Wanted) -> bool:
    for name in wanted.containers:
        status = consistency.status(name)
        if status is not None and status.ready and not consistency.holds((name,)):
            return True
    return False


def _idle_due(pod: Pod, wanted: Wanted, twins: list[Twins], consistency: Consistency) -> tuple[str, ...]:
    """Return the replaced containers of a pod whose new ones work.

    The new ones run their image, and the pod, or everything else in it, is ready.
    """
    due = tuple(pair.other for pair in twins if not pair.idles)
    former = {pair.other for pair in twins}
    if not due or not consistency.holds(wanted.containers - former):
        return ()
    ready = pod.ready and pod.status.phase == "Running"
    statuses = pod.status.container_statuses
    return due if ready or all(status.ready for status in statuses if status.name not in former) else ()
