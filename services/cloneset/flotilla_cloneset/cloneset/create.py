"""Plans new pods: how many of which revision, with which ids, claims and content (cloneset.md §4.5).

A new pod already has both of Flotilla's readiness gates, so the pod webhook need not be in the path of CloneSet pods.
It starts as PreparingNormal, so that nothing counts it as available before it has a node.
"""

import hashlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Set
from datetime import datetime
from itertools import islice

import msgspec

from flotilla_cloneset.cloneset.claims import instance_id
from flotilla_cloneset.cloneset.context import PlanContext
from flotilla_cloneset.cloneset.numbers import Quantities
from flotilla_cloneset.cloneset.revisions import revision_labels
from flotilla_common.api import keys
from flotilla_common.api.core import ControllerRevision, Pod
from flotilla_common.api.documents import mapping, sequence, strings
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import CLAIM, POD
from flotilla_common.control.plan import Chain, Create, Event, Intent, Json, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.text import named
from flotilla_common.control.writes import create_of
from flotilla_common.workload.claims import ClaimTemplate, claim_templates, claims_of_revision
from flotilla_common.workload.lifecycle import initial_labels, state_annotations
from flotilla_common.workload.ownership import owner_reference
from flotilla_common.workload.pod_creation import (
    creates_of_pass,
    decode_template,
    first_batch,
    most_creates,
    revision_template,
    suffix,
    wanted_gates,
    with_readiness_gates,
    with_volumes,
)


def plan_creates(context: PlanContext, numbers: Quantities, builder: PlanBuilder) -> bool:
    """Plan up to `numbers.create_now` pods, old ones first. Return True if any is planned."""
    most = most_creates(len(context.snapshot.pods))
    count = min(numbers.create_now, most)
    ids = list(islice(_ids(context), count))
    old = min(count, numbers.scale_up_old)
    current = _factory(context, context.revisions.current)
    update = _factory(context, context.revisions.update)
    for factory in (current, update):
        if not context.selector.matches(factory.labels("")):
            text = f"pods of {factory.revision} would not match spec.selector: none is created"
            builder.reason(State.STUCK, "InvalidTemplate", text)
            builder.events.append(Event("InvalidTemplate", text, warning=True))
            return False
    waiting: list[Pod] = []
    chains: list[Chain] = []
    blocked: dict[str, Pod] = {instance_id(pod): pod for pod in context.pods.inactive}
    for position, identity in enumerate(ids):
        factory = current if position < old else update
        if identity in blocked:
            waiting.append(blocked[identity])
        elif not context.claims.terminating.isdisjoint(_claim_names(factory, identity)):
            text = f"the old claims of instance {identity} are still being deleted"
            builder.reason(State.STUCK, "WaitingForClaim", text, symptom=True)
        else:
            chains.append(_chain(context, factory, identity))
    if waiting:
        text = f"{named(waiting)} must be gone before a new pod can take over its name and claims"
        builder.reason(State.WAITING, "WaitingForTermination", text, waiting)
    failed = "scale" in context.snapshot.failures
    there = len(context.pods.old if old else context.pods.new)
    # Pods of the old revision get a pass of their own.
    chains = chains[: min(old or count, creates_of_pass(there, failed=failed, most=most))]
    if chains:
        builder.reason(State.PROGRESSING, "ScalingUp", f"creating {len(chains)} of {numbers.scale_up} missing pods")
    builder.stage(chains, slow_start=first_batch(there, len(chains), numbers.create_now, failed=failed))
    return bool(chains)


def _ids(context: PlanContext) -> Iterator[str]:
    """Yield ids for new pods: creates without a known outcome, then ids of free claims, then fresh ids."""
    snapshot = context.snapshot
    prefix = snapshot.cloneset.metadata.name
    by_pod = {pod.metadata.name: instance_id(pod) for pod in snapshot.pods}
    leaving = {by_pod[pod.metadata.name] for pod in snapshot.pods if pod.metadata.deletion_timestamp is not None}

    def usable(identity: str) -> bool:
        # Wait for a name only if its pod is terminating: a finished or released pod may keep it indefinitely.
        return bool(identity) and (identity in leaving or f"{prefix}-{identity}" not in snapshot.taken_names)

    kept = set(by_pod.values()) - leaving
    reused = _reused_ids(context, kept, usable) if snapshot.pending_ids or context.claims.by_id else []
    yield from reused
    every_claim = {instance_id(claim) for claim in snapshot.claims}
    taken = {*by_pod.values(), *every_claim, *reused}
    yield from filter(usable, new_instance_ids(snapshot.cloneset.metadata, [*by_pod, *every_claim], taken))


def _reused_ids(context: PlanContext, kept: Set[str], usable: Callable[[str], bool]) -> list[str]:
    """Return the ids of creates without a known outcome, then those of free claims; `kept` are those of pods."""
    living = {instance_id(pod) for pod in context.pods.active}
    pending = [identity for identity in context.snapshot.pending_ids if identity not in living]
    free = sorted(identity for identity in context.claims.by_id.keys() - living - kept if usable(identity))
    return list(dict.fromkeys((*pending, *free)))


