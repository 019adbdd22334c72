"""Creates missing pods: how many, of which revision, with which claims and content (statefulset.md §4.5.1, §4.6)."""

from functools import cached_property

from flotilla_common.api import keys
from flotilla_common.api.core import ControllerRevision
from flotilla_common.api.documents import mapping, sequence, strings
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.api.resources import POD
from flotilla_common.api.workload import LifecycleHook
from flotilla_common.control.plan import Chain, Event, Intent, Json, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.writes import create_of
from flotilla_common.workload.lifecycle import (
    NORMAL,
    PREPARING_NORMAL,
    PREPARING_UPDATE,
    initial_labels,
    state_annotations,
)
from flotilla_common.workload.ownership import owner_reference
from flotilla_common.workload.pod_creation import (
    creates_of_pass,
    decode_template,
    first_batch,
    most_creates,
    revision_template,
    wanted_gates,
    with_readiness_gates,
    with_volumes,
)
from flotilla_statefulset.statefulset.claims import pod_not_created
from flotilla_statefulset.statefulset.context import PlanContext
from flotilla_statefulset.statefulset.pods import traits

CREATE = "create"
"""The phase of creations, under which the next pass finds the failures of this one."""


class PodFactory:
    """Builds the pods of one revision."""

    def __init__(self, context: PlanContext, revision: ControllerRevision) -> None:
        self._context = context
        self._owner = context.statefulset.metadata
        self._data = revision.data
        self.revision = revision.metadata.name
        self.claims = context.claim_templates(revision)

    @cached_property
    def template(self) -> Json:
        """The pod template of the revision."""
        if self.revision == self._context.update_name:
            return decode_template(self._context.statefulset.spec.template)
        return revision_template(self._data)

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
            "annotations": {**mapping(meta.get("annotations")), **state_annotations(self._context.now)},
            "ownerReferences": [owner_reference(STATEFUL_SET, self._owner)],
        }
        if finalizers:
            metadata["finalizers"] = finalizers
        return {**POD.type_meta, "metadata": metadata, "spec": self._spec(spec, ordinal)}

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
        volumes = [template.volume(self._owner.name, str(ordinal)) for template in self.claims]
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
    labelled = all(labels.get(key) == value for key, value in hook.labels_handler.items())
    return labelled and all(name in finalizers for name in hook.finalizers_handler)


class Creator:
    """Collects the creations of a pass, in ascending order."""

    def __init__(self, context: PlanContext, builder: PlanBuilder) -> None:
        self._context = context
        self._builder = builder
        self._factories: dict[str, PodFactory] = {}
        self._chains: list[Chain] = []
        self._most = most_creates(len(context.snapshot.pods))
        self.outdated = _outdated(context) if context.targets.unordered_update else 0

    @property
    def full(self) -> bool:
        """Report whether the pass has reached its limit of creations."""
        return len(self._chains) >= self._most

    def factory(self, ordinal: int) -> PodFactory:
        """Return the factory for the ordinal's pod, assuming that it is created next."""
        revision = self._revision_of(ordinal)
        name = revision.metadata.name
        if name not in self._factories:
            self._factories[name] = PodFactory(self._context, revision)
        return self._factories[name]

    def add(self, ordinal: int, factory: PodFactory) -> bool:
        """Create the ordinal's claims and its pod. Return False if pods of its revision cannot be created."""
        name = factory.revision
        if not factory.fits_selector:
            text = f"pods of {name} would not match spec.selector: none is created"
            self._builder.reason(State.STUCK, "InvalidTemplate", text)
            self._builder.events.append(Event("InvalidTemplate", text, warning=True))
            return False
        self.outdated += name != self._context.update_name
        self._chains.append(self._chain(ordinal, factory))
        return True

    def stage(self) -> None:
        """Stage the creations in slow start: an error for one pod usually hits the others, too."""
        context, builder = self._context, self._builder
        missing = context.pods.missing_count
        there, failed = context.targets.replicas - missing, CREATE in context.snapshot.failures
        chains = self._chains[: creates_of_pass(there, failed=failed, most=self._most)]
        if not chains:
            return
        builder.reason(State.PROGRESSING, "ScalingUp", f"creating {len(chains)} of {missing} missing pods")
        builder.stage(chains, slow_start=first_batch(there, len(chains), missing, failed=failed))

    def _revision_of(self, ordinal: int) -> ControllerRevision:
        """Return the revision of a new pod: partition keeps the lowest ranks, or any, on the old one (§4.6)."""
        targets, revisions = self._context.targets, self._context.revisions
        if targets.on_delete:
            return revisions.update
        old = self.outdated if targets.unordered_update else targets.ordinals.rank(ordinal)
        return revisions.current if old < targets.partition else revisions.update

    def _chain(self, ordinal: int, factory: PodFactory) -> Chain:
        """Create the missing claims, then the pod. Existing claims get their owners once the pod is seen (§4.9)."""
        claims, body = self._context.claims, factory.pod(ordinal)
        name, owner = body["metadata"]["name"], self._context.statefulset.metadata.name
        pod = create_of(
            POD,
            body,
            Intent.CREATE,
            "scale up",
            revision=factory.revision,
            phase=CREATE,
            tells_if_taken=False,
            on_success=Event("SuccessfulCreate", f"create Pod {name} in StatefulSet {owner} successful"),
            on_failure=pod_not_created(owner, name, ""),
        )
        missing = claims.missing(ordinal, factory.claims)
        return (*(claims.create(template, ordinal, before_pod=True) for template in missing), pod)


def _outdated(context: PlanContext) -> int:
    """Count the existing replicas that are not on the update revision (§4.6, unordered)."""
    preparing_is_new = context.snapshot.gates.on("PreparingUpdateAsUpdate")
    pods = (context.pods.by_ordinal[ordinal] for ordinal in context.pods.outdated)
    return sum(not (preparing_is_new and traits(pod).state == PREPARING_UPDATE) for pod in pods)
