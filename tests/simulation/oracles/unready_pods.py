"""Readiness as a watch shows it: the number of pods that are not Ready because of us.

A pod counts as taken when a write of ours, or a kubelet because of a readiness gate that we closed, sets its Ready to
False, and until a watch shows it Ready again, regardless of its gates. A new replica sees what the replica before it
took, so there is no grace period for it.
"""

from collections.abc import Iterator

from flotilla_common.api.core import Pod
from flotilla_common.api.resources import NODE, POD
from flotilla_common.control.plan import Json
from tests.simulation.oracles.terms import Terms
from tests.simulation.oracles.view import Commit, View, Workload, follows_our_gates


class UnreadyPods:
    """The rule for unready pods: the taken pods by workload. Unwanted pods are left out: they may go."""

    def __init__(self) -> None:
        self._taken: dict[str, set[str]] = {}
        self._nodes: dict[str, Json] = {}

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        version, workload = commit.version, commit.workload
        if version.resource == NODE:
            if version.after is None:
                self._nodes.pop(version.name, None)
            else:
                self._nodes[version.name] = version.after
        if version.resource != POD or workload is None:
            return
        taken = self._taken.setdefault(workload.uid, set())
        if not _is_taken(commit):
            if commit.pod is None or commit.pod.ready:
                taken.discard(version.uid)
            return
        taken.add(version.uid)
        lately = list(workload.recent_terms(view.since))
        if workload.ended is not None or not all(terms.wants(version.name) for terms in lately):
            return
        count = sum(workload.counts(pod) and lately[-1].wants(pod.metadata.name) for pod in _of(workload, taken))
        most = max(self._most(workload, terms) for terms in lately) + workload.recent_losses(view.since)
        if count > most:
            yield f"{count} pods of {workload.name} are not Ready because of us, {most} may be"

    def _most(self, workload: Workload, terms: Terms) -> int:
        """Return how many pods may be taken now by these terms."""
        if terms.per_node is None:
            surplus = sum(map(workload.counts, workload.pods.values())) - terms.replicas
            return terms.max_unavailable + max(surplus, 0)
        per_node = terms.per_node
        return per_node.max_unavailable(sum(map(per_node.wants, self._nodes.values())))


def _of(workload: Workload, uids: set[str]) -> Iterator[Pod]:
    return (pod for uid, pod in workload.pods.items() if uid in uids)


def _is_taken(commit: Commit) -> bool:
    """Report whether the commit makes a pod unready, because of us."""
    before, pod = commit.before, commit.pod
    if before is None or pod is None or not before.ready or pod.ready or not pod.active:
        return False
    return commit.ours or follows_our_gates(commit)
