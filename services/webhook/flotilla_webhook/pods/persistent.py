"""Step 6 of the pod webhook: a pod that is created again goes where it was (persistentpodstate.md §6).

The PersistentPodStates of the pod's namespace are listed at the apiserver for each pod: a pod may be created again
milliseconds after its record, and a stale mirror would place it elsewhere for good. Only pods of workloads that have a
PersistentPodState cost this.
"""

from collections.abc import Iterable, Iterator

import msgspec
import structlog

from flotilla_common.api.admission.review import Request
from flotilla_common.api.documents import Json, ensured, mappings, member, strings, text
from flotilla_common.api.errors import ApiError, Unreachable, found_or_none
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.kinds.persistentpodstate.types import (
    PERSISTENT_POD_STATE,
    CustomWorkload,
    PersistentPodState,
    PersistentPodStateSpec,
    custom_workloads,
    supported,
)
from flotilla_common.api.meta import OwnerReference, group_of, metadata_of
from flotilla_common.api.podrules import PodRule, controlled_by
from flotilla_common.api.resources import CONFIG_MAP, NODE
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_webhook.cache import Cache, read_all
from flotilla_webhook.owners import controller_in
from flotilla_webhook.pods.admission import AdmissionStep

INJECTED = "kruise.io/injected-persistent-pod-state"

UNSEEN_SECONDS = 10.0
"""Time for which a namespace counts as one with a PersistentPodState that the watch has not shown yet."""

_STATEFUL_SETS = (CustomWorkload("apps", "v1", "StatefulSet"), CustomWorkload("apps.kruise.io", "v1", "StatefulSet"))

_log = structlog.get_logger()

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class PersistentStates:
    """The step, and the rules that PersistentPodStates require."""

    def __init__(self, api: Api, clock: Clock, namespace: str) -> None:
        """Read further kinds of workloads from `namespace`, Flotilla's own."""
        self.api = api
        self._clock = clock
        self._admitted: dict[str, float] = {}  # namespaces whose first one is about to be stored, each until a time
        self._namespace = namespace
        self.namespaces = Cache(PERSISTENT_POD_STATE, lambda item: metadata_of(item).namespace, lambda one: one)
        """Namespaces of all PersistentPodStates."""

    def step(self) -> AdmissionStep:
        """Return the step."""
        return AdmissionStep("PersistentPodState", self.rules, self.change, lambda: self.namespaces.known)

    async def rules(self) -> list[PodRule]:
        """Return the rules of pods of StatefulSets and similar kinds, in namespaces with a PersistentPodState."""
        return await self._rules_in(self.namespaces.values())

    async def rules_of(self, document: Json, namespace: str) -> list[PodRule]:
        """Return the rules that a PersistentPodState about to be stored requires."""
        return await self._rules_in([namespace])

    def admitted(self, document: Json) -> None:
        """Count the namespace of an object that is about to be stored."""
        now = self._clock.monotonic()
        self._admitted = {namespace: until for namespace, until in self._admitted.items() if until > now}
        self._admitted[text(member(document, "metadata").get("namespace"))] = now + UNSEEN_SECONDS

    async def _rules_in(self, namespaces: Iterable[str]) -> list[PodRule]:
        wanted = sorted(set(namespaces))
        expression = await self._expression() if wanted else ""
        return [PodRule("PersistentPodStates", expression, namespace) for namespace in wanted]

    async def _expression(self) -> str:
        try:
            custom = await self._named()
        except ValueError as fault:  # must not affect pods of StatefulSets
            _log.warning("cannot read which workloads are like StatefulSets", why=str(fault))
            custom = []
        return controlled_by(dict.fromkeys((one.group, one.kind) for one in (*_STATEFUL_SETS, *custom)))

    async def change(self, pod: Json, request: Request) -> None:
        """Bind the pod to its former place, if there is a record of it.

        Raises ApiError, Unreachable or ValueError when it is unknown whether its workload is supported.
        """
        owner = controller_in(pod)
        if owner is None or not self._may_have_one(request.namespace) or not await self._is_supported(owner):
            return
        state = await self._state_of(owner, request.namespace)
        if state is not None:
            bind_to_place(pod, state, await self._existing(required_labels(pod, state)))

    async def _named(self) -> list[CustomWorkload]:
        """Return the kinds of workloads that administrators list beside StatefulSets (§7), none without the ConfigMap.

        Raises ApiError, Unreachable, and ValueError for one that cannot be parsed.
        """
        body = await found_or_none(self.api.get(CONFIG_MAP, self._namespace, CONFIGURATION))
        return [] if body is None else custom_workloads(strings(member(msgspec.json.decode(body, type=Json), "data")))

    async def _is_supported(self, owner: OwnerReference) -> bool:
        if supported(owner.api_version, owner.kind, ()):
            return True
        return supported(owner.api_version, owner.kind, await self._named())

    def _may_have_one(self, namespace: str) -> bool:
        """Report whether the namespace may have a PersistentPodState."""
        # Pods that are here for other steps, or by a rule about many namespaces, cost no request elsewhere. A state
        # with a record has existed for a while.
        if not self.namespaces.known or namespace in self.namespaces.needed:
            return True
        return self._admitted.get(namespace, 0.0) > self._clock.monotonic()

    async def _existing(self, labels: dict[str, str]) -> dict[str, str]:
        """Return the labels that can still be required: a pod must not wait endlessly for a node that is gone for good.

        If no node has all of the labels, those remain that some node has.
        """
        if not labels or await self._is_there(labels):
            return labels
        kept = {key: value for key, value in labels.items() if await self._is_there({key: value})}
        return kept if kept and await self._is_there(kept) else {}

    async def _is_there(self, labels: dict[str, str]) -> bool:
        """Report whether a node has the labels; True if nodes cannot be listed."""
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        try:
            page = await self.api.list(NODE, label_selector=selector, limit=1, metadata_only=True)
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot list nodes", labels=selector, error=str(failure))
            return True
        return bool(page.items)

    async def _state_of(self, owner: OwnerReference, namespace: str) -> PersistentPodState | None:
        """Return the first state for the workload that is not being deleted. Unreadable states are skipped (§6)."""
        try:
            stored = await read_all(self.api, PERSISTENT_POD_STATE, namespace)
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot list PersistentPodStates", namespace=namespace, error=str(failure))
            return None
        workload = group_of(owner.api_version), owner.kind, owner.name
        for state in _readable(stored):
            if state.spec.target_ref.identity == workload and state.metadata.deletion_timestamp is None:
                return state
        return None


