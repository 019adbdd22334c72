"""Collects the creates and deletes of a pass, each once and within the limits of one pass (daemonset.md §4.7)."""

from flotilla_common.api import keys
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import mapping, strings
from flotilla_common.api.kinds.daemonset.types import DAEMON_SET
from flotilla_common.api.kinds.podunavailablebudget import types as budget_types
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Chain, Delete, Event, Intent, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import named, nodes_word
from flotilla_common.control.writes import delete_of
from flotilla_common.workload.lifecycle import PREPARING_DELETE, hooked, write_state
from flotilla_common.workload.pernode import CREATE, PodFactory
from flotilla_common.workload.placement import with_daemon_tolerations
from flotilla_common.workload.pod_creation import (
    creates_of_pass,
    decode_template,
    first_batch,
    wanted_gates,
    with_readiness_gates,
)
from flotilla_common.workload.podedit import PodEdit
from flotilla_daemonset.daemonset.context import PlanContext
from flotilla_daemonset.daemonset.pods import GENERATION_ANNOTATION, GENERATION_LABEL

DELETE = "delete"
"""The phase of deletes, under which the next pass finds the failures of this one."""


class PodActions:
    """Collects the creates and deletes of a pass."""

    def __init__(self, context: PlanContext, builder: PlanBuilder) -> None:
        self._context = context
        self._builder = builder
        self._most = min(context.targets.burst, MAX_CHAINS_PER_PASS)
        self._nodes: dict[str, None] = {}  # in the order in which they get their pods
        self._chains: list[Chain] = []
        self._deleted: list[Pod] = []
        self._held: list[Pod] = []
        self._leaving: set[str] = set()  # uids of deleted and held pods

    def create(self, node: str) -> None:
        """Create a pod on the node."""
        self._nodes.setdefault(node)

    def recreate(self, pod: Pod) -> None:
        """Delete the pod, so that its node gets a pod of the update revision."""
        revision = self._context.revisions.name
        self.delete(pod, Intent.RECREATE, f"recreate update to {revision}", revision=revision)

    def delete(self, pod: Pod, intent: Intent, cause: str, *, revision: str = "") -> None:
        """Delete the pod, or put it into PreparingDelete while the hook holds it.

        Deletes beyond the limit of one pass are left to the next one.
        """
        held = hooked(self._context.pre_delete, pod)
        if held:
            self._held.append(pod)
        elif len(self._deleted) >= self._most or not self._context.disruptions.try_take(pod, budget_types.DELETE):
            return
        if not self._builder.touch(pod):
            return
        self._leaving.add(pod.metadata.uid)
        if not held:
            self._deleted.append(pod)
        chain = self._prepare(pod, cause) if held else (self._delete_of(pod, intent, cause, revision),)
        self._chains.append(chain)

    def takes(self, pod: Pod) -> bool:
        """Report whether this pass deletes or holds the pod."""
        return pod.metadata.uid in self._leaving

    def stage_deletes(self) -> None:
        """Stage the deletes so far."""
        self._builder.stage(self._chains, stop_on_failure=False)
        self._chains = []

    def stage_creates(self) -> None:
        """Stage the creates in slow start: an error for one pod usually hits the others, too."""
        wanted = list(self._nodes)
        if not wanted:
            return
        factory, builder = pod_factory(self._context), self._builder
        if not self._context.selector.matches(factory.labels):
            text = "pods of the template would not match spec.selector: none is created"
            builder.reason(State.STUCK, "InvalidTemplate", text)
            builder.events.append(Event("InvalidTemplate", text, warning=True))
            return
        there, failed = len(self._context.members.own), CREATE in self._context.snapshot.failures
        most = min(creates_of_pass(there, failed=failed), self._most)
        cause = f"new pod of {factory.revision}"
        chains = [(factory.create(node, cause),) for node in wanted[:most]]
        batch = first_batch(there, len(chains), len(wanted), failed=failed)
        builder.stage(chains, slow_start=batch, stop_on_failure=False)
        text = f"creating pods on {len(chains)} of {nodes_word(len(wanted))} that lack one: {named(wanted)}"
        builder.reason(State.PROGRESSING, "Creating", text, wanted)

    def explain(self) -> None:
        """Explain which pods are deleted, and which are held by the hook."""
        if self._deleted:
            self._builder.reason(State.PROGRESSING, "Deleting", f"deleting {named(self._deleted)}", self._deleted)
        if self._held:
            text = f"the preDelete hook holds {named(self._held)}"
            self._builder.reason(State.HELD, "WaitingForHook", text, self._held)

    def _delete_of(self, pod: Pod, intent: Intent, cause: str, revision: str) -> Delete:
        """Build the delete of the pod.

        A pod that does not serve may be deleted out of turn, so it is deleted at exactly the version read: by now it
        may be serving.
        """
        return delete_of(
            POD,
            pod.metadata,
            intent,
            cause,
            revision=revision,
            phase=DELETE,
            on_version=not self._context.is_available(pod),
            on_success=Event("SuccessfulDelete", f"Deleted pod: {pod.metadata.name}"),
            on_failure=Event("FailedDelete", "Error deleting: ", warning=True),
        )

    def _prepare(self, pod: Pod, cause: str) -> Chain:
        edit = PodEdit(pod, Intent.HOLD, cause, phase=DELETE)
        write_state(edit, PREPARING_DELETE, self._context.daemonset.spec.lifecycle, self._context.now)
        return edit.chain()


def pod_factory(context: PlanContext) -> PodFactory:
    """Return the factory of the pass's pods, all of the template's revision."""
    snapshot, meta = context.snapshot, context.daemonset.metadata
    template = decode_template(context.daemonset.spec.template)
    metadata, spec = mapping(template.get("metadata")), mapping(template.get("spec"))
    gates = wanted_gates(snapshot.gates, meta.namespace, snapshot.options.system_namespace)
    gates = (keys.IN_PLACE_READY, *gates) if context.targets.in_place else gates
    generation = meta.annotations.get(GENERATION_ANNOTATION)
    return PodFactory(
        resource=DAEMON_SET,
        owner=meta,
        metadata=metadata,
        labels={
            **strings(metadata.get("labels")),
            keys.REVISION_LABEL: context.revisions.hash,
            **({GENERATION_LABEL: generation} if generation is not None else {}),
        },
        spec=with_readiness_gates({**spec, "tolerations": with_daemon_tolerations(spec)}, gates),
        by_scheduler=snapshot.options.assign_by_scheduler,
        scheduler="kubernetes.io/daemonset-controller",
        revision=context.revisions.name,
        taken=snapshot.taken_names,
        former={node: former.name for node, former in snapshot.previous_pods.items()},
        seed=context.revisions.hash,
    )
