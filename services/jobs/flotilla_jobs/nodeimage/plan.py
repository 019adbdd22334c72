"""Plans the life of a NodeImage (imagepull.md §4).

It is created and deleted with its node, cleaned of tags and secrets that are no longer needed, and shows what the
node's agent reports.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.core import Node
from flotilla_common.api.documents import Json, merge_patch
from flotilla_common.api.kinds.imagepulljob.types import IMAGE_PULL_JOB
from flotilla_common.api.kinds.nodeimage.types import (
    BATCH,
    FAKE_LABEL,
    NODE_IMAGE,
    ImageSpec,
    ImageTag,
    JobReference,
    NodeImage,
    SecretReference,
    tasks,
)
from flotilla_common.api.meta import group_of, later
from flotilla_common.control.plan import Action, Intent, Plan, Stage, State
from flotilla_common.control.planbuilder import Deadlines, PlanBuilder
from flotilla_common.control.writes import create_of, delete_of, patch_of, status_patch
from flotilla_common.workload.causes import PodContext, node_trouble
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot
from flotilla_jobs.nodeimage.status import PullTimeouts, reported
from flotilla_jobs.unreachable_agents import no_agent, unreachable

SOONEST = timedelta(seconds=3)
"""Minimum time before a deadline requeues a NodeImage: many tags expire at about the same time."""

VIRTUAL = "virtual-kubelet"
"""Label `type` of virtual nodes, which have no agent to pull images."""


def plan(snapshot: NodeImageSnapshot, now: datetime) -> Plan:
    """Plan at most two writes: first the object or its spec, and when these are right, the status."""
    image, node = snapshot.image, snapshot.node
    if node is None or node.metadata.deletion_timestamp is not None:
        if image is None or image.metadata.deletion_timestamp is not None:
            return Plan()
        if FAKE_LABEL not in image.metadata.labels:
            return _single(delete_of(NODE_IMAGE, image.metadata, Intent.DELETE, "node is gone"))
    if image is None:
        return _created(snapshot, now)
    if image.metadata.deletion_timestamp is not None:
        return Plan()
    builder = PlanBuilder()
    if patch := _cleaning(snapshot, image, now, builder.deadlines):
        # On the planned version: jobs write into the same lists.
        cause = "remove what is done"
        return _single(patch_of(NODE_IMAGE, image.metadata, Intent.UPDATE, cause, body=patch, on_version=True))
    return _with_status(snapshot, image, now, builder)


def _created(snapshot: NodeImageSnapshot, now: datetime) -> Plan:
    """Create it once the node has been ready for a while: nodes that flap at their start cause no work."""
    node = snapshot.node
    ready = node.ready if node is not None else None
    if node is None or ready is None or node.metadata.labels.get("type") == VIRTUAL:
        return Plan()
    builder = PlanBuilder()
    since = ready.last_transition_time or now
    if not builder.deadlines.passed(later(since, snapshot.options.creation_delay), now):
        seconds = round(snapshot.options.creation_delay.total_seconds())
        message = f"the node has been ready for {round((now - since).total_seconds())} of {seconds} seconds"
        builder.reason(State.WAITING, "WaitingForReadyNode", message)
        return builder.plan()
    body: Json = {**NODE_IMAGE.type_meta, "metadata": {"name": snapshot.name}}
    return _single(create_of(NODE_IMAGE, body, Intent.CREATE, "node is ready"))


def _cleaning(snapshot: NodeImageSnapshot, image: NodeImage, now: datetime, deadlines: Deadlines) -> Json:
    """Return the merge patch that the object needs, empty if it is clean."""
    patch: Json = {}
    node = snapshot.node
    if node is not None and (labels := merge_patch(image.metadata.labels, node.metadata.labels)):
        patch["metadata"] = {"labels": labels}
    images = Cleaner(snapshot, image, now, deadlines).images()
    if images != image.spec.images:
        before, after = msgspec.to_builtins(image.spec.images), msgspec.to_builtins(images)
        patch["spec"] = {"images": merge_patch(before, after)}
    return patch


def _with_status(snapshot: NodeImageSnapshot, image: NodeImage, now: datetime, builder: PlanBuilder) -> Plan:
    timeouts = PullTimeouts(image, now, builder.deadlines)
    status = image.status if snapshot.report is None else reported(image, snapshot.report)
    status = timeouts.applied(status)
    builder.events += timeouts.events
    _give_reasons(msgspec.structs.replace(image, status=status), now, builder)
    _explain_node(snapshot.node, builder)
    builder.deadlines.not_before(now + SOONEST)
    final = (status.succeeded, status.failed) != (image.status.succeeded, image.status.failed)
    counts = ("desired", "succeeded", "failed", "pulling", "waiting")
    return builder.plan(
        # On any version: there is no other writer of the status, and an entry names its round.
        status=status_patch(NODE_IMAGE, image.metadata, image.status, status, *counts),
        urgent_status=final,
        numbers={name: getattr(status, name) or 0 for name in counts},
    )


def _give_reasons(image: NodeImage, now: datetime, builder: PlanBuilder) -> None:
    """Add what the node is pulling, and whether its agent answers."""
    open_tags: list[str] = []
    asked: list[datetime] = []
    if image.status.desired is None and image.metadata.creation_timestamp is not None:
        asked.append(image.metadata.creation_timestamp)  # an agent without work reports that, too
    for name, tag in tasks(image.spec.images):
        entry = image.entry(name, tag.tag)
        if entry is None or entry.version != tag.version:
            asked += [tag.created_at] if tag.created_at is not None else []
        elif entry.completion_time is not None:
            continue
        open_tags.append(f"{name}:{tag.tag}")
    quiet = unreachable({image.metadata.name: min(asked)} if asked else {}, now, builder.deadlines)
    if quiet:
        builder.reasons.append(no_agent(quiet))
    if open_tags:
        message = f"the node has {len(open_tags)} images to pull, the first is {open_tags[0]}"
        builder.reason(State.WAITING, "PullingImages", message, open_tags)


def _explain_node(node: Node | None, builder: PlanBuilder) -> None:
    """Add the reason that the node is not ready: it pulls nothing then."""
    name = node.metadata.name if node is not None else ""
    if trouble := node_trouble(name, PodContext(nodes={name: node} if node is not None else {})):
        builder.reason(State.STUCK, "NodeNotReady", trouble, [name], symptom=True)


def _single(action: Action) -> Plan:
    return Plan(stages=(Stage(chains=((action,),)),))


class Cleaner(msgspec.Struct, frozen=True):
    """Cleans one spec."""

    snapshot: NodeImageSnapshot
    image: NodeImage
    now: datetime
    deadlines: Deadlines  # gets the time when something in the spec expires next

    def images(self) -> Mapping[str, ImageSpec]:
        """Return the images that stay. One without tags is removed together with its pull secrets."""
        cleaned = {name: self._cleaned(name, spec) for name, spec in self.image.spec.images.items()}
        return {name: spec for name, spec in cleaned.items() if spec.tags}

    def _cleaned(self, name: str, spec: ImageSpec) -> ImageSpec:
        tags = [tag for tag in (self._kept(name, tag) for tag in spec.tags) if tag is not None]
        secrets = [reference for reference in spec.pull_secrets if not self._is_lost(reference)]
        return msgspec.structs.replace(spec, tags=tags, pull_secrets=secrets)

    def _kept(self, name: str, tag: ImageTag) -> ImageTag | None:
        if tag.created_at is None:
            return None
        owners = [owner for owner in tag.owner_references if not self._is_orphaned(owner)]
        if tag.owner_references and not owners:
            return None
        if self._expired(name, tag):
            return None
        return tag if owners == tag.owner_references else msgspec.structs.replace(tag, owner_references=owners)

    def _is_orphaned(self, owner: JobReference) -> bool:
        ours = group_of(owner.api_version) == IMAGE_PULL_JOB.group and owner.kind == IMAGE_PULL_JOB.kind
        return ours and owner.uid in self.snapshot.lost_owners

    def _expired(self, name: str, tag: ImageTag) -> bool:
        """Report whether the TTL of the tag after its completion is over.

        A job that has not ended keeps the tag: otherwise the nodes that finished first would pull again (imagepull.md
        §13.15).
        """
        ttl = tag.pull_policy.ttl_seconds_after_finished if tag.pull_policy is not None else None
        entry = self.image.entry(name, tag.tag)
        if ttl is None or entry is None or entry.version != tag.version or entry.completion_time is None:
            return False
        if any(owner.uid in self.snapshot.running_owners for owner in tag.owner_references):
            return False
        return self.deadlines.passed(later(entry.completion_time, ttl), self.now)

    def _is_lost(self, reference: SecretReference) -> bool:
        """Report whether a secret of the user's is missing."""
        # Copies that we made (mode BATCH) are kept as long as the image: they come and go with their jobs.
        return reference.mode != BATCH and (reference.namespace, reference.name) in self.snapshot.lost_secrets
