"""The part of the model that an identity sees."""

import msgspec
import pytest

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.sidecarset.types import SIDECAR_SET
from flotilla_common.api.kinds.uniteddeployment.types import UNITED_DEPLOYMENT
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, DEPLOYMENT, NODE, POD, REPLICA_SET, REVISION
from flotilla_common.bus.interface import Message
from flotilla_common.installed import published
from flotilla_console.model.beats import ALIVE_SECONDS
from flotilla_console.model.reasons import ReasonKey, ReasonTable
from flotilla_console.model.resources import DISRUPTION_BUDGET, NOT_ON_BUS, RESOURCES
from flotilla_console.model.sight import Wanted
from tests.unit.console.model.worlds import Only, World, owned_by, template, texts

_MINE = Only(clonesets=["mine"], pods=["mine"], controllerrevisions=["mine"])


def _two_namespaces() -> World:
    world = World()
    for namespace in ("mine", "theirs"):
        world.clone_set("web", namespace, uid=f"uid-{namespace}")
        owner = owned_by(CLONE_SET, "web") | {"uid": f"uid-{namespace}"}
        world.pod("web-1", namespace, owner=owner, uid=f"pod-{namespace}")
    return world


def test_workloads_and_pods_need_the_right_to_list_them() -> None:
    sight = _two_namespaces().sight(_MINE)
    assert [one.namespace for one in sight.workloads()] == ["mine"]
    assert [one.metadata.namespace for one in sight.pods()] == ["mine"]
    assert sight.workload("apps.kruise.io", "clonesets", "theirs", "web") is None
    assert sight.pod("theirs", "web-1") is None
    assert sight.object(CLONE_SET, "theirs", "web") is None
    assert sight.object(POD, "theirs", "web-1") is None


def test_pods_of_a_workload_need_the_right_to_pods() -> None:
    world = _two_namespaces()
    sight = world.sight(Only(clonesets=["mine"]))
    assert sight.pods_of(world.workload(CLONE_SET, "web", "mine")) == []


def test_nobody_sees_anything_without_rights() -> None:
    world = _two_namespaces()
    sight = world.sight(Only())
    assert [*sight.workloads(), *sight.pods(), *sight.nodes(), *sight.stored(CLONE_SET)] == []
    assert sight.node("node-1") is None
    assert sight.reason(world.workload(CLONE_SET, "web", "mine")) is None


def test_questions_are_about_what_exists() -> None:
    world = _two_namespaces()
    asked = set(world.sight().questions())
    of_clone_sets = Wanted(verb="list", group="apps.kruise.io", plural="clonesets", namespace="mine")
    of_logs = Wanted(verb="get", group="", plural="pods", namespace="mine", subresource="log")
    assert {of_clone_sets, of_logs} <= asked
    assert not [one for one in asked if one.plural == "jobs"]


def test_questions_end_with_the_objects() -> None:
    world = World()
    world.clone_set("web", "mine")
    world.model.mirror.deleted(CLONE_SET, "mine", "web", "uid-web")
    assert not [one for one in world.sight().questions() if one.plural == "clonesets"]


def test_a_kind_without_a_page_is_no_workload() -> None:
    assert World().sight().workload("", "pods", "mine", "web") is None


def test_pods_of_a_deployment_are_those_of_its_replica_sets() -> None:
    world = World()
    world.put(DEPLOYMENT, "web")
    meta = {"name": "web-1", "namespace": "shop", "ownerReferences": [owned_by(DEPLOYMENT, "web")]}
    world.add(REPLICA_SET, {"metadata": meta, "spec": {"template": template("nginx:1")}})
    world.pod("web-1-a", owner=owned_by(REPLICA_SET, "web-1"))
    sight, deployment = world.sight(), world.workload(DEPLOYMENT, "web")
    assert [one.metadata.name for one in sight.pods_of(deployment)] == ["web-1-a"]
    assert [one.metadata.name for one in sight.templates_of(deployment)] == ["web-1"]
    pod = sight.pod("shop", "web-1-a")
    assert pod is not None
    assert [name for _, _, name, _ in sight.owners_of(pod)] == ["web-1", "web"]


