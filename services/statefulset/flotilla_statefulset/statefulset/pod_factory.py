"""Builds the pods that a StatefulSet creates, as documents (statefulset.md §4.6)."""

from datetime import datetime
from functools import cached_property

from flotilla_common.api import keys
from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.documents import mapping, sequence, strings
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import POD
from flotilla_common.api.rollout import LifecycleHook
from flotilla_common.control.plan import Json
from flotilla_common.workload.lifecycle import NORMAL, PREPARING_NORMAL, initial_labels, state_annotations
from flotilla_common.workload.newpods import (
    decode_template,
    revision_template,
    wanted_gates,
    with_readiness_gates,
    with_volumes,
)
from flotilla_common.workload.ownership import owner_reference
from flotilla_statefulset.statefulset.context import PlanContext


class PodFactory:
    """Builds the pods of one revision."""

    def __init__(self, context: PlanContext, revision: ControllerRevision) -> None:
        self._context = context
        self._owner = context.statefulset.metadata
        self._now: datetime = context.now
        self.revision = revision.metadata.name
        self.claims = context.claim_templates(revision)

        def content() -> Json:
            update = self.revision == context.update_name
            return decode_template(context.statefulset.spec.template) if update else revision_template(revision.data)

        self._content = content

    @cached_property
    def template(self) -> Json:
        """The pod template of the revision."""
        return self._content()

    @property
    def fits_selector(self) -> bool:
        """Report whether the set's selector matches the pods of this template."""
        labels = strings(mapping(self.template.get("metadata")).get("labels"))
        return self._context.selector.matches(labels)

    def pod(self, ordinal: int) -> Json:
        """Return the body of the ordinal's pod."""
        meta, spec = mapping(self.template.get("metadata")), mapping(self.template.get("spec"))
        name = self._context.pod_name(ordinal)
        finalizers = [*sequence(meta.get("finalizers"))]
        metadata: Json = {
            "name": name,
            "generateName": f"{self._owner.name}-",
            "namespace": self._owner.namespace,
            "labels": self._labels(ordinal, strings(meta.get("labels")), finalizers),
            "annotations": {**mapping(meta.get("annotations")), **state_annotations(self._now)},
            "ownerReferences": [owner_reference(STATEFUL_SET, self._owner)],
        }
        if finalizers:
            metadata["finalizers"] = finalizers
        return {
            **POD.type_meta,
            "metadata": metadata,
            "spec": self._spec(spec, ordinal),
        }

    def _labels(self, ordinal: int, own: dict[str, str], finalizers: list[str]) -> dict[str, str]:
        lifecycle = self._context.statefulset.spec.lifecycle
        ready = _is_hooked(lifecycle.pre_normal if lifecycle else None, own, finalizers)
        return {
            **own,
            **identity_labels(self._context, ordinal),
            keys.REVISION_LABEL: self.revision,
            **initial_labels(NORMAL if ready else PREPARING_NORMAL),
        }

    def _spec(self, spec: Json, ordinal: int) -> Json:
        context = self._context
        snapshot, service = context.snapshot, context.statefulset.spec.service_name
        volumes = [one.volume(self._owner.name, str(ordinal)) for one in self.claims]
        gates = wanted_gates(snapshot.gates, self._owner.namespace, snapshot.options.system_namespace)
        body = with_volumes(with_readiness_gates(spec, gates), volumes)
        return body | {"hostname": context.pod_name(ordinal)} | ({"subdomain": service} if service else {})


def identity_labels(context: PlanContext, ordinal: int) -> dict[str, str]:
    """Return the labels that identify a pod within the set."""
    index = {keys.POD_INDEX_LABEL: str(ordinal)} if context.snapshot.gates.on("PodIndexLabel") else {}
    return {keys.POD_NAME_LABEL: context.pod_name(ordinal)} | index


def _is_hooked(hook: LifecycleHook | None, labels: dict[str, str], finalizers: list[str]) -> bool:
    """Report whether a new pod satisfies the preNormal hook, or there is no hook."""
    if hook is None:
        return True
    held = all(labels.get(key) == value for key, value in hook.labels_handler.items())
    return held and all(name in finalizers for name in hook.finalizers_handler)
