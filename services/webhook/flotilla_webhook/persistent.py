"""Step 6 of the pod webhook: a pod that comes back goes where it was (persistentpodstate.md §6).

The PersistentPodStates of the pod's namespace are listed at the apiserver for each pod: a pod may be made anew
milliseconds after its record, and a mirror that is late would send it elsewhere for good. Only pods of workloads that
have a PersistentPodState cost this.
"""

from collections.abc import Iterable, Iterator

import msgspec
import structlog

from flotilla_common.api.admission.review import Request
from flotilla_common.api.documents import Json, ensured, mappings, member, text
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.persistentpodstate.types import (
    PERSISTENT_POD_STATE,
    PersistentPodState,
    PersistentPodStateSpec,
    TargetRef,
)
from flotilla_common.api.kinds.persistentpodstate.whitelist import CustomWorkload, supported
from flotilla_common.api.webhooks import PodRule, namespaces_of
from flotilla_common.kube.interface import Api
from flotilla_webhook.need import Need
from flotilla_webhook.pods import Step
from flotilla_webhook.tools import read_all
from flotilla_webhook.whitelist import WhiteList

INJECTED = "kruise.io/injected-persistent-pod-state"
_STATEFUL_SETS = (CustomWorkload("apps", "v1", "StatefulSet"), CustomWorkload("apps.kruise.io", "v1", "StatefulSet"))
_log = structlog.get_logger()


def persistent_step(api: Api, white_list: WhiteList, need: Need) -> Step:
    """The step."""
    rules = _Rules(api, white_list, need)
    return Step("PersistentPodState", rules.rule, rules.change)


class _Rules(msgspec.Struct, frozen=True):
    api: Api
    white_list: WhiteList
    need: Need

    async def rule(self, stored: Json) -> PodRule | None:
        """Pods of StatefulSets and of kinds like them, in the namespaces that have a PersistentPodState."""
        namespaces = self.need.namespaces(namespaces_of(stored))
        if not namespaces:
            return None
        try:
            custom = await self.white_list.read()
        except ValueError as fault:  # pods of StatefulSets must not suffer from it
            _log.warning("cannot read which workloads are like StatefulSets", why=str(fault))
            custom = []
        kinds = dict.fromkeys((one.group, one.kind) for one in (*_STATEFUL_SETS, *custom))
        return PodRule("of-persistent-workload", controlled_by(kinds), namespaces, probed=True)

    async def change(self, pod: Json, request: Request) -> None:
        """Bind the pod to where it was, if there is a record of it. Raises ApiError, Unreachable or ValueError when it
        cannot be said whether its workload is one of these."""
        owner = _controller(pod)
        if owner is None or not await self._is_supported(owner):
            return
        state = await self._state_of(owner, request.namespace)
        if state is not None:
            inject(pod, state)

    async def _is_supported(self, owner: TargetRef) -> bool:
        if supported(owner.api_version, owner.kind, ()):
            return True
        return supported(owner.api_version, owner.kind, await self.white_list.read())

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


def controlled_by(kinds: Iterable[tuple[str, str]]) -> str:
    """A CEL expression: the object's controller is of one of these groups and kinds."""
    these = " || ".join(f"(r.kind == {_quoted(kind)} && {_in_group(group)})" for group, kind in kinds)
    owners = "object.metadata.ownerReferences"
    return f"has({owners}) && {owners}.exists(r, has(r.controller) && r.controller && ({these}))"


def inject(pod: Json, state: PersistentPodState) -> None:
    """Bind the pod to the place that is recorded under its name, as far as the spec asks for it still."""
    record = state.status.pod_states.get(text(member(pod, "metadata").get("name")))
    labels = record.node_topology_labels if record is not None else {}
    required = state.spec.required_persistent_topology
    selector = {key: labels[key] for key in (required.keys if required is not None else ()) if key in labels}
    preferences = list(_preferences(state.spec, labels))
    if not selector and not preferences:
        return
    ensured(ensured(pod, "metadata"), "annotations")[INJECTED] = state.metadata.name
    if selector:
        ensured(ensured(pod, "spec"), "nodeSelector").update(selector)
    if preferences:
        affinity = ensured(ensured(ensured(pod, "spec"), "affinity"), "nodeAffinity")
        affinity[_PREFERRED] = mappings(affinity.get(_PREFERRED)) + preferences


_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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


def _in_group(group: str) -> str:
    return f"r.apiVersion.startsWith({_quoted(group + '/')})" if group else "!r.apiVersion.contains('/')"


def _quoted(value: str) -> str:
    """A CEL string; they are written as those of JSON."""
    return msgspec.json.encode(value).decode()