def test_owners_are_not_found_through_what_may_not_be_seen() -> None:
    world = World()
    world.put(DEPLOYMENT, "web")
    meta = {"name": "web-1", "namespace": "shop", "ownerReferences": [owned_by(DEPLOYMENT, "web")]}
    world.add(REPLICA_SET, {"metadata": meta, "spec": {}})
    world.pod("web-1-a", owner=owned_by(REPLICA_SET, "web-1"))
    sight = world.sight(Only(pods=["shop"]))
    pod = sight.pod("shop", "web-1-a")
    assert pod is not None
    assert [name for _, _, name, _ in sight.owners_of(pod)] == ["web-1"]


def test_pods_of_a_united_deployment_are_those_of_its_workloads() -> None:
    world = World()
    world.put(UNITED_DEPLOYMENT, "all")
    world.put(CLONE_SET, "web", ownerReferences=[owned_by(UNITED_DEPLOYMENT, "all")])
    world.pod("web-1")
    united = world.workload(UNITED_DEPLOYMENT, "all")
    assert [one.metadata.name for one in world.sight().pods_of(united)] == ["web-1"]
    assert [one.name for one in world.sight().children_of(united)] == ["web"]


def test_owners_in_a_circle_are_read_once() -> None:
    world = World()
    world.put(UNITED_DEPLOYMENT, "a", ownerReferences=[owned_by(UNITED_DEPLOYMENT, "b")])
    world.put(UNITED_DEPLOYMENT, "b", ownerReferences=[owned_by(UNITED_DEPLOYMENT, "a")])
    first = world.workload(UNITED_DEPLOYMENT, "a")
    assert world.sight().pods_of(first) == []
    assert len(world.sight().owners_of(first)) <= 10


def test_pods_of_a_sidecar_set_have_its_sidecars() -> None:
    world = World()
    world.put(SIDECAR_SET, "logs", "")
    world.pod("web-1", annotations={"kruise.io/sidecarset-injected-list": "logs,mesh"})
    world.pod("web-2")
    logs = world.workload(SIDECAR_SET, "logs", "")
    assert [one.metadata.name for one in world.sight().pods_of(logs)] == ["web-1"]


def test_templates_come_newest_first() -> None:
    world = World()
    world.clone_set()
    world.revision("web-1", 1, "nginx:1")
    world.revision("web-2", 2, "nginx:2")
    web = world.workload(CLONE_SET, "web")
    assert [one.metadata.name for one in world.sight().templates_of(web)] == ["web-2", "web-1"]
    assert world.sight(Only(clonesets=["shop"])).templates_of(web) == []


def test_objects_are_whole_but_for_copies_of_themselves() -> None:
    world = World()
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "secret", "a": "b"}
    world.put(CLONE_SET, "web", spec={"replicas": 2}, status={"replicas": 1}, annotations=applied)
    found = world.sight().object(CLONE_SET, "shop", "web")
    assert found is not None
    assert (found["kind"], found["spec"], found["status"]) == ("CloneSet", {"replicas": 2}, {"replicas": 1})
    assert found["metadata"]["annotations"] == {"a": "b"}


def test_each_change_has_another_version() -> None:
    world = World()
    versions = [world.model.version]
    for change in (world.clone_set, lambda: world.pod("web-1"), lambda: world.explain(CLONE_SET, "web")):
        change()
        versions.append(world.model.version)
    assert versions == sorted(set(versions))


def test_a_workload_that_is_deleted_is_gone() -> None:
    world = World()
    world.clone_set()
    assert len(world.sight().workloads()) == 1
    world.model.mirror.deleted(CLONE_SET, "shop", "web", "uid-web")
    assert world.sight().workloads() == []


def test_objects_that_cannot_be_decoded_are_named_to_those_who_may_see_them() -> None:
    world = World()
    world.add(CLONE_SET, {"metadata": {"name": "odd", "namespace": "mine", "labels": 7}})
    assert world.sight().unreadable() == ["CloneSet mine/odd"]
    assert world.sight(Only()).unreadable() == []


