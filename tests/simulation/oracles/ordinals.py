"""Ordinals: creation, order and partition of the pods of StatefulSets (statefulset.md §4.5 to §4.8).

The apiserver ensures that there is never more than one pod of a name.
"""

from collections.abc import Iterator

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.resources import REVISION
from tests.simulation.oracles.availability import images
from tests.simulation.oracles.population import PREPARING_DELETE, moved_to
from tests.simulation.oracles.set_claims import waits_for_claims
from tests.simulation.oracles.terms import Numbered
from tests.simulation.oracles.view import Commit, View, Workload

FINISHED = ("Failed", "Succeeded")


def identity(view: View, commit: Commit) -> Iterator[str]:
    """Check that we create only pods of wanted ordinals, with their identity in labels and hostname."""
    if commit.workload is None or not commit.makes_a_pod or commit.pod is None or commit.version.after is None:
        return
    name, labels = commit.version.name, commit.pod.metadata.labels
    lately = commit.workload.recent_numbered(view.since)
    if lately and all(one.of(name) not in one.ordinals for one in lately):
        yield f"makes {name}, which is not wanted"
    ordinal = name.rpartition("-")[2]
    told = (labels.get(keys.POD_NAME_LABEL), labels.get(keys.POD_INDEX_LABEL), commit.version.after["spec"]["hostname"])
    if lately and told != (name, ordinal, name):
        yield f"makes {name}, which says that it is {told}"


def lower_ones_first(view: View, commit: Commit) -> Iterator[str]:
    """Check that a pod is created only when those below it are available.

    In order, all of them; else as many as scaleStrategy asks for. Pods whose claims are still to be deleted do not
    count.
    """
    workload = commit.workload
    if workload is None or not commit.makes_a_pod:
        return
    texts: list[str] = []
    for one in workload.recent_numbered(view.since):
        lower = [ordinal for ordinal in one.ordinals if ordinal < one.of(commit.version.name)]
        if not one.in_order:
            lower = [ordinal for ordinal in lower if not waits_for_claims(view, workload, one, ordinal)]
        missing = _unavailable(view, workload, one, lower)
        if one.waiting is None or missing < one.waiting:
            return
        texts.append(f"makes {commit.version.name}, though {missing} below it are not available")
    yield from texts[-1:]


def highest_one_first(view: View, commit: Commit) -> Iterator[str]:
    """Check that, in order, unwanted pods are deleted from the highest, one by one, while all others are available."""
    workload = commit.workload
    if workload is None or not _takes(commit):
        return
    name, texts = commit.version.name, list[str]()
    for one in workload.recent_numbered(view.since):
        mine = one.of(name)
        others = [one.of(pod.metadata.name) for pod in workload.pods.values()]
        above = [other for other in others if other > mine and other not in one.ordinals]
        if not one.in_order or mine in one.ordinals:
            return
        missing = _unavailable(view, workload, one, one.ordinals)
        if not above and not missing:
            return
        texts.append(f"takes {name} away, though {above or missing} {'above it are there' if above else 'are missing'}")
    yield from texts[-1:]


class Descending:
    """The rule for ordered updates: a pod is updated only when all above it are updated and available.

    A pod that was broken before we took it is exempt. New revisions have been seen for long.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, float]] = {}  # by workload: the update revision, and since when
        self._broken: set[str] = set()  # uids of pods that do not serve, for no update

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        workload = commit.workload
        if workload is None:
            return
        if commit.version.resource == REVISION:
            self._remember(view, workload)
        newest, since = self._newest.get(workload.uid, ("", 0.0))
        if self._is_broken(view, workload, commit) or since >= view.since or not _updates(commit, newest):
            return
        name, texts = commit.version.name, list[str]()
        for one in workload.recent_numbered(view.since):
            above = [ordinal for ordinal in one.ordinals if ordinal > one.of(name)]
            if not one.in_order or one.of(name) not in one.ordinals or not _behind(view, workload, one, above, newest):
                return
            texts.append(f"updates {name}, though not all above it are available on {newest}")
        yield from texts[-1:]

    def _is_broken(self, view: View, workload: Workload, commit: Commit) -> bool:
        if commit.before is None:
            return False
        uid, gate = commit.before.metadata.uid, commit.before.conditions.get(keys.IN_PLACE_READY)
        if workload.available(commit.before, view.now):
            self._broken.discard(uid)
        elif gate is None or gate.status != "False":
            self._broken.add(uid)
        return uid in self._broken

    def _remember(self, view: View, workload: Workload) -> None:
        revisions = view.revisions_of(workload)
        newest = str(revisions[-1]["metadata"]["name"]) if revisions else ""
        if self._newest.get(workload.uid, ("", 0.0))[0] != newest:
            self._newest[workload.uid] = (newest, view.at)


def lowest_ones_kept(view: View, commit: Commit) -> Iterator[str]:
    """Check that the partition keeps the lowest ordinals on the current revision, in order of ordinals."""
    workload, update = commit.workload, moved_to(view, commit)
    if workload is None or not update:
        return
    lately = workload.recent_numbered(view.since)
    if lately and all(one.of(commit.version.name) in one.kept for one in lately):
        yield f"moves {commit.version.name} to {update}, though the partition keeps it"


def _unavailable(view: View, workload: Workload, one: Numbered, ordinals: tuple[int, ...] | list[int]) -> int:
    """Return how many of the ordinals have no available pod, as far as a controller can see.

    Pods of an unwanted revision that only users may delete are not waited for.
    """
    there = {one.of(pod.metadata.name) for pod in workload.pods.values() if workload.available(pod, view.now)}
    return max(len({*ordinals} - there - _left(view, workload, one)) - workload.recent_losses(view.since), 0)


def _left(view: View, workload: Workload, one: Numbered) -> set[int]:
    """Return the ordinals of old pods under OnDelete, and of new ones that a partition was raised above."""
    revisions = view.revisions_of(workload)
    newest = str(revisions[-1]["metadata"]["name"]) if len(revisions) > 1 else ""
    numbers = {one.of(pod.metadata.name): pod.revision == newest for pod in workload.active() if newest}
    return {number for number, new in numbers.items() if (new and number in one.kept) or (not new and one.by_hand)}


def _behind(view: View, workload: Workload, one: Numbered, ordinals: list[int], newest: str) -> bool:
    old = [pod for pod in workload.active() if pod.revision != newest and one.of(pod.metadata.name) in ordinals]
    return bool(old) or _unavailable(view, workload, one, ordinals) > 0


def _takes(commit: Commit) -> bool:
    """Report whether we delete a pod, or call its hook to do so."""
    before, pod = commit.before, commit.pod
    if not commit.ours or before is None:
        return False
    return commit.marked_deleted or (pod is not None and pod.state == PREPARING_DELETE != before.state)


def _updates(commit: Commit, newest: str) -> bool:
    """Report whether we take a pod out of service only for the update, or change it."""
    before, pod = commit.before, commit.pod
    if not commit.ours or before is None or not _outdated(before, newest):
        return False
    return _takes(commit) or (pod is not None and images(pod) != images(before))


def _outdated(pod: Pod, newest: str) -> bool:
    chosen = keys.SPECIFIED_DELETE_LABEL in pod.metadata.labels
    return pod.active and pod.revision != newest and pod.status.phase not in FINISHED and not chosen
