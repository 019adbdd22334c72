"""A play in which a parent makes, changes and deletes CloneSets, whose own planner works beside it."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.cloneset.types import CLONE_SET, CloneSet
from flotilla_common.api.meta import Model, ObjectMeta
from flotilla_common.api.resources import POD, Resource
from flotilla_common.control.controller_context import ControllerContext
from flotilla_common.control.keystate import Key, Memory
from flotilla_common.control.plan import Intent, ObjectRef, Plan
from flotilla_common.control.planbuilder import PlanBuilder
from flotilla_common.control.spec import ControllerSpec
from flotilla_common.control.watches import Watch, owned
from flotilla_common.control.writes import create_of, delete_of, patch_of, write_status
from flotilla_common.model.cluster import Cluster
from flotilla_common.model.kubelet import is_ready
from flotilla_common.workload.ownership import owner_reference
from flotilla_insight.preview.simulation import Simulation, Tick
from flotilla_insight.services import controllers
from tests.unit.cloneset.build import NOW

FLEETS = Resource("policy.kruise.io", "v1beta1", "fleets", "Fleet")


class Spec(Model):
    image: str = ""
    sizes: dict[str, int] = {}


class Status(Model):
    ready: int = 0


class Fleet(Model):
    metadata: ObjectMeta = ObjectMeta()
    spec: Spec = Spec()
    status: Status = Status()


OBJECTS = Watch(FLEETS, Fleet, subresources=("status",))
CHILDREN = Watch(CLONE_SET, CloneSet, owner=FLEETS, writes=("create", "delete", "patch"))


class Snapshot(msgspec.Struct, frozen=True):
    fleet: Fleet
    children: Mapping[str, CloneSet]

    @property
    def subject(self) -> ObjectRef:
        return ObjectRef.of(FLEETS, self.fleet.metadata)


class Gatherer:
    def __init__(self, context: ControllerContext) -> None:
        self._fleets = context.table(OBJECTS)
        self._children = context.table(CHILDREN)

    def gather(self, key: Key, memory: Memory) -> Snapshot | None:
        fleet = self._fleets.get(*key)
        if fleet is None:
            return None
        children = owned(self._children, FLEETS, fleet.metadata)
        return Snapshot(fleet, {one.metadata.name: one for one in children})


def child(fleet: ObjectMeta, name: str, size: int, image: str) -> Json:
    """Return a CloneSet as the fleet creates it, without defaulting."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "main", "image": image}]}}
    meta = {"name": name, "namespace": "shop", "ownerReferences": [owner_reference(FLEETS, fleet)]}
    body = {"replicas": size, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": CLONE_SET.api_version, "kind": CLONE_SET.kind, "metadata": meta, "spec": body}


def plan(snapshot: Snapshot, now: datetime) -> Plan:
    """Create, change and delete children; report how many of their pods are ready."""
    fleet, children, builder = snapshot.fleet, snapshot.children, PlanBuilder()
    meta, spec = fleet.metadata, fleet.spec
    for name, size in spec.sizes.items():
        wanted = child(meta, name, size, spec.image)
        held = children.get(name)
        if held is None:
            builder.stage([(create_of(CLONE_SET, wanted, Intent.CREATE, "new"),)])
        elif held.spec.replicas != size or spec.image.encode() not in bytes(held.spec.template):
            body = {"spec": {"replicas": size, "template": wanted["spec"]["template"]}}
            builder.stage([(patch_of(CLONE_SET, held.metadata, Intent.UPDATE, "changed", body=body),)])
    gone = [one for name, one in children.items() if name not in spec.sizes]
    builder.stage([(delete_of(CLONE_SET, one.metadata, Intent.DELETE, "gone"),) for one in gone])
    ready = sum(one.status.ready_replicas for one in children.values())
    status = write_status(FLEETS, meta, {"ready": ready}, on_version=False)
    return builder.plan(status=None if ready == fleet.status.ready else status)


CONTROLLER = ControllerSpec(
    name="fleets", primary=OBJECTS, watches=(CHILDREN,), build=lambda context, options: Gatherer(context), plan=plan
)


def fleet(image: str = "web:1", **sizes: int) -> Json:
    meta = {"name": "f", "namespace": "shop", "uid": "uid-f", "generation": 1, "resourceVersion": "1"}
    return {"metadata": meta, "spec": {"image": image, "sizes": sizes}}


class Stage:
    """Plays one apply after the other, each on the results of the former."""

    def __init__(self) -> None:
        self.objects: dict[Resource, list[Json]] = {}
        self.cluster = Cluster(NOW)

    def apply(self, document: Json) -> list[Tick]:
        now = self.cluster.clock.now()
        self.cluster = Cluster(now)
        play = Simulation(
            self.cluster,
            {FLEETS: CONTROLLER, CLONE_SET: controllers()[CLONE_SET]},
            {},
            lambda _resource, document, _old: document,
        )
        for resource, documents in self.objects.items():
            self.cluster.objects.load(resource, [msgspec.json.encode(one) for one in documents])
        held = next(iter(self.objects.get(FLEETS, ())), {})
        play.asks(FLEETS, held | document)
        moments = list(play.run(FLEETS, held | document))
        assert play.finished
        self.objects = {}
        for resource, one in self.cluster.objects.everything():
            self.objects.setdefault(resource, []).append(one)
        return moments

    def ready(self) -> list[str]:
        """Return the ready pods, each by its label and image."""
        pods = filter(is_ready, self.objects.get(POD, ()))
        return sorted(f"{one['metadata']['labels']['app']} {one['spec']['containers'][0]['image']}" for one in pods)

    def told(self) -> int:
        return self.objects[FLEETS][0]["status"]["ready"]


def writes(moments: list[Tick], resource: Resource) -> list[str]:
    done = [write.action for moment in moments for write in moment.writes if write.effective]
    return [f"{one.verb} {one.name}" for one in done if one.resource == resource and one.cause != "status"]


def test_a_child_that_the_parent_makes_is_planned_and_wakes_the_parent():
    stage = Stage()
    moments = stage.apply(fleet(a=2))
    assert (writes(moments, CLONE_SET)[0], stage.ready(), stage.told()) == ("create a", ["a web:1"] * 2, 2)


def test_children_that_were_there_go_on_beside_the_parent():
    stage = Stage()
    stage.apply(fleet(a=2))
    stage.objects[POD] = stage.objects[POD][:1]
    moments = stage.apply(fleet(a=2))
    assert ("create a" in writes(moments, CLONE_SET), stage.ready(), stage.told()) == (False, ["a web:1"] * 2, 2)


def test_a_patch_of_the_parent_rolls_out_in_the_child():
    stage = Stage()
    stage.apply(fleet(a=2, b=1))
    moments = stage.apply(fleet("web:2", a=3, b=1))
    assert sorted(one for one in writes(moments, CLONE_SET) if one.startswith("patch")) == ["patch a", "patch b"]
    assert (stage.ready(), stage.told()) == (["a web:2"] * 3 + ["b web:2"], 4)
    generations = {one["metadata"]["name"]: one["metadata"]["generation"] for one in stage.objects[CLONE_SET]}
    assert generations == {"a": 2, "b": 2}


def test_pods_of_a_deleted_child_go_with_it():
    stage = Stage()
    stage.apply(fleet(a=1, b=2))
    moments = stage.apply(fleet(a=1))
    assert writes(moments, CLONE_SET) == ["delete b"]
    assert writes(moments, POD) == []
    assert (stage.ready(), stage.told()) == (["a web:1"], 1)
    assert [one["metadata"]["name"] for one in stage.objects[CLONE_SET]] == ["a"]


def test_somebody_elses_child_is_left_alone():
    stage = Stage()
    stage.apply(fleet(a=1))
    other = child(ObjectMeta(name="g", namespace="shop", uid="uid-g"), "other", 5, "web:9")
    other["metadata"] |= {"uid": "uid-other", "generation": 1, "resourceVersion": "1"}
    stage.objects[CLONE_SET].append(other)
    stage.apply(fleet("web:2", a=1))
    assert stage.ready() == ["a web:2"]
