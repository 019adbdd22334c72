"""Creates, deletes and readiness of pods in one pass (broadcastjob.md §4.2 steps 11 and 12, §4.4; common.md §6.2)."""

from datetime import datetime

from flotilla_common.api.core import Pod
from flotilla_common.api.documents import mapping, strings
from flotilla_common.api.keys import POD_READY
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB, NAME_LABEL, UID_LABEL
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Create, Delete, Event, Intent, Patch, PatchType, State
from flotilla_common.control.planbuilder import MAX_CHAINS_PER_PASS, PlanBuilder
from flotilla_common.control.text import named, nodes_word, pods_word
from flotilla_common.control.writes import delete_of
from flotilla_common.workload.pernode import CREATE, PodFactory
from flotilla_common.workload.pod_creation import (
    creates_of_pass,
    decode_template,
    first_batch,
    wanted_gates,
    with_readiness_gates,
)
from flotilla_common.workload.podedit import PodEdit
from flotilla_common.workload.readiness import ensure_pod_ready
from flotilla_jobs.broadcastjob.context import PlanContext
from flotilla_jobs.broadcastjob.snapshot import BroadcastJobSnapshot

DELETE = "delete"
"""Phase of deletes: the next pass finds their failures under it."""

_CAUSE = "first readiness"


def plan_creates(context: PlanContext, builder: PlanBuilder) -> None:
    """Create pods on as many waiting nodes as parallelism allows, in slow start."""
    waiting, active = context.node_view.waiting, context.counts.active
    limit = context.parallelism
    if limit is None:
        text = f"parallelism {context.job.spec.parallelism!r} is neither a number nor a percentage: nothing is created"
        builder.reason(State.STUCK, "InvalidNumber", text)
        return
    if len(active) > max(limit, 0):
        event = Event("TooManyActivePods", "Number of active pods exceed parallelism limit", warning=True)
        builder.tell_once(event, context.snapshot.notes)
        text = f"{pods_word(len(active))} are active, more than parallelism {limit}: none is created, none deleted"
        builder.reason(State.WAITING, "TooManyActivePods", text, active)
        return
    free = max(limit, 0) - len(active)
    # Slow start: what refuses one pod refuses the others too.
    _create(context, waiting[:free], builder)
    if left := waiting[free:]:
        users = f"is used by {named(active)}" if active else "is used by this pass" if free else "lets nothing start"
        wait = "waits" if len(left) == 1 else "wait"
        text = f"{nodes_word(len(left))} {wait} for a pod; parallelism {limit} {users}"
        state = State.WAITING if active or free else State.HELD
        builder.reason(state, "WaitingForParallelism", text, left)


def plan_misplaced(context: PlanContext, builder: PlanBuilder) -> None:
    """Delete pods, ended ones too, on nodes that should have none any more."""
    misplaced = context.node_view.misplaced[:MAX_CHAINS_PER_PASS]
    builder.stage([(delete(pod, Intent.DELETE, f"its node {why}"),) for pod, why in misplaced])
    for pod, why in misplaced:
        builder.reason(State.PROGRESSING, "Deleting", f"deleting {pod.metadata.name}: its node {why}", [pod])


def delete(pod: Pod, intent: Intent, cause: str) -> Delete:
    """Return the delete of one pod."""
    return delete_of(
        POD,
        pod.metadata,
        intent,
        cause,
        phase=DELETE,
        on_success=Event("SuccessfulDelete", f"Delete pod: {pod.metadata.name}"),
    )


def _create(context: PlanContext, nodes: list[str], builder: PlanBuilder) -> None:
    if not nodes:
        return
    factory = pod_factory(context.snapshot)
    there, failed = len(context.snapshot.pods), CREATE in context.snapshot.failures
    chosen = nodes[: creates_of_pass(there, failed=failed, most=MAX_CHAINS_PER_PASS)]
    batch = first_batch(there, len(chosen), len(nodes), failed=failed)
    creates = [factory.create(node, f"new pod for {node}") for node in chosen]
    gated = bool(gates_of(context.snapshot))
    chains = [(create, first_readiness(create, context.now)) if gated else (create,) for create in creates]
    builder.stage(chains, slow_start=batch, stop_on_failure=False)
    text = f"creating pods on {len(chosen)} of {nodes_word(len(nodes))} that wait for one: {named(nodes)}"
    builder.reason(State.PROGRESSING, "Creating", text, nodes)


def pod_factory(snapshot: BroadcastJobSnapshot) -> PodFactory:
    """Return the factory of the pods of a pass."""
    meta, template = snapshot.job.metadata, decode_template(snapshot.job.spec.template)
    metadata = mapping(template.get("metadata"))
    return PodFactory(
        resource=BROADCAST_JOB,
        owner=meta,
        metadata=metadata,
        labels={**strings(metadata.get("labels")), NAME_LABEL: meta.name, UID_LABEL: meta.uid},
        spec=with_readiness_gates(mapping(template.get("spec")), gates_of(snapshot)),
        by_scheduler=snapshot.options.assign_by_scheduler,
        taken=snapshot.taken_names,
        former=snapshot.former_names,
    )


def gates_of(snapshot: BroadcastJobSnapshot) -> tuple[str, ...]:
    """Return the readiness gates of the pods; a gated pod is Ready only with our condition."""
    return wanted_gates(snapshot.gates, snapshot.job.metadata.namespace, snapshot.options.system_namespace)


def first_readiness(create: Create, now: datetime) -> Patch:
    """Return the patch that makes a just created pod with the gate ready.

    The kubelet has not seen the pod yet: it finds the condition, and does not have to write its own status again.
    """
    condition = {"type": POD_READY, "status": "True", "lastTransitionTime": rfc3339(now)}
    return Patch(
        resource=POD,
        namespace=create.namespace,
        name=create.name,
        intent=Intent.REFRESH,
        cause=_CAUSE,
        body={"status": {"conditions": [condition]}},
        patch_type=PatchType.STRATEGIC,
        subresource="status",
    )


def plan_readiness(context: PlanContext, builder: PlanBuilder) -> None:
    """Restore the condition of pods that declare the gate and have lost it."""
    waiting = [pod for pod in context.counts.active if _lacks_readiness(pod)][:MAX_CHAINS_PER_PASS]
    edits = [PodEdit(pod, Intent.REFRESH, _CAUSE, phase="") for pod in waiting]
    for edit in edits:
        ensure_pod_ready(edit, context.now)
    builder.stage([edit.chain() for edit in edits], stop_on_failure=False)


def _lacks_readiness(pod: Pod) -> bool:
    return POD_READY in pod.gates and POD_READY not in pod.conditions
