"""The life of a NodeImage (imagepull.md §4): it comes and goes with its node, is cleaned of what nobody wants any more,
and shows what the node's agent reports."""

from datetime import datetime, timedelta

import msgspec

from flotilla_common.api.documents import Json, merge_patch
from flotilla_common.api.kinds.nodeimage.types import FAKE_LABEL, NODE_IMAGE, NodeImage
from flotilla_common.control.plan import Action, Create, Delete, Patch, PatchType, Plan, Reason, Stage
from flotilla_jobs.nodeimage.clean import Cleaner
from flotilla_jobs.nodeimage.snapshot import NodeImageSnapshot
from flotilla_jobs.nodeimage.status import Patience, reported, status_patch
from flotilla_jobs.silence import no_agent, silent
from flotilla_jobs.waits import Waits

SOONEST = timedelta(seconds=3)
"""A NodeImage is not looked at again sooner for a deadline: many tags end at about the same time."""


VIRTUAL = "virtual-kubelet"
"""The label `type` of nodes that stand for something else than a machine: there is no agent to pull anything."""


def plan(snapshot: NodeImageSnapshot, now: datetime) -> Plan:
    """At most two writes: first the object or its spec, and when that is as it must be, the status."""
    image, node = snapshot.image, snapshot.node
    if node is None or node.metadata.deletion_timestamp is not None:
        if image is None or image.metadata.deletion_timestamp is not None:
            return Plan()
        if FAKE_LABEL not in image.metadata.labels:
            return _single(_deleted(image))
    if image is None:
        return _created(snapshot, now)
    if image.metadata.deletion_timestamp is not None:
        return Plan()
    waits = Waits()
    if patch := _cleaning(snapshot, image, now, waits):
        return _single(_patched(image, patch))
    return _with_status(snapshot, image, now, waits)


def _created(snapshot: NodeImageSnapshot, now: datetime) -> Plan:
    """Once the node has been ready for a while: nodes that flap at their start cause no work."""
    node = snapshot.node
    ready = node.ready if node is not None else None
    if node is None or ready is None or node.metadata.labels.get("type") == VIRTUAL:
        return Plan()
    waits = Waits()
    since = ready.last_transition_time or now
    if not waits.passed(since + snapshot.options.creation_delay, now):
        seconds = round(snapshot.options.creation_delay.total_seconds())
        message = f"waiting: the node has been ready for {round((now - since).total_seconds())} of {seconds} seconds"
        return Plan(wake_at=waits.next, reasons=(Reason(code="WaitingForReadyNode", message=message),))
    body: Json = {"apiVersion": NODE_IMAGE.api_version, "kind": NODE_IMAGE.kind, "metadata": {"name": snapshot.name}}
    return _single(Create(resource=NODE_IMAGE, namespace="", name=snapshot.name, cause="node is ready", body=body))


def _cleaning(snapshot: NodeImageSnapshot, image: NodeImage, now: datetime, waits: Waits) -> Json:
    """The merge patch that the object needs; empty if it is clean."""
    patch: Json = {}
    node = snapshot.node
    if node is not None and (labels := merge_patch(image.metadata.labels, node.metadata.labels)):
        patch["metadata"] = {"labels": labels}
    images = Cleaner(snapshot, image, now, waits).images()
    if images != image.spec.images:
        before, after = msgspec.to_builtins(image.spec.images), msgspec.to_builtins(images)
        patch["spec"] = {"images": merge_patch(before, after)}
    return patch


def _with_status(snapshot: NodeImageSnapshot, image: NodeImage, now: datetime, waits: Waits) -> Plan:
    patience = Patience(image, now, waits)
    status = image.status if snapshot.report is None else reported(image, snapshot.report)
    status = patience.judged(status)
    reasons = _reasons(msgspec.structs.replace(image, status=status), now, waits)
    wake = None if waits.next is None else max(waits.next, now + SOONEST)
    numbers = {"desired": status.desired or 0, "succeeded": status.succeeded, "failed": status.failed}
    final = (status.succeeded, status.failed) != (image.status.succeeded, image.status.failed)
    return Plan(
        status=None if status == image.status else _status_write(image, status_patch(image.status, status)),
        urgent_status=final,
        events=tuple(patience.events),
        reasons=reasons,
        numbers={**numbers, "pulling": status.pulling, "waiting": status.waiting},
        wake_at=wake,
    )


def _reasons(image: NodeImage, now: datetime, waits: Waits) -> tuple[Reason, ...]:
    """What the node is busy with, and that nobody answers for it."""
    open_tags: list[str] = []
    asked: list[datetime] = []
    if image.status.desired is None and image.metadata.creation_timestamp is not None:
        asked.append(image.metadata.creation_timestamp)  # an agent without work says that, too
    for name, spec in image.spec.images.items():
        for tag in spec.tags:
            entry = image.entry(name, tag.tag)
            if entry is None or entry.version != tag.version:
                asked += [tag.created_at] if tag.created_at is not None else []
            elif entry.completion_time is not None:
                continue
            open_tags.append(f"{name}:{tag.tag}")
    quiet = silent({image.metadata.name: min(asked)} if asked else {}, now, waits)
    reasons = [no_agent(quiet)] if quiet else []
    if open_tags:
        message = f"the node has {len(open_tags)} images to pull, the first is {open_tags[0]}"
        reasons.append(Reason(code="PullingImages", message=message, objects=tuple(open_tags[:5])))
    return tuple(reasons)


def _single(action: Action) -> Plan:
    return Plan(stages=(Stage(chains=((action,),)),))


def _deleted(image: NodeImage) -> Delete:
    meta = image.metadata
    return Delete(resource=NODE_IMAGE, namespace="", name=meta.name, cause="node is gone", uid=meta.uid)


def _patched(image: NodeImage, body: Json) -> Patch:
    """On the version that was planned with: jobs write into the same lists."""
    meta = image.metadata
    return Patch(
        resource=NODE_IMAGE,
        namespace="",
        name=meta.name,
        cause="remove what is done",
        body=body,
        uid=meta.uid,
        resource_version=meta.resource_version,
        patch_type=PatchType.MERGE,
    )


def _status_write(image: NodeImage, status: Json) -> Patch:
    """On any version: nobody else writes the status, and an entry says which round it is about."""
    meta = image.metadata
    return Patch(
        resource=NODE_IMAGE,
        namespace="",
        name=meta.name,
        cause="status",
        body={"status": status},
        uid=meta.uid,
        patch_type=PatchType.MERGE,
        subresource="status",
    )
