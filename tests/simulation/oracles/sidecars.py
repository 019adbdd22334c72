"""Sidecars of running pods: maxUnavailable, selection, hot upgrades, and shared annotations (sidecarset.md §7).

Pods are told apart by the images of their sidecars, which is all that a SidecarSet changes.
"""

import math
from collections.abc import Iterator

import msgspec

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.kinds.sidecarset.types import NOT_UPDATE, SIDECAR_SET, Sidecar, SidecarSet
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.resources import POD, REVISION
from flotilla_common.api.selectors import Selector
from flotilla_common.control.plan import Json
from tests.simulation.history import Version
from tests.simulation.oracles.view import Commit, View

MAPS = (
    keys.SIDECAR_SET_HASH,
    keys.SIDECAR_SET_HASH_WITHOUT_IMAGE,
    keys.SIDECAR_SET_IN_PLACE_STATE,
    keys.SIDECAR_SET_WORKING_CONTAINER,
)
"""Annotations that several SidecarSets share."""


class Sidecars:
    """The rule for SidecarSets: the states of the SidecarSets and pods over time."""

    def __init__(self) -> None:
        self._sets: dict[str, list[tuple[float, SidecarSet]]] = {}  # by name: since when it looks like this
        self._pods: dict[str, Pod] = {}
        self._fell: dict[str, float] = {}  # by uid: when a pod stopped being ready
        self._updated: dict[tuple[str, str], tuple[float, bool]] = {}
        """By SidecarSet and uid of an updated pod that is not back: when sidecars changed, and whether it served."""

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version = commit.version
        if version.resource == SIDECAR_SET and version.after is not None:
            found = msgspec.json.decode(msgspec.json.encode(version.after), type=SidecarSet)
            self._sets.setdefault(version.name, []).append((view.at, found))
        elif version.resource == POD:
            if commit.ours and commit.before is not None and commit.pod is not None:
                yield from _keeps_others(commit.before, commit.pod)
                yield from self._changes(view, commit.before, commit.pod)
            self._note(view, commit)
        elif version.resource == REVISION and commit.ours and commit.marked_deleted:
            yield from self._forgets(view, version)

    def _note(self, view: View, commit: Commit) -> None:
        uid = commit.version.uid
        if commit.pod is None:
            self._pods.pop(uid, None)
            return
        self._pods[uid] = commit.pod
        if commit.pod.ready:
            self._fell.pop(uid, None)
            if _runs_its_images(commit.pod):
                self._updated = {key: told for key, told in self._updated.items() if key[1] != uid}
        else:
            self._fell.setdefault(uid, view.at)

    def _changes(self, view: View, before: Pod, pod: Pod) -> Iterator[str]:
        """Check a write of ours to the images of each SidecarSet's sidecars."""
        for name in self._sets:
            lately = self._lately(name, view)
            for sidecar in lately[-1].sidecars:
                if sidecar.hot and _both_idle(pod, sidecar) and not _both_idle(before, sidecar):
                    yield f"{name}: both containers of {sidecar.name} idle"
            asked = [one for one in lately if _is_of(before, one) and _updates(before, pod, one)]
            if asked:
                yield from min([list(self._breaks(view, one, before, pod)) for one in asked], key=len)
                self._updated[name, pod.metadata.uid] = view.at, _serves(before)

    def _lately(self, name: str, view: View) -> list[SidecarSet]:
        """Return the recent states of the SidecarSet, oldest first."""
        told = self._sets[name]
        return [one for at, (_, one) in enumerate(told) if at + 1 == len(told) or told[at + 1][0] >= view.since]

    def _breaks(self, view: View, one: SidecarSet, before: Pod, pod: Pod) -> Iterator[str]:
        """Yield what is wrong with the update of this pod for one state of the SidecarSet."""
        strategy, name = one.spec.update_strategy, one.metadata.name
        if strategy.paused or strategy.type == NOT_UPDATE:
            yield f"{name}: changes a sidecar, though it may not"
        if strategy.selector is not None and not Selector.compile(strategy.selector).matches(before.metadata.labels):
            yield f"{name}: changes a sidecar of a pod that it does not choose"
        others = [held for uid, held in self._pods.items() if uid != pod.metadata.uid and _is_of(held, one)]
        total, newest = len(others) + 1, sum(_is_newest(held, one) for held in others)
        kept = _share(strategy.partition, 0, total)
        if isinstance(strategy.partition, str) and strategy.partition != "100%" and kept == total > 1:
            kept -= 1
        if _is_newest(pod, one) and total - newest - 1 < kept:
            yield f"{name}: updates one more, though {kept} of {total} are to be kept"
        most = _share(strategy.max_unavailable, 1, total)
        down = [held.metadata.name for held in others if self._uses_up(view, held, one)]
        if _serves(before) and len(down) >= most:
            yield f"{name}: disturbs {pod.metadata.name}, though {', '.join(down) or 'nobody'} may be the only {most}"

    def _uses_up(self, view: View, held: Pod, one: SidecarSet) -> bool:
        """Report whether an updated pod that does not serve uses up maxUnavailable.

        It does if the update disturbed it, or if it has been out of service for longer than the visibility lag. A pod
        that did not serve when it was updated cost nothing then, but does so in later passes.
        """
        uid = held.metadata.uid
        at, served = self._updated.get((one.metadata.name, uid), (-math.inf, False))
        seen = max(at, self._fell.get(uid, math.inf)) < view.since
        return _is_newest(held, one) and (served or seen)

    def _forgets(self, view: View, version: Version) -> Iterator[str]:
        """Check that no revision is deleted that pods use, or that new pods are to get (§7.4)."""
        labels: dict[str, str] = (version.before or {})["metadata"].get("labels", {})
        name = labels.get(keys.SIDECAR_SET_NAME_LABEL, "")
        if name not in self._sets:
            return
        lately = self._lately(name, view)
        if all(version.name in (one.status.latest_revision, _pinned(one)) for one in lately):
            yield f"deletes revision {version.name}, which pods get"
        for pod in self._pods.values():
            seen = self._fell.get(pod.metadata.uid, 0.0) < view.since  # a new pod may not have been seen
            if seen and pod.active and f'"controllerRevision":"{version.name}"' in _held(pod, keys.SIDECAR_SET_HASH):
                yield f"deletes revision {version.name}, which {pod.metadata.name} remembers"


