"""Step 6 of the pod webhook: a pod that comes back goes where it was (persistentpodstate.md §6).

The PersistentPodStates of the pod's namespace are listed at the apiserver for each pod: a pod may be made anew
milliseconds after its record, and a mirror that is late would send it elsewhere for good. Only pods of workloads that
have a PersistentPodState cost this.
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
    PersistentPodState,
    PersistentPodStateSpec,
)
from flotilla_common.api.kinds.persistentpodstate.whitelist import CustomWorkload, custom_workloads, supported
from flotilla_common.api.meta import TargetRef, metadata_of
from flotilla_common.api.podrules import PodRule, controlled_by
from flotilla_common.api.resources import CONFIG_MAP, NODE
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_webhook.cache import Cache
from flotilla_webhook.pods import Step
from flotilla_webhook.tools import read_all

INJECTED = "kruise.io/injected-persistent-pod-state"

UNSEEN_SECONDS = 10.0
"""How long a namespace counts as one with a PersistentPodState that the watch has not shown yet."""

_STATEFUL_SETS = (CustomWorkload("apps", "v1", "StatefulSet"), CustomWorkload("apps.kruise.io", "v1", "StatefulSet"))

_log = structlog.get_logger()

_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class PersistentStates:
    """The step, and what PersistentPodStates make necessary."""

    def __init__(self, api: Api, clock: Clock, namespace: str) -> None:
        """`namespace` is Flotilla's own, where administrators name more kinds of workloads."""
        self.api = api
        self._clock = clock
        self._admitted: dict[str, float] = {}  # until when namespaces count whose first one is about to be stored
        self._namespace = namespace
        self.namespaces = Cache(PERSISTENT_POD_STATE, lambda item: metadata_of(item).namespace, lambda one: one)
        """Of every PersistentPodState."""

    def step(self) -> Step:
        """The step."""
        return Step("PersistentPodState", self.rules, self.change, lambda: self.namespaces.known)

    async def rules(self) -> list[PodRule]:
        """Pods of StatefulSets and of kinds like them, in the namespaces that have a PersistentPodState."""
        return await self._rules_in(self.namespaces.values())

    async def rules_of(self, document: Json, namespace: str) -> list[PodRule]:
        """What a PersistentPodState that is about to be stored makes necessary."""
        return await self._rules_in([namespace])

    def admitted(self, document: Json) -> None:
        """It is about to be stored."""
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
        except ValueError as fault:  # pods of StatefulSets must not suffer from it
            _log.warning("cannot read which workloads are like StatefulSets", why=str(fault))
            custom = []
        return controlled_by(dict.fromkeys((one.group, one.kind) for one in (*_STATEFUL_SETS, *custom)))

    async def change(self, pod: Json, request: Request) -> None:
        """Bind the pod to where it was, if there is a record of it. Raises ApiError, Unreachable or ValueError when it
        cannot be said whether its workload is one of these."""
        owner = _controller(pod)
        if owner is None or not self._may_have_one(request.namespace) or not await self._is_supported(owner):
            return
        state = await self._state_of(owner, request.namespace)
        if state is not None:
            inject(pod, state, await self._existing(required_labels(pod, state)))

    async def _named(self) -> list[CustomWorkload]:
        """The kinds of workloads that administrators name beside StatefulSets (§7); none without the ConfigMap. Raises
        ApiError, Unreachable, and ValueError for one that cannot be read."""
        body = await found_or_none(self.api.get(CONFIG_MAP, self._namespace, CONFIGURATION))
        return [] if body is None else custom_workloads(strings(member(msgspec.json.decode(body, type=Json), "data")))

    async def _is_supported(self, owner: TargetRef) -> bool:
        if supported(owner.api_version, owner.kind, ()):
            return True
        return supported(owner.api_version, owner.kind, await self._named())

    def _may_have_one(self, namespace: str) -> bool:
        """Return whether anything has to be asked: pods that other steps have to see, or that a rule about many
        namespaces lets through, cost nothing elsewhere. One that holds a record has been there for a while."""
        if not self.namespaces.known or namespace in self.namespaces.needed:
            return True
        return self._admitted.get(namespace, 0.0) > self._clock.monotonic()

    async def _existing(self, labels: dict[str, str]) -> dict[str, str]:
        """Return what can still be required: a pod must not wait for ever for a node that is gone for good. Where no
        node has all of the labels, those stay that some node has."""
        if not labels or await self._is_there(labels):
            return labels
        kept = {key: value for key, value in labels.items() if await self._is_there({key: value})}
        return kept if kept and await self._is_there(kept) else {}

    async def _is_there(self, labels: dict[str, str]) -> bool:
        """Return whether a node has the labels; where that cannot be found out, it is supposed to."""
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        try:
            page = await self.api.list(NODE, label_selector=selector, limit=1, metadata_only=True)
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot list nodes", labels=selector, error=str(failure))
            return True
        return bool(page.items)

    async def _state_of(self, owner: TargetRef, namespace: str) -> PersistentPodState | None:
        """The first one that is about the workload and stays. What cannot be read counts as none (§6)."""
        try:
            stored = await read_all(self.api, PERSISTENT_POD_STATE, namespace)
        except (ApiError, Unreachable) as failure:
            _log.warning("cannot list PersistentPodStates", namespace=namespace, error=str(failure))
            return None
        for state in _readable(stored):
            if state.spec.target_ref.identity == owner.identity and state.metadata.deletion_timestamp is None:
                return state
        return None


def _readable(stored: Iterable[msgspec.Raw]) -> Iterator[PersistentPodState]:
    for body in stored:
        try:
            yield msgspec.json.decode(body, type=PersistentPodState)
        except msgspec.MsgspecError as fault:
            _log.warning("cannot read a PersistentPodState", error=str(fault))


def required_labels(pod: Json, state: PersistentPodState) -> dict[str, str]:
    """Return the labels of the node that is recorded under the pod's name, as far as the spec still requires them."""
    required, labels = state.spec.required_persistent_topology, _recorded(pod, state)
    return {key: labels[key] for key in (required.keys if required is not None else ()) if key in labels}


def inject(pod: Json, state: PersistentPodState, selector: dict[str, str]) -> None:
    """Bind the pod to nodes with the labels of the selector, and have it prefer the place that is recorded under its
    name, as far as the spec asks for that still."""
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
    """A term whose keys are all unrecorded would match nothing, and is left out."""
    for term in spec.preferred_persistent_topology:
        keys = [key for key in term.preference.keys if key in labels]
        if keys:
            expressions = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys]
            yield {"weight": term.weight, "preference": {"matchExpressions": expressions}}


def _controller(pod: Json) -> TargetRef | None:
    for owner in mappings(member(pod, "metadata").get("ownerReferences")):
        if owner.get("controller") is True:
            api_version, kind, name = (text(owner.get(key)) for key in ("apiVersion", "kind", "name"))
            return TargetRef(api_version=api_version, kind=kind, name=name)
    return None