def _readable(stored: Iterable[msgspec.Raw]) -> Iterator[PersistentPodState]:
    for body in stored:
        try:
            yield msgspec.json.decode(body, type=PersistentPodState)
        except msgspec.MsgspecError as fault:
            _log.warning("cannot read a PersistentPodState", error=str(fault))


def required_labels(pod: Json, state: PersistentPodState) -> dict[str, str]:
    """Return the labels of the node recorded under the pod's name that the spec still requires."""
    required, labels = state.spec.required_persistent_topology, _recorded(pod, state)
    return {key: labels[key] for key in (required.keys if required is not None else ()) if key in labels}


def bind_to_place(pod: Json, state: PersistentPodState, selector: dict[str, str]) -> None:
    """Bind the pod to nodes with the labels of the selector, and make it prefer the place recorded under its name.

    Only preferences that the spec still has are used.
    """
    preferences = list(_preferences(state.spec, _recorded(pod, state)))
    if not selector and not preferences:
        return
    ensured(ensured(pod, "metadata"), "annotations")[INJECTED] = state.metadata.name
    if selector:
        ensured(ensured(pod, "spec"), "nodeSelector").update(selector)
    if preferences:
        affinity = ensured(ensured(ensured(pod, "spec"), "affinity"), "nodeAffinity")
        affinity[_PREFERRED] = mappings(affinity.get(_PREFERRED)) + preferences


def _recorded(pod: Json, state: PersistentPodState) -> dict[str, str]:
    record = state.status.pod_states.get(text(member(pod, "metadata").get("name")))
    return record.node_topology_labels if record is not None else {}


def _preferences(spec: PersistentPodStateSpec, labels: dict[str, str]) -> Iterator[Json]:
    """Yield the preferred terms. One whose keys are all unrecorded would match nothing, and is left out."""
    for term in spec.preferred_persistent_topology:
        keys = [key for key in term.preference.keys if key in labels]
        if keys:
            expressions = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys]
            yield {"weight": term.weight, "preference": {"matchExpressions": expressions}}
