"""Claims: data is deleted only where the rules allow it (cloneset.md §4.6, §4.9)."""

from collections.abc import Iterator

from flotilla_common.api.resources import CLAIM, POD
from tests.simulation.oracles.view import Commit, View, instance_of


class ClaimsKept:
    """The rule for claims: one is deleted with a pod that we deleted, or, without reuse, when its pod is gone."""

    def __init__(self) -> None:
        self._dismissed: set[tuple[str, str]] = set()  # (owner, instance) of pods that we deleted
        self._lost: dict[tuple[str, str], float] = {}  # and of those that others did, and when

    def __call__(self, view: View, commit: Commit) -> Iterator[str]:
        workload = commit.workload
        if workload is None:
            return
        if commit.version.resource == POD:
            self._remember(commit, workload.uid)
        if (
            commit.version.resource != CLAIM
            or not commit.ours
            or not commit.marked_deleted
            or commit.version.before is None
        ):
            return
        instance = instance_of(commit.version.before)
        pods = [pod for pod in workload.pods.values() if instance_of(pod) == instance]
        keeps = all(terms.keeps_claims for terms in workload.recent_terms(view.since))
        if any(pod.active for pod in pods):
            yield f"deletes {commit.version.name}, the claim of a living pod"
        elif keeps and not self._meant(workload.uid, instance, view.since):
            yield f"deletes {commit.version.name}, which waits for a pod to use it again"

    def _remember(self, commit: Commit, owner: str) -> None:
        if commit.before is None and commit.pod is not None:
            self._dismissed.discard((owner, instance_of(commit.pod)))
        elif commit.marked_deleted and commit.before is not None:
            if commit.ours:
                self._dismissed.add((owner, instance_of(commit.before)))
            else:
                self._lost[(owner, instance_of(commit.before))] = commit.version.at

    def _meant(self, owner: str, instance: str, since: float) -> bool:
        """Report whether we deleted the pod, or may have been about to when another client did so just before.

        Such a delete of ours succeeds, and leaves no trace.
        """
        return (owner, instance) in self._dismissed or self._lost.get((owner, instance), -1.0) >= since