def test_pods_explain_workloads_of_kubernetes_to_those_who_may_see_them() -> None:
    world = World()
    world.put(BUILT_IN_STATEFUL_SET, "db", spec={"replicas": 2}, status={"observedGeneration": 1, "replicas": 2})
    waiting = [{"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}]
    world.pod("db-0", owner=owned_by(BUILT_IN_STATEFUL_SET, "db"), ready=False, phase="Pending", statuses=waiting)
    (db,) = world.sight().workloads()
    assert (db.verdict.state, db.verdict.code) == ("blocked", "ErrImagePull")
    (db,) = world.sight(Only(statefulsets=["shop"])).workloads()
    assert (db.verdict.state, db.verdict.code) == ("busy", "WaitingForAvailability")


class TestFreshness:
    """The banners."""

    @staticmethod
    def _world() -> World:
        world = World()
        world.model.beats.take(Message(subject="heartbeat.v1.watcher.a", data=_beat("watcher")))
        return world

    def test_there_is_no_banner_while_bus_and_watcher_live(self) -> None:
        assert self._world().sight().freshness.banners == ()

    def test_a_dead_bus(self) -> None:
        world = self._world()
        world.bus.connected = False
        assert "The bus does not answer" in texts(world.sight().freshness.banners)

    def test_a_dead_watcher(self) -> None:
        world = self._world()
        world.clock.time += ALIVE_SECONDS + 1
        assert "No watcher is alive" in texts(world.sight().freshness.banners)

    def test_no_watcher_has_been_heard_of_yet(self) -> None:
        assert World().sight().freshness.banners == ()

    def test_it_says_how_old_the_model_is(self) -> None:
        world = self._world()
        world.clock.time += 100
        assert "up to date" in texts(world.sight().freshness.banners)


def _beat(service: str) -> bytes:
    return msgspec.json.encode({"service": service, "replica": "a"})


def test_beats_are_those_of_their_senders() -> None:
    world = World()
    world.model.beats.take(Message(subject="heartbeat.v1.cloneset.a", data=_beat("watcher")))
    world.model.beats.take(Message(subject="heartbeat.v1.cloneset.b", data=b"{"))
    assert [one.heartbeat.service for one in world.sight().beats()] == ["cloneset"]


def test_the_watcher_publishes_all_but_those_that_are_watched_directly() -> None:
    assert {one for one in RESOURCES if one not in published()} == set(NOT_ON_BUS)


@pytest.mark.parametrize("resource", [POD, NODE, REVISION, REPLICA_SET, *(kind.resource for kind in catalogue.KINDS)])
def test_all_kinds_are_in_the_model(resource: object) -> None:
    assert resource in RESOURCES


def test_reasons_that_a_wiped_bus_does_not_repeat_end() -> None:
    world, changed = World(), list[ReasonKey]()
    table = world.model.reasons = ReasonTable(changed.append)
    for name in ("web", "api"):
        world.explain(CLONE_SET, name)
    table.reset()
    assert table.of(CLONE_SET, "shop", "api", "uid-api") is not None  # until the stream has been read again
    world.explain(CLONE_SET, "web")
    assert table.of(CLONE_SET, "shop", "web", "uid-web") is not None
    assert table.of(CLONE_SET, "shop", "api", "uid-api") is None
    assert changed[-1] == ("clonesets", "shop", "api")


def test_a_watch_is_up_to_date_between_two_bookmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    lags = dict.fromkeys(world.model.mirror.resources, 0.0)
    monkeypatch.setattr(world.model.mirror, "lag", lags.__getitem__)
    lags[DISRUPTION_BUDGET] = 60.0
    assert world.model.lag == 0.0
    lags[POD] = 20.0  # comes over the bus
    assert world.model.lag == 20.0
    lags[DISRUPTION_BUDGET] = 100.0
    assert world.model.lag == 100.0