def _keeps_others(before: Pod, pod: Pod) -> Iterator[str]:
    """Check that no entry of a shared map is lost."""
    for key in MAPS:
        lost = _entries(_held(before, key)) - _entries(_held(pod, key))
        if lost:
            yield f"loses what {key} says of {', '.join(sorted(lost))}"
    stored, after = (one.conditions.get(keys.SIDECAR_SET_UPGRADABLE) for one in (before, pod))
    if stored is not None and _entries(stored.message) - _entries(after.message if after else ""):
        yield "loses what the condition says of another SidecarSet"


def _held(pod: Pod, key: str) -> str:
    return pod.metadata.annotations.get(key, "")


def _entries(text: str) -> set[str]:
    return set(msgspec.json.decode(text, type=Json)) if text else set()


def _images(pod: Pod) -> dict[str, str]:
    return {container.name: container.image for container in pod.spec.containers}


def _both_idle(pod: Pod, sidecar: Sidecar) -> bool:
    images = _images(pod)
    return all(images.get(name) == sidecar.upgrade_strategy.hot_upgrade_empty_image for name in sidecar.names)


def _is_of(pod: Pod, one: SidecarSet) -> bool:
    """Report whether the pod is active and was injected with all that the SidecarSet has now."""
    injected = one.metadata.name in _held(pod, keys.SIDECAR_SET_INJECTED).split(",")
    names = {name for sidecar in one.sidecars for name in sidecar.names}
    return pod.active and injected and names <= _images(pod).keys()


def _is_newest(pod: Pod, one: SidecarSet) -> bool:
    """Report whether its sidecars have the images of the SidecarSet, in either container of a pair."""
    images = _images(pod)
    return all(sidecar.image in [images[name] for name in sidecar.names] for sidecar in one.sidecars)


def _updates(before: Pod, pod: Pod, one: SidecarSet) -> bool:
    """Report whether the write changes a sidecar to the image of the SidecarSet. Making one idle is no update."""
    old, new = _images(before), _images(pod)
    return any(
        new.get(name) != old.get(name) and new.get(name) == sidecar.image
        for sidecar in one.sidecars
        for name in sidecar.names
    )


def _serves(pod: Pod) -> bool:
    return pod.ready and pod.status.phase == "Running"


def _runs_its_images(pod: Pod) -> bool:
    """Report whether all containers run their images."""
    reported = {status.name: status.image for status in pod.status.container_statuses}
    return _images(pod) == reported


def _share(value: IntOrString | None, default: int, total: int) -> int:
    """Return a number, or a percentage of the total, rounded up."""
    if value is None:
        return default
    return value if isinstance(value, int) else math.ceil(int(value.removesuffix("%")) * total / 100)


def _pinned(one: SidecarSet) -> str | None:
    choice = one.spec.injection_strategy.revision
    return None if choice is None else choice.revision_name