def new_instance_ids(owner: ObjectMeta, existing: Iterable[str], taken: Collection[str]) -> Iterator[str]:
    """Yield endless ids that are not `taken`: the last five characters of the names of a pod and its claims (§4.5).

    They look random but are derived from what exists, so that planning the same view twice plans the same names: a plan
    that is repeated, after a crash or on a stale view, gets AlreadyExists instead of creating a second pod. The
    CloneSet's resourceVersion is part of the view. Without it, a set that returns to an earlier state (empty, for
    instance) would give a new pod the name of a dead one, and logs and metrics would merge the two.
    """
    seed = hashlib.sha256("\n".join((owner.uid, owner.resource_version, *sorted(existing))).encode()).digest()
    used = set(taken)
    for counter in itertools.count():
        candidate = suffix(seed, counter)
        if candidate not in used:
            used.add(candidate)
            yield candidate


class PodFactory(msgspec.Struct, frozen=True, kw_only=True):
    """Builds the pods of one revision."""

    cloneset: CloneSet
    template: Json
    revision: str  # full name of the ControllerRevision
    claims: tuple[ClaimTemplate, ...]
    short_label: bool  # gate CloneSetShortHash
    ready_gate: bool  # whether pods get the readiness gate KruisePodReady
    now: datetime

    def name(self, instance_id: str) -> str:
        """Return the name of an instance's pod."""
        return f"{self.cloneset.metadata.name}-{instance_id}"

    def labels(self, instance_id: str) -> dict[str, str]:
        """Return the labels of an instance's pod."""
        return {
            **strings(mapping(self.template.get("metadata")).get("labels")),
            **revision_labels(self.revision, short=self.short_label),
            keys.INSTANCE_ID_LABEL: instance_id,
            **initial_labels(),
        }

    def pod(self, instance_id: str) -> Json:
        """Return the body of an instance's pod."""
        meta, spec = mapping(self.template.get("metadata")), mapping(self.template.get("spec"))
        metadata: Json = {
            "name": self.name(instance_id),
            "generateName": f"{self.cloneset.metadata.name}-",
            "namespace": self.cloneset.metadata.namespace,
            "labels": self.labels(instance_id),
            "annotations": {**mapping(meta.get("annotations")), **state_annotations(self.now)},
            "ownerReferences": [owner_reference(CLONE_SET, self.cloneset.metadata)],
        }
        if meta.get("finalizers"):
            metadata["finalizers"] = sequence(meta["finalizers"])
        names = (keys.IN_PLACE_READY, keys.POD_READY) if self.ready_gate else (keys.IN_PLACE_READY,)
        volumes = [template.volume(self.cloneset.metadata.name, instance_id) for template in self.claims]
        body = with_volumes(with_readiness_gates(spec, names), volumes)
        return {**POD.type_meta, "metadata": metadata, "spec": body}

    def claim(self, template: ClaimTemplate, instance_id: str) -> Json:
        """Return the body of an instance's claim."""
        meta = self.cloneset.metadata
        labels = {**self.cloneset.spec.selector.match_labels, keys.INSTANCE_ID_LABEL: instance_id}
        return template.claim(meta.name, instance_id, meta.namespace, labels, [owner_reference(CLONE_SET, meta)])


def _factory(context: PlanContext, revision: ControllerRevision) -> PodFactory:
    snapshot = context.snapshot
    meta = snapshot.cloneset.metadata
    update = revision.metadata.name == context.revisions.update.metadata.name
    claims = claim_templates(snapshot.cloneset.spec.volume_claim_templates)
    return PodFactory(
        cloneset=snapshot.cloneset,
        template=decode_template(snapshot.cloneset.spec.template) if update else revision_template(revision.data),
        revision=revision.metadata.name,
        claims=claims if update else claims_of_revision(revision, claims),
        short_label=snapshot.gates.on("CloneSetShortHash"),
        ready_gate=bool(wanted_gates(snapshot.gates, meta.namespace, snapshot.options.system_namespace)),
        now=context.now,
    )


def _claim_names(factory: PodFactory, identity: str) -> list[str]:
    return [template.claim_name(factory.cloneset.metadata.name, identity) for template in factory.claims]


def _chain(context: PlanContext, factory: PodFactory, identity: str) -> Chain:
    """Create the missing claims, then the pod: a claim that cannot be created prevents the pod."""
    pod = factory.pod(identity)
    existing = {claim.metadata.name for claim in context.claims.of(identity)}
    claims = [
        _create_claim(factory.claim(template, identity), pod["metadata"]["name"])
        for template, name in zip(factory.claims, _claim_names(factory, identity), strict=True)
        if name not in existing
    ]
    return (*claims, _create_pod(pod, factory.revision))


def _create_claim(body: Json, pod: str) -> Create:
    return create_of(CLAIM, body, Intent.CLAIM, "scale up", pods=(pod,), phase="scale", on_failure=_failed("pvc", body))


def _create_pod(body: Json, revision: str) -> Create:
    return create_of(
        POD,
        body,
        Intent.CREATE,
        "scale up",
        revision=revision,
        phase="scale",
        on_success=Event("SuccessfulCreate", f"succeed to create pod {body['metadata']['name']}"),
        on_failure=_failed("pod", body),
    )


def _failed(what: str, body: Json) -> Event:
    text = f", {what}: {msgspec.json.encode(body).decode()}"
    return Event("FailedCreate", f"failed to create {what}: ", after=text, warning=True)
