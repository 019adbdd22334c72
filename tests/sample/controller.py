"""The controller of the sample kind: a number of ConfigMaps as in the Sample, and a CloneSet of as many replicas."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from flotilla_common.api.documents import mappings, member
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import CONFIG_MAP
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.plan import Chain, Intent, ObjectRef, Plan, State
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch, owned
from flotilla_common.control.writes import create_of, delete_of, patch_of, write_status
from flotilla_common.service import Service
from flotilla_common.service_runner import controller_service
from flotilla_common.workload.ownership import owner_reference
from tests.sample.kind import SAMPLES


class Spec(Model):
    size: int = 0
    replicas: int | None = None  # None: there is no CloneSet
    image: str = "app:1"


class Status(Model):
    size: int = 0
    ready_replicas: int = 0


class Sample(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: Spec = Spec()
    status: Status = Status()


class ConfigMap(Model):
    metadata: ObjectMeta = ObjectMeta()


OBJECTS = Watch(SAMPLES, Sample, subresources=("status",))
CONFIG_MAPS = Watch(CONFIG_MAP, ConfigMap, owner=SAMPLES, writes=("create", "delete"))
CLONE_SETS = Watch(CLONE_SET, CloneSet, owner=SAMPLES, writes=("create", "patch"))


class Snapshot(msgspec.Struct, frozen=True):
    """A Sample, its ConfigMaps by name, and its CloneSet."""

    sample: Sample
    maps: Mapping[str, ConfigMap]
    child: CloneSet | None

    @property
    def subject(self) -> ObjectRef:
        return ObjectRef.of(SAMPLES, self.sample.metadata)


class Gatherer:
    """Builds the snapshot of one Sample."""

    def __init__(self, context: ControllerContext) -> None:
        self._samples = context.table(OBJECTS)
        self._maps = context.table(CONFIG_MAPS)
        self._children = context.table(CLONE_SETS)

    def gather(self, key: Key, memory: Memory) -> Snapshot | None:
        sample = self._samples.get(*key)
        if sample is None:
            return None
        maps = {one.metadata.name: one for one in owned(self._maps, SAMPLES, sample.metadata)}
        return Snapshot(sample, maps, next(iter(owned(self._children, SAMPLES, sample.metadata)), None))


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Make what is missing, delete what is too much."""
    sample, maps, builder = snapshot.sample, snapshot.maps, PlanBuilder()
    if sample.metadata.deletion_timestamp is not None:
        return Plan()
    wanted = [f"{sample.metadata.name}-{number}" for number in range(sample.spec.size)]
    missing = [name for name in wanted if name not in maps]
    surplus = [one for name, one in maps.items() if name not in wanted and one.metadata.deletion_timestamp is None]
    builder.stage([_create(sample, name) for name in missing])
    builder.stage([(delete_of(CONFIG_MAP, one.metadata, Intent.SCALE_IN, "scale down"),) for one in surplus])
    builder.stage([_child(sample, snapshot.child)])
    ready = snapshot.child.status.ready_replicas if snapshot.child is not None else 0
    if ready < (sample.spec.replicas or 0):
        text = f"{ready} of {sample.spec.replicas} pods of CloneSet {sample.metadata.name} are ready"
        builder.reason(State.WAITING, "WaitingForChildren", text, (sample.metadata.name,))
    if missing:
        builder.reason(State.PROGRESSING, "Growing", f"{len(missing)} of {len(wanted)} ConfigMaps are missing", missing)
    status = {"size": len(maps), "readyReplicas": ready}
    changed = sample.status != Status(size=len(maps), ready_replicas=ready)
    return builder.plan(status=write_status(SAMPLES, sample.metadata, status, on_version=False) if changed else None)


def _create(sample: Sample, name: str) -> Chain:
    meta = sample.metadata
    made = {"name": name, "namespace": meta.namespace, "ownerReferences": [owner_reference(SAMPLES, meta)]}
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": made}
    return (create_of(CONFIG_MAP, body, Intent.CREATE, "scale up"),)


def _child(sample: Sample, live: CloneSet | None) -> Chain:
    meta, spec = sample.metadata, sample.spec
    if spec.replicas is None:
        return ()
    container = {"name": "main", "image": spec.image}
    labels = {"sample": meta.name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    wanted: dict[str, Any] = {"replicas": spec.replicas, "template": template}
    if live is None:
        made = {"name": meta.name, "namespace": meta.namespace, "ownerReferences": [owner_reference(SAMPLES, meta)]}
        head: dict[str, Any] = {"apiVersion": CLONE_SET.api_version, "kind": CLONE_SET.kind, "metadata": made}
        body = head | {"spec": wanted | {"selector": {"matchLabels": labels}}}
        return (create_of(CLONE_SET, body, Intent.CREATE, "child"),)
    held = mappings(member(msgspec.json.decode(live.spec.template), "spec").get("containers"))
    if live.spec.replicas == spec.replicas and held[0].get("image") == spec.image:
        return ()
    return (patch_of(CLONE_SET, live.metadata, Intent.UPDATE, "child", body={"spec": wanted}),)


CONTROLLER = ControllerSpec(
    name="sample-controller",
    primary=OBJECTS,
    watches=(CONFIG_MAPS, CLONE_SETS),
    build=lambda context, options: Gatherer(context),
    plan=plan,
)
PARTS = (CONTROLLER,)


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    return controller_service("samples", PARTS)
