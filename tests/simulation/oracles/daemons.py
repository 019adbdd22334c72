"""DaemonSets: creation and deletion of their pods (daemonset.md §4.5 to §4.8).

Each pod that we create must be the only one of its revision on a node that wants it. Each deletion or change must have
a reason: the node does not want the pod, it failed, it is surplus, or it is old and may be replaced now.
"""

from collections.abc import Iterator
from itertools import product

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import member
from flotilla_common.api.keys import SPECIFIED_DELETE_LABEL
from flotilla_common.api.resources import EVENT, NODE, POD
from flotilla_common.control.plan import Json
from flotilla_common.workload.revision_codec import belongs
from tests.simulation.oracles.availability import images
from tests.simulation.oracles.node_history import DaemonSetHistory, Timeline, is_doubled, is_down, node_of
from tests.simulation.oracles.population import PREPARING_DELETE
from tests.simulation.oracles.terms import PerNode
from tests.simulation.oracles.view import Commit, View, Workload, lost

FIRST_DELAY = 1.0
"""The least backoff in seconds for a pod that failed again."""

NEVER = -FIRST_DELAY


class Daemons:
    """The rule for DaemonSets: the states of the nodes over time, and the history of each DaemonSet."""

    def __init__(self) -> None:
        self._nodes: dict[str, Timeline[Json | None]] = {}
        self._histories: dict[str, DaemonSetHistory] = {}  # by uid
        self._failed: dict[tuple[str, str], float] = {}  # by DaemonSet and node: when we deleted a failed pod last

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version, workload = commit.version, commit.workload
        if version.resource == EVENT:
            return
        if version.resource == NODE:
            self._nodes.setdefault(version.name, Timeline()).record(view.at, version.after)
        elif workload is not None and workload.terms.per_node is not None:
            self._histories.setdefault(workload.uid, DaemonSetHistory(workload))
            if version.uid == workload.uid and _observed(version.before) != _observed(version.after):
                self._failed = {key: at for key, at in self._failed.items() if key[0] != workload.uid}
        for history in self._histories.values():
            self._look(view, history, ours=commit.ours)
        history = self._histories.get(workload.uid) if workload is not None else None
        if commit.ours and version.resource == POD and history is not None and history.workload.ended is None:
            yield from _Check(view, history, self._nodes, self._failed).of(commit)

    def _look(self, view: View, history: DaemonSetHistory, *, ours: bool) -> None:
        there = {name: told.now for name, told in self._nodes.items() if told.now is not None}
        per_node = history.workload.terms.per_node
        wanted = sum(per_node is not None and per_node.wants(node) for node in there.values())
        history.look(view, there, wanted, ours=ours)


