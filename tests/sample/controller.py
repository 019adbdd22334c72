"""The controller of the sample kind: as many ConfigMaps as a Sample says."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import CONFIG_MAP
from flotilla_common.assembly import controller_service
from flotilla_common.control.controller import Key, Memory
from flotilla_common.control.draft import Draft
from flotilla_common.control.plan import Chain, Plan
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.subject import Subject
from flotilla_common.control.watches import Watch, owned
from flotilla_common.control.wiring import Wiring
from flotilla_common.control.writes import create_of, delete_of, patch_of
from flotilla_common.service import Service
from flotilla_common.workload.ownership import owner_reference
from tests.sample.kind import SAMPLES


class Spec(Model):
    size: int = 0


class Status(Model):
    size: int = 0


class Sample(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: Spec = Spec()
    status: Status = Status()


class ConfigMap(Model):
    metadata: ObjectMeta = ObjectMeta()


OBJECTS = Watch(SAMPLES, Sample, subresources=("status",))
CONFIG_MAPS = Watch(CONFIG_MAP, ConfigMap, owner=SAMPLES, writes=("create", "delete"))


class Snapshot(msgspec.Struct, frozen=True):
    """A Sample and its ConfigMaps by name."""

    sample: Sample
    maps: Mapping[str, ConfigMap]

    @property
    def subject(self) -> Subject:
        return Subject.of(SAMPLES, self.sample.metadata)


class Gatherer:
    """Builds the snapshot of one Sample."""

    def __init__(self, wiring: Wiring) -> None:
        self._samples = wiring.table(OBJECTS)
        self._maps = wiring.table(CONFIG_MAPS)

    def gather(self, key: Key, memory: Memory) -> Snapshot | None:
        sample = self._samples.get(*key)
        if sample is None:
            return None
        return Snapshot(sample, {one.metadata.name: one for one in owned(self._maps, SAMPLES, sample.metadata)})


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Make what is missing, delete what is too much."""
    sample, maps, draft = snapshot.sample, snapshot.maps, Draft()
    if sample.metadata.deletion_timestamp is not None:
        return Plan()
    wanted = [f"{sample.metadata.name}-{number}" for number in range(sample.spec.size)]
    missing = [name for name in wanted if name not in maps]
    surplus = [one for name, one in maps.items() if name not in wanted and one.metadata.deletion_timestamp is None]
    draft.stage([_create(sample, name) for name in missing])
    draft.stage([(delete_of(CONFIG_MAP, one.metadata, cause="scale down"),) for one in surplus])
    if missing:
        draft.reason("Growing", f"{len(missing)} of {len(wanted)} ConfigMaps are missing", missing)
    body = {"status": {"size": len(maps)}}
    changed = sample.status.size != len(maps)
    return draft.plan(
        status=patch_of(SAMPLES, sample.metadata, cause="status", body=body, subresource="status") if changed else None
    )


def _create(sample: Sample, name: str) -> Chain:
    meta = sample.metadata
    made = {"name": name, "namespace": meta.namespace, "ownerReferences": [owner_reference(SAMPLES, meta)]}
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": made}
    return (create_of(CONFIG_MAP, body, cause="scale up"),)


CONTROLLER = ControllerSpec(
    name="sample-controller",
    primary=OBJECTS,
    watches=(CONFIG_MAPS,),
    build=lambda wiring, options: Gatherer(wiring),
    plan=plan,
)
PARTS = (CONTROLLER,)


def service() -> Service:
    """The service, for `flotilla run` and for its own process."""
    return controller_service("samples", PARTS)
