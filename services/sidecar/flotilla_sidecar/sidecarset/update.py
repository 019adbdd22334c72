"""Builds the writes that update a pod, and that let a replaced container idle (sidecarset.md §7.9, §7.10).

The images and their records are in one patch of the pod. The condition is another subresource and is written first:
should the process die in between, it states that the pod can be updated, which is true.

Each chain is on exactly the version of the pod that was read: the records are maps that several SidecarSets share, the
former images come from the status of that version, and other writers may be changing the same pod (its workload,
updating in place). The later writer gets a conflict, reads, and plans again.
"""

from collections.abc import Mapping

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.keys import (
    SIDECAR_SET_HASH,
    SIDECAR_SET_IN_PLACE_STATE,
    SIDECAR_SET_WORKING_CONTAINER,
    SIDECAR_VERSION,
    SIDECAR_VERSION_ALT,
)
from flotilla_common.api.kinds.sidecarset.pods import Record, patched_annotations, records, written
from flotilla_common.api.meta import rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Chain, Event, Intent, ObjectRef
from flotilla_common.workload.podedit import PodEdit
from flotilla_sidecar.sidecarset.containers import (
    Consistency,
    ContainerPair,
    container_pair,
    next_to_work,
    working_containers,
)
from flotilla_sidecar.sidecarset.context import PlanContext
from flotilla_sidecar.sidecarset.pod_records import last_status, set_upgradability, with_last_images
from flotilla_sidecar.sidecarset.pods import PodState

NEVER = "0"
"""The version of an idle container, and the alternate version of one that has no predecessor."""


class PodChange:
    """The new images of one pod, and the annotations that go with them."""

    def __init__(self, context: PlanContext, pod: Pod) -> None:
        self.annotations: dict[str, str] = dict(pod.metadata.annotations)
        self.images: dict[str, str] = {}
        self._context = context
        self._pod = pod
        self._consistency = Consistency(pod, context.desired.name)
        self._before = {container.name: container.image for container in pod.spec.containers}

    def update(self) -> None:
        """Set the newest image of each sidecar (§7.9)."""
        for sidecar in self._context.desired.cold:
            self._set_image(sidecar.name, sidecar.image)
        for sidecar in self._context.desired.hot:
            self._upgrade(container_pair(self._pod, sidecar))

    def idle(self, due: tuple[str, ...]) -> None:
        """Set the empty image on the containers that are due (§7.10)."""
        for sidecar in self._context.desired.hot:
            pair = container_pair(self._pod, sidecar)
            if pair.other in due:
                self._idle(pair, pair.other, pair.working)

    def remember_images(self) -> None:
        """Record what the changed containers ran until now."""
        last = {name: last_status(self._consistency.status(name), self._before[name]) for name in self.images}
        desired = self._context.desired
        self.annotations[SIDECAR_SET_IN_PLACE_STATE] = with_last_images(
            self._pod.metadata.annotations, desired.name, desired.hash, last, self._context.now
        )

    def edit(self, cause: str) -> PodEdit:
        """Return the writes so far."""
        edit = PodEdit(self._pod, Intent.UPDATE, cause, revision=self._context.revision_name)
        edit.on_this_version()
        for name, image in self.images.items():
            edit.set_image(name, image)
        edit.set_annotations(self.annotations)
        if self.images and self._context.snapshot.options.drop_field_owners:
            edit.drop_field_owners()
        return edit

    def _set_image(self, container: str, image: str) -> None:
        """Set the image of a container, unless it is only among the init containers."""
        if self._before.get(container, image) != image:
            self.images[container] = image

    def _upgrade(self, pair: ContainerPair) -> None:
        image, chosen = pair.sidecar.image, next_to_work(pair, self._consistency)
        kept = pair.other if chosen == pair.working else pair.working
        if pair.images.get(kept) == image:
            if pair.images.get(chosen) != pair.idle_image:
                # Back to the image that still runs: the new container has failed, and idles again.
                self._idle(pair, chosen, kept)
            return
        if pair.images.get(chosen) == image:
            return
        self._set_image(chosen, image)
        self._works(pair, chosen)
        version = self._context.sidecar_set.metadata.resource_version
        self.annotations[SIDECAR_VERSION_ALT + chosen] = self.annotations.get(SIDECAR_VERSION + kept, NEVER)
        self.annotations[SIDECAR_VERSION + chosen] = version
        self.annotations[SIDECAR_VERSION_ALT + kept] = version

    def _idle(self, pair: ContainerPair, container: str, working: str) -> None:
        self._set_image(container, pair.idle_image)
        self._works(pair, working)
        self.annotations[SIDECAR_VERSION + container] = NEVER
        self.annotations[SIDECAR_VERSION_ALT + working] = NEVER

    def _works(self, pair: ContainerPair, container: str) -> None:
        """Record the working container on the pod."""
        works = working_containers(self.annotations) | {pair.sidecar.name: container}
        self.annotations[SIDECAR_SET_WORKING_CONTAINER] = msgspec.json.encode(works, order="sorted").decode()


def update_chain(context: PlanContext, pod: Pod) -> Chain:
    """Update the pod to the newest sidecars. Raises ValueError if its annotations cannot be merged."""
    change = PodChange(context, pod)
    change.update()
    change.remember_images()
    change.annotations[SIDECAR_SET_HASH] = _recorded(context, pod)
    change.annotations = patched_annotations(change.annotations, context.sidecar_set.spec.patch_pod_metadata)
    edit = change.edit(f"sidecars to {context.revision_name}")
    set_upgradability(edit, context.desired.name, context.now, upgradable=True)
    return edit.chain()


def idle_chain(context: PlanContext, pod: Pod, state: PodState) -> Chain:
    """Let replaced containers idle. The pod's record of its sidecars stays."""
    change = PodChange(context, pod)
    change.idle(state.idle_due)
    change.remember_images()
    action, about = "reset of the sidecar container image to empty", ObjectRef.of(POD, pod.metadata)
    return change.edit("replaced sidecars idle").chain(
        on_success=Event("ResetContainerSucceed", f"{action} succeeded", about=about),
        on_failure=Event("ResetContainerFailed", f"{action} failed: ", warning=True, about=about),
    )


def unupgradable_chain(context: PlanContext, pod: Pod) -> Chain:
    """Set the condition that the pod's sidecars cannot be updated in place."""
    edit = PodEdit(pod, Intent.UPDATE, "more than images of its sidecars has changed")
    set_upgradability(edit, context.desired.name, context.now, upgradable=False)
    return edit.chain()


def _recorded(context: PlanContext, pod: Pod) -> str:
    """Return the records with the newest one of this SidecarSet. Unreadable records of others are lost already."""
    desired = context.desired
    try:
        stored: Mapping[str, Record] = records(pod.metadata.annotations.get(SIDECAR_SET_HASH, ""))
    except ValueError:
        stored = {}
    record = Record(
        update_timestamp=rfc3339(context.now),
        hash=desired.hash,
        sidecar_set_name=desired.name,
        sidecar_list=list(desired.listed),
        controller_revision=context.revision_name,
    )
    return written({**stored, desired.name: record})
