"""Collects the changes of one pod, and makes as few writes from them as possible (architecture.md §1).

The apiserver keeps labels and annotations that come with a `pods/status` patch, so one such patch is enough for
metadata and conditions. Containers and finalizers need the main resource: then conditions are written first (a pod is
made NotReady before it is changed), and everything else follows in one patch.
"""

from collections.abc import Iterable, Mapping

import msgspec

from flotilla_common.api.core import Pod
from flotilla_common.api.meta import Condition, rfc3339
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import Event, Intent, Json, Patch, PatchType
from flotilla_common.control.writes import patch_of


class PodEdit:
    """The pod after the edit. Reads return the edited values; the pod itself, which mirrors share, is never changed."""

    def __init__(self, pod: Pod, intent: Intent, cause: str, *, revision: str = "", phase: str = "update") -> None:
        self.pod = pod
        self.intent = intent
        self.cause = cause
        self.revision = revision
        self.phase = phase
        self._labels: dict[str, str | None] = {}
        self._annotations: dict[str, str | None] = {}
        self._finalizers: list[str] = []
        self._metadata: Json = {}
        self._conditions: dict[str, Condition] = {}
        self._containers: dict[str, Json] = {}
        self._conditional = False
        self._drops_field_owners = False

    @property
    def changed(self) -> bool:
        """Report whether there is anything to write."""
        return bool(self._conditions or self._changes_metadata or self._changes_main)

    def label(self, key: str) -> str | None:
        """Return the label's value after the edit."""
        return self._labels[key] if key in self._labels else self.pod.metadata.labels.get(key)

    def condition(self, kind: str) -> Condition | None:
        """Return the condition after the edit."""
        return self._conditions.get(kind) or self.pod.conditions.get(kind)

    def on_this_version(self) -> None:
        """Make the first write conditional on exactly this version of the pod."""
        self._conditional = True

    def set_labels(self, labels: Mapping[str, str | None]) -> None:
        """Set labels; None removes one."""
        _assign(self._labels, self.pod.metadata.labels, labels)

    def set_annotations(self, annotations: Mapping[str, str | None]) -> None:
        """Set annotations; None removes one."""
        _assign(self._annotations, self.pod.metadata.annotations, annotations)

    def add_finalizers(self, finalizers: Iterable[str]) -> None:
        """Append finalizers that are not there yet."""
        present = {*self.pod.metadata.finalizers, *self._finalizers}
        self._finalizers += [name for name in dict.fromkeys(finalizers) if name not in present]

    def set_condition(self, condition: Condition) -> None:
        """Set or replace the condition of that type."""
        self._conditions[condition.type] = condition

    def set_image(self, container: str, image: str) -> None:
        """Change the image of a container."""
        self._containers.setdefault(container, {})["image"] = image

    def set_resources(self, container: str, resources: Json) -> None:
        """Change some of a container's resources: {limits: {name: quantity}, requests: {…}}."""
        self._containers.setdefault(container, {})["resources"] = resources

    def merge_metadata(self, patch: Json) -> None:
        """Apply a strategic merge patch of metadata; labels and annotations that are right already cost nothing."""
        rest = dict(patch)
        self.set_labels(rest.pop("labels", {}))
        self.set_annotations(rest.pop("annotations", {}))
        self._metadata |= rest

    def drop_field_owners(self) -> None:
        """Clear managedFields with the main write, unless the pod has fields of server-side apply (ADR 0006)."""
        self._drops_field_owners = all(owner.operation != "Apply" for owner in self.pod.metadata.managed_fields)

    def chain(self, *, on_success: Event | None = None, on_failure: Event | None = None) -> tuple[Patch, ...]:
        """Return the writes, if any. The last one has the event of success, each the event of failure."""
        bodies: list[tuple[str, Json]] = []
        if self._conditions:
            metadata = {} if self._changes_main else self._metadata_body()
            stored = self.pod.conditions
            conditions = [_condition_body(new, stored.get(kind)) for kind, new in self._conditions.items()]
            bodies.append(("status", metadata | {"status": {"conditions": conditions}}))
        if self._changes_main or (self._changes_metadata and not self._conditions):
            bodies.append(("", self._main_body()))
        chain = tuple(
            patch_of(
                POD,
                self.pod.metadata,
                self.intent,
                self.cause,
                revision=self.revision,
                phase=self.phase,
                body=body,
                patch_type=PatchType.STRATEGIC,
                subresource=subresource,
                on_success=on_success if position == len(bodies) - 1 else None,
                on_failure=on_failure,
            )
            for position, (subresource, body) in enumerate(bodies)
        )
        return on_version(self.pod, chain) if self._conditional else chain

    @property
    def _changes_metadata(self) -> bool:
        return bool(self._labels or self._annotations)

    @property
    def _changes_main(self) -> bool:
        return bool(self._containers or self._finalizers or self._metadata)

    def _main_body(self) -> Json:
        body = self._metadata_body()
        if self._drops_field_owners:
            body.setdefault("metadata", {})["managedFields"] = [{}]  # the documented way to clear them
        if self._containers:
            body["spec"] = {"containers": [{"name": name, **change} for name, change in self._containers.items()]}
        return body

    def _metadata_body(self) -> Json:
        metadata: Json = dict(self._metadata)
        if self._labels:
            metadata["labels"] = dict(self._labels)
        if self._annotations:
            metadata["annotations"] = dict(self._annotations)
        if self._finalizers:
            metadata["finalizers"] = [*metadata.get("finalizers", ()), *self._finalizers]
        return {"metadata": metadata} if metadata else {}


def on_version(pod: Pod, chain: tuple[Patch, ...]) -> tuple[Patch, ...]:
    """Make the chain conditional on this version of the pod, without other writes in between."""
    return tuple(
        msgspec.structs.replace(
            patch,
            resource_version=pod.metadata.resource_version if position == 0 else "",
            after_previous=position > 0,
        )
        for position, patch in enumerate(chain)
    )


def _assign(changes: dict[str, str | None], present: Mapping[str, str], wanted: Mapping[str, str | None]) -> None:
    for key, value in wanted.items():
        if present.get(key) == value:
            changes.pop(key, None)
        else:
            changes[key] = value


def _condition_body(condition: Condition, stored: Condition | None) -> Json:
    """Return the body of a condition; the list is merged by type, so members that vanish are removed by null."""
    body: Json = {"type": condition.type, "status": condition.status}
    for member, new, old in (
        ("reason", condition.reason, stored.reason if stored else ""),
        ("message", condition.message, stored.message if stored else ""),
    ):
        if new or old:
            body[member] = new or None
    if condition.last_transition_time is not None:
        body["lastTransitionTime"] = rfc3339(condition.last_transition_time)
    return body
