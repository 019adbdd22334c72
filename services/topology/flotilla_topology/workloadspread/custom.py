"""Reads target workloads of configured kinds (workloadspread.md §3)."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from flotilla_common.api.core import ConfigMap, Pod
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.jsontext import Reader
from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.kinds.workloadspread.targets import (
    BUILT_IN,
    CustomWorkload,
    GroupKind,
    custom_workloads,
    kinds_between,
    replicas_of,
    replicas_path,
)
from flotilla_common.api.kinds.workloadspread.types import WorkloadSpread
from flotilla_common.api.meta import Model, ObjectMeta, controller_of, group_of, struct_cached_property
from flotilla_common.api.resources import CONFIG_MAP, Resource
from flotilla_common.api.selectors import Selector
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.customkinds import CustomKinds, configured
from flotilla_common.control.keystate import Key
from flotilla_common.control.reads import Reads
from flotilla_common.control.watches import Watch
from flotilla_common.mirror.table import Table

TARGET = "target"
"""Index: WorkloadSpreads by namespace, group, kind and name of their workload."""

CONFIGURATIONS = Watch(CONFIG_MAP, ConfigMap, private="namespace")
"""ConfigMaps of Flotilla's own namespace, one of which names more kinds of workloads."""

_MEMBERS: Reader[dict[str, Any]] = Reader(dict[str, Any])


class Unknown(Exception):
    """The workload and its pods cannot be determined, for now or at all."""


class CustomTarget(Model, dict=True):
    """A workload of a configured kind. Its numbers may be in any field."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: msgspec.Raw = msgspec.Raw(b"{}")

    @struct_cached_property
    def document(self) -> Json:
        """Return spec and status as one document; empty if they cannot be read."""
        try:
            return {"spec": _MEMBERS.read(self.spec), "status": _MEMBERS.read(self.status)}
        except ValueError:
            return {}


class Question(NamedTuple):
    """A request for the selector of one version of a workload."""

    resource: Resource
    namespace: str
    name: str
    version: str


class CustomTargets:
    """The workloads of configured kinds that WorkloadSpreads target."""

    def __init__(self, context: ControllerContext, spreads: Table[WorkloadSpread]) -> None:
        self._context = context
        self._spreads = spreads
        self._configurations = context.table(CONFIGURATIONS)
        self._selectors = Reads(self._read_selector, context.clock, context.requeue)
        self._kinds = CustomKinds(
            lambda: context.api,
            CustomTarget,
            context.clock,
            wanted=self._wanted,
            needed=lambda kind: [(one.metadata.namespace, one.spec.target_ref.name) for one in self._about(kind)],
            listener=self._changed,
            changed=self._kind_changed,
        )
        self.forget = self._selectors.forget
        context.add_task(self._selectors.run)
        context.add_task(self._kinds.run)

    def find(self, spread: WorkloadSpread) -> CustomTarget | None:
        """Return the workload; None if it does not exist. Raises Unknown."""
        followed = self._kinds.find(_kind(spread))
        if followed is None:
            raise Unknown(self._kinds.trouble(_kind(spread)))
        return followed[1].get(spread.metadata.namespace, spread.spec.target_ref.name)

    def replicas(self, spread: WorkloadSpread, workload: CustomTarget) -> int:
        """Return the desired number of pods. Raises ValueError if the field holds no number."""
        chosen = spread.spec.target_filter
        paths = replicas_path(_kind(spread), self._named(), chosen.replicas_path_list if chosen is not None else ())
        return replicas_of(workload.document, paths)

    def selector(self, spread: WorkloadSpread, workload: CustomTarget) -> Selector | None:
        """Return the selector of the workload's pods, from its scale; None if it has none.

        Raises Unknown until the apiserver has answered.
        """
        followed = self._kinds.find(_kind(spread))
        if followed is None or not followed[0].scaled:
            return None
        meta = workload.metadata
        question = Question(followed[0].resource, *meta.key, meta.resource_version)
        answer = self._selectors.ask_only(spread.metadata.key, question)
        if answer is None:
            raise Unknown(f"reading the pod selector of {workload.metadata.name}")
        return answer if not answer.empty else None

    def is_below(self, pod: Pod, spread: WorkloadSpread) -> bool:
        """Report whether the pod's controller is of a kind that may come between the workload and its pods."""
        controller = controller_of(pod.metadata)
        between = kinds_between(_kind(spread), self._named())
        return controller is not None and (group_of(controller.api_version), controller.kind) in between

    def of_owner(self, uid: str) -> Iterator[Key]:
        """Yield the keys of the WorkloadSpreads that target the workload with this uid."""
        for resource, table in self._kinds.tables():
            workload = table.by_uid(uid)
            if workload is not None:
                yield from (spread.metadata.key for spread in self._about_one(resource, workload))

    def _named(self) -> list[CustomWorkload]:
        """Return the kinds that the ConfigMap names; none if it is unreadable, which admission reports."""
        return configured(self._configurations.get(self._context.settings.namespace, CONFIGURATION), custom_workloads)

    def _wanted(self) -> list[CustomWorkload]:
        """Return the configured kinds that some WorkloadSpread targets."""
        used = {_kind(spread) for spread in self._spreads}
        return [kind for kind in self._named() if kind.group_kind in used and kind.group_kind not in BUILT_IN]

    def _about(self, kind: GroupKind) -> list[WorkloadSpread]:
        return [spread for spread in self._spreads if _kind(spread) == kind]

    def _about_one(self, resource: Resource, workload: CustomTarget) -> Iterable[WorkloadSpread]:
        meta = workload.metadata
        return self._spreads.by_index(TARGET, (meta.namespace, resource.group, resource.kind, meta.name))

    async def _read_selector(self, question: Question) -> Selector:
        """Read the selector of a workload's scale; an empty one if it has none. Raises ApiError, Unreachable."""
        body = await found_or_none(self._context.api.get(*question[:3], "scale"))
        scale: Json = {} if body is None else msgspec.json.decode(body, type=Json)
        try:
            return Selector.read(text(member(scale, "status").get("selector")))
        except ValueError:
            return Selector({}, ())

    # Keys that a change affects

    def _changed(self, resource: Resource, old: CustomTarget | None, new: CustomTarget | None) -> None:
        workload = new or old
        for spread in self._about_one(resource, workload) if workload is not None else ():
            if old is None or new is None or self._seen(spread, old) != self._seen(spread, new):
                self._context.requeue(*spread.metadata.key)

    def _seen(self, spread: WorkloadSpread, workload: CustomTarget) -> tuple[object, ...]:
        """Return the fields of a workload that a WorkloadSpread depends on."""
        try:
            replicas: int | str = self.replicas(spread, workload)
        except ValueError as fault:
            replicas = str(fault)
        return workload.metadata.uid, workload.metadata.deletion_timestamp, replicas

    def _kind_changed(self, kind: GroupKind) -> None:
        for spread in self._about(kind):
            self._context.requeue(*spread.metadata.key)

    def of_configuration(self, old: ConfigMap | None, new: ConfigMap | None) -> list[Key]:
        return [spread.metadata.key for spread in self._spreads if _kind(spread) not in BUILT_IN]


def _kind(spread: WorkloadSpread) -> GroupKind:
    return spread.spec.target_ref.identity[:2]
