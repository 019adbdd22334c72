"""Claims: data is deleted only where the rules say so (cloneset.md §4.6, §4.9)."""

from collections.abc import Iterator

from flotilla_common.api.resources import CLAIM, POD
from tests.simulation.oracles.scene import Scene, Step, instance_of


class ClaimsKept:
    """A claim goes with a pod that we deleted, or, without reuse, when its pod is no more."""

    def __init__(self) -> None:
        self._dismissed: set[tuple[str, str]] = set()  # (owner, instance) of pods that we deleted
        self._lost: dict[tuple[str, str], float] = {}  # and of those that others did, and when

    def __call__(self, scene: Scene, step: Step) -> Iterator[str]:
        workload = step.workload
        if workload is None:
            return
        if step.version.resource == POD:
            self._remember(step, workload.uid)
        if step.version.resource != CLAIM or not step.ours or not step.marked_deleted or step.version.before is None:
            return
        instance = instance_of(step.version.before)
        pods = [pod for pod in workload.pods.values() if instance_of(pod) == instance]
        keeps = all(terms.keeps_claims for terms in workload.terms_lately(scene.since))
        if any(pod.active for pod in pods):
            yield f"deletes {step.version.name}, the claim of a living pod"
        elif keeps and not self._meant(workload.uid, instance, scene.since):
            yield f"deletes {step.version.name}, which waits for a pod to use it again"

    def _remember(self, step: Step, owner: str) -> None:
        if step.before is None and step.pod is not None:
            self._dismissed.discard((owner, instance_of(step.pod)))
        elif step.marked_deleted and step.before is not None:
            if step.ours:
                self._dismissed.add((owner, instance_of(step.before)))
            else:
                self._lost[(owner, instance_of(step.before))] = step.version.at

    def _meant(self, owner: str, instance: str, since: float) -> bool:
        """We deleted the pod, or may have been about to when somebody else did so a moment before: such a delete of
        ours succeeds, and leaves no trace."""
        return (owner, instance) in self._dismissed or self._lost.get((owner, instance), -1.0) >= since