class _Check:
    """A check of one commit of ours."""

    def __init__(
        self,
        view: View,
        history: DaemonSetHistory,
        nodes: dict[str, Timeline[Json | None]],
        failed: dict[tuple[str, str], float],
    ) -> None:
        self._scene = view
        self._since = view.since
        self._course = history
        self._workload: Workload = history.workload
        self._nodes = nodes
        self._failed = failed
        self._terms = [one.per_node for one in self._workload.recent_terms(self._since) if one.per_node is not None]
        self._counts = list(history.wanted.lately(self._since))
        surges = [one.max_surge(count) > 0 for one, count in product(self._terms, self._counts)]
        self._may_surge, self._must_surge = any(surges), all(surges)

    def of(self, commit: Commit) -> Iterator[str]:
        """Yield the breaches of the commit."""
        if commit.makes_a_pod and commit.pod is not None:
            yield from self._makes(commit.pod)
        elif commit.before is not None and self._takes(commit):
            yield from self._unfounded(commit, commit.before)

    def _makes(self, pod: Pod) -> Iterator[str]:
        node = node_of(pod)
        if not any(one.wants(there) for one, there in self._lately(node)):
            yield f"makes a pod for {node!r}, which must not have one"
        if not any(belongs(pod.revision, name) for name in self._course.newest.lately(self._since)):
            yield f"makes a pod of revision {pod.revision}, which is not the newest"
        others = self._others(pod, self._course.on(node))
        if others and not self._may_surge:
            yield f"makes a pod beside {_names(others)} on {node}"
        living = self._others(pod, self._course.living(node))
        if any(one.revision == pod.revision for one in living):
            yield f"makes a second pod of one revision on {node}"
        elif living:
            yield from self._not_to_be_updated(node)
            yield from self._too_many_surge(node)
        yield from self._too_early(node)

    def _too_early(self, node: str) -> Iterator[str]:
        """Report whether the partition forbids a first pod, with progressive creation."""
        if not all(one.progressive for one in self._terms):
            return
        made = sum(any(map(self._course.is_new, self._course.living(name))) for name in self._present())
        most = max(count - one.kept(count) for one, count in self._cases())
        if made > most:
            yield f"makes a pod on {node}, the {made}th, though the partition lets {most} through"

    def _too_many_surge(self, node: str) -> Iterator[str]:
        """Report whether the surge is exceeded. Unavailable old pods get a new one in any case."""
        if not all(state.up for state in self._course.lately(node, self._since)):
            return
        doubled = sum(self._course.is_known(is_doubled, name, self._since) for name in self._present())
        most = max(one.max_surge(count) for one, count in self._cases())
        if doubled > most:
            yield f"makes a second pod on {doubled} nodes, {most} may have one"

    def _takes(self, commit: Commit) -> bool:
        """Check a commit that deletes a pod, begins to, takes it out of service, or changes its images."""
        before, pod = commit.before, commit.pod
        if before is None or before.metadata.deletion_timestamp is not None:
            return False
        if commit.marked_deleted or pod is None:
            return True
        held = pod.state == PREPARING_DELETE != before.state
        return held or images(pod) != images(before) or lost(self._scene, self._workload, commit)

    def _unfounded(self, commit: Commit, before: Pod) -> Iterator[str]:
        node = node_of(before)
        if before.state == PREPARING_DELETE or not self._workload.terms.selector.matches(before.metadata.labels):
            return
        if before.status.phase == "Failed":
            yield from self._too_soon(before, node)
        elif SPECIFIED_DELETE_LABEL in before.metadata.labels:  # by the user, whatever the rollout may do
            if lost(self._scene, self._workload, commit):
                yield from self._too_many_down(node)
        elif self._is_kept(node) and not self._is_spare(before, node):
            yield from self._replaces(commit, before, node)

    def _too_soon(self, before: Pod, node: str) -> Iterator[str]:
        """Report whether the backoff has not passed. A restarted replica has lost it; old pods go for their update."""
        key = self._workload.uid, node
        last, self._failed[key] = self._failed.get(key, NEVER), self._scene.at
        known = self._course.is_new(before) and self._scene.lag < FIRST_DELAY
        if known and self._scene.at - last < FIRST_DELAY:
            yield f"deletes a failed pod on {node} again after {self._scene.at - last:.2f} s"

    def _is_kept(self, node: str) -> bool:
        """Report whether the node exists and may keep its pods, by all recent states."""
        told = self._nodes.get(node)
        if told is None or any(there is None for there in told.lately(self._since)):
            return False
        return all(one.keeps(there) for one, there in self._lately(node))

    def _is_spare(self, before: Pod, node: str) -> bool:
        """Report whether another pod like it is left on the node."""
        rest = self._others(before, self._course.living(node))
        alike = [self._course.is_new(pod) == self._course.is_new(before) for pod in rest]
        return any(alike) if self._must_surge else bool(rest)

    def _replaces(self, commit: Commit, before: Pod, node: str) -> Iterator[str]:
        if all(belongs(before.revision, name) for name in self._course.newest.lately(self._since)):
            yield f"takes the pod of {node} away, which has the newest revision"
        elif self._must_surge:
            rest = self._others(before, self._course.living(node))
            if not rest or (before.ready and not any(one.renewed for one in self._course.lately(node, self._since))):
                yield f"takes the old pod of {node} away before a new one is available"
        else:
            yield from self._not_to_be_updated(node)
            if lost(self._scene, self._workload, commit) and not self._may_surge:
                yield from self._too_many_down(node)

    def _not_to_be_updated(self, node: str) -> Iterator[str]:
        if not any(one.updates(there) for one, there in self._lately(node)):
            yield f"updates {node}, which is not to be updated"
        left = sum(self._course.stays(name, self._since) or self._is_gone(name) for name in self._there())
        least = min(one.kept(count) for one, count in self._cases())
        if left < least:
            yield f"updates {node}: {left} are left on old revisions, {least} must be"

    def _too_many_down(self, node: str) -> Iterator[str]:
        down = [name for name in self._there() if self._is_missed(name)]
        most = max(one.max_unavailable(count) for one, count in self._cases())
        if len(down) > most:
            yield f"takes {node} out of service: {', '.join(down)} are, {most} may be"

    def _is_missed(self, node: str) -> bool:
        """Report whether the node has long wanted a pod, and has no available one.

        A node that only waits for the end of an update does not count where no update could begin.
        """
        if None in self._nodes[node].lately(self._since) or not self._course.is_known(is_down, node, self._since):
            return False
        lately = list(self._lately(node))
        free = any(one.partition or not one.updates(there) for one, there in lately)
        return all(one.wants(there) for one, there in lately) and not (free and self._course.state(node).stays)

    def _is_gone(self, node: str) -> bool:
        """Report whether the node is gone; a controller that does not see it yet counts it among those not updated."""
        return self._nodes[node].now is None

    def _present(self) -> Iterator[str]:
        """Return the nodes that exist now."""
        return (name for name, told in self._nodes.items() if told.now is not None)

    def _there(self) -> Iterator[str]:
        """Return the nodes that existed recently."""
        return (name for name, told in self._nodes.items() if any(told.lately(self._since)))

    def _lately(self, node: str) -> Iterator[tuple[PerNode, Json]]:
        """Yield the recent pairs of terms and node."""
        told = self._nodes.get(node)
        there = [one for one in told.lately(self._since) if one is not None] if told is not None else []
        return product(self._terms, there)

    def _cases(self) -> Iterator[tuple[PerNode, int]]:
        """Yield the recent terms, with how many nodes wanted a pod."""
        return product(self._terms, self._counts)

    def _others(self, pod: Pod, pods: Iterator[Pod]) -> list[Pod]:
        """Yield the other pods that the selector matches."""
        matches = self._workload.terms.selector.matches
        return [one for one in pods if one.metadata.uid != pod.metadata.uid and matches(one.metadata.labels)]


def _observed(document: Json | None) -> int:
    """Return the generation that backoffs belong to."""
    return member(document or {}, "status").get("observedGeneration", 0)


def _names(pods: list[Pod]) -> str:
    return ", ".join(pod.metadata.name for pod in pods)
