"""Updates chosen pods to the template's revision: in place if possible, else by deletion (daemonset.md §4.8)."""

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import IN_PLACE_READY, REVISION_LABEL
from flotilla_common.control.plan import Chain, Event, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import pods_word
from flotilla_common.workload.inplace import UpdateSpec, calculate
from flotilla_common.workload.inplace.calculate import hindrances_between
from flotilla_common.workload.inplace.update import start
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.pod_actions import PodActions
from flotilla_daemonset.daemonset.revisions import CODEC


class Updater:
    """Collects the pods that a pass updates."""

    def __init__(self, context: PlanContext, actions: PodActions, builder: PlanBuilder) -> None:
        self._context = context
        self._actions = actions
        self._builder = builder
        self._most = min(context.targets.burst, MAX_CHAINS_PER_PASS)
        self._chains: list[Chain] = []
        self._recreated = 0
        self._hindrance = ""

    def update(self, pod: Pod) -> None:
        """Update the pod, unless another step of the pass writes it already."""
        if pod.metadata.uid in self._builder.touched:
            return
        spec = self._in_place_spec(pod)
        if spec is None:
            self._recreated += 1
            self._actions.recreate(pod)
        elif len(self._chains) < self._most:
            chain = self._start(pod, spec)
            if self._context.disruptions.admits(pod, chain) and self._builder.touch(pod):
                self._chains.append(chain)

    def stage(self) -> None:
        """Stage the in-place updates. If one fails, no pod is deleted for the update."""
        self._builder.stage(self._chains)
        if self._chains:
            told = f"updating {pods_word(len(self._chains))} in place to {self._context.revisions.name}"
            self._builder.reason(State.PROGRESSING, "Updating", told)
        if self._recreated:
            why = f": {self._hindrance}" if self._hindrance else ""
            told = f"recreating {pods_word(self._recreated)} for {self._context.revisions.name}{why}"
            self._builder.reason(State.PROGRESSING, "Recreating", told)

    def _in_place_spec(self, pod: Pod) -> UpdateSpec | None:
        """Return how the pod is updated in place; None if that is impossible."""
        context = self._context
        if not context.targets.in_place:
            return None
        old = context.history.get(pod.revision)
        if old is None or IN_PLACE_READY not in pod.gates:
            self._hindrance = f"{pod.metadata.name} lacks its revision or the readiness gate {IN_PLACE_READY}"
            return None
        spec = calculate(CODEC, old, context.revisions.update, gates=context.snapshot.gates)
        if spec is None and not self._hindrance:
            self._hindrance = hindrances_between(CODEC, old, context.revisions.update, context.snapshot.gates)
        return spec

    def _start(self, pod: Pod, spec: UpdateSpec) -> Chain:
        name, revision = pod.metadata.name, self._context.revisions.name
        return start(
            pod,
            spec,
            self._context.in_place,
            revision_labels={REVISION_LABEL: self._context.revisions.hash},
            on_success=Event("SuccessfulUpdatePodInPlace", f"successfully update pod {name} in-place"),
            on_failure=Event(
                "FailedUpdatePodInPlace", f"failed to update pod {name} in-place(revision {revision}): ", warning=True
            ),
        )
