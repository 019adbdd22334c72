"""The steps of a take-over and of the way back, from what is found on a cluster."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from flotilla_cli.adopt import backup
from flotilla_cli.adopt.discover import Found, policy_places
from flotilla_cli.adopt.helm import KEEP, OUT_OF_REACH
from flotilla_cli.adopt.plan import plan, rules_of_users
from flotilla_cli.adopt.rollback import runs_out, undo
from flotilla_cli.adopt.steps import LeaseFree, MigrationPlan, PodsGone, PolicyEnforced, Rewritten, WriteVerb
from flotilla_common.api.documents import merge
from flotilla_common.api.resources import CRD, MUTATING, SECRET
from flotilla_insight.installation.crds import resource_of
from flotilla_insight.installation.objects import SERVICE, Place, place_of
from flotilla_insight.openkruise import (
    CONFIGURATIONS,
    DAEMON,
    HOLDER,
    LEADER,
    MANAGER,
    ROLE,
    TAKEN,
    at_work,
    covers,
    held_by,
    standstill,
)
from tests.support import openkruise
from tests.testkit.documents import Json, metadata

NOW = datetime(2026, 11, 24, tzinfo=UTC)
CLONE_SETS = Place(CRD, "", "clonesets.apps.kruise.io")


def workload(name: str, account: str = "kruise-manager", **spec: object) -> Json:
    template = {"spec": {"serviceAccountName": account}}
    return {"metadata": {"name": name, "namespace": "kruise-system"}, "spec": {"template": template} | spec}


def configuration(place: Place, *names: str) -> Json:
    return {"metadata": {"name": place.name}, "webhooks": [{"name": name} for name in names]}


def openkruise_found(**more: Any) -> Found:
    """Return a cluster on which OpenKruise runs."""
    objects: dict[Place, Json] = {
        MANAGER: workload("kruise-controller-manager", replicas=2) | {"status": {"replicas": 2}},
        DAEMON: workload("kruise-daemon"),
        LEADER: {"metadata": {"name": "kruise-manager"}, "spec": {"holderIdentity": "manager-0"}},
        ROLE: {"metadata": {"name": "kruise-manager-role"}, "rules": [rule("", "pods"), rule("example.com", "games")]},
        **{place: configuration(place, "mpod.kb.io", "mpodunavailablebudget.kb.io") for place in CONFIGURATIONS},
        **{place_of(document): document for document in openkruise.definitions()},
    }
    return Found(now=NOW, objects=objects | more.pop("objects", {}), **more)


def rule(group: str, *resources: str) -> Json:
    return {"apiGroups": [group], "resources": list(resources), "verbs": ["get"]}


def after(found: Found, made: MigrationPlan, steps: int | None = None) -> Found:
    """Return the cluster after the first steps of a plan."""
    objects, kept = dict(found.objects), dict(found.before)
    for write in (write for step in made.steps[:steps] for write in step.writes):
        if write.verb == WriteVerb.RESTORE and write.place.name.startswith("flotilla-before-"):
            place, document = backup.read(write.body)
            kept[place] = document
        elif write.verb == WriteVerb.DELETE:
            objects.pop(write.place, None)
        elif write.verb == WriteVerb.RESTORE:
            objects[write.place] = write.body
        else:
            objects[write.place] = merge(objects.get(write.place, {}), write.body)
    if steps is None and MANAGER in objects:
        objects[MANAGER] = objects[MANAGER] | {"status": {}}
    return msgspec.structs.replace(found, objects=objects, before=kept)


def writes(made: MigrationPlan) -> dict[Place, Json]:
    return {write.place: write.body for step in made.steps for write in step.writes if write.verb == WriteVerb.PATCH}


def test_it_stops_openkruise_before_it_holds_its_lease():
    waits = [until for step in plan(openkruise_found()).steps for until in step.until]
    assert waits[:-1] == [PodsGone(MANAGER), PodsGone(DAEMON), LeaseFree(LEADER)]
    assert isinstance(waits[-1], PolicyEnforced)


def test_everything_is_kept_before_anything_is_changed():
    found = openkruise_found()
    first = plan(found).steps[0]
    assert {backup.read(write.body)[0] for write in first.writes} == found.objects.keys() - {LEADER}


def test_entries_go_before_the_webhook_does():
    made = plan(openkruise_found())
    order = [write.place for step in made.steps for write in step.writes if write.verb == WriteVerb.PATCH]
    assert max(map(order.index, CONFIGURATIONS)) < order.index(MANAGER)


def test_a_second_run_has_nothing_to_do():
    found = openkruise_found()
    assert plan(after(found, plan(found))).steps == ()


@pytest.mark.parametrize("steps", range(1, 16))
def test_it_goes_on_after_it_was_killed(steps: int):
    found = openkruise_found()
    made = plan(found)
    broken = after(found, made, steps)
    whole = after(broken, plan(broken))
    assert whole.before == after(found, made).before
    assert whole.objects == after(found, made).objects


def test_objects_that_nobody_would_serve_are_named():
    found = openkruise_found(counts={"sidecarsets.apps.kruise.io": 3, "broadcastjobs.apps.kruise.io": 0})
    made = plan(found)
    assert made.steps == ()
    assert "no controller would reconcile 3 sidecarsets.apps.kruise.io:" in made.refused[0]
    accepted = plan(found, leave_unserved=True)
    assert accepted.steps
    assert accepted.notes == (
        "sidecarsets.apps.kruise.io: 3 objects stay as they are, and no controller reconciles them",
    )


def test_a_cluster_without_openkruise_is_refused():
    assert "flotilla install" in plan(Found(now=NOW)).refused[0]


def test_definitions_are_kept_and_not_changed():
    changed = writes(plan(openkruise_found()))
    definitions = [place_of(one) for one in openkruise.definitions()]
    assert [changed[place] for place in definitions] == [{"metadata": {"annotations": KEEP}}] * len(definitions)


def test_entries_of_flotilla_stay_and_those_that_come_back_go():
    found = openkruise_found()
    taken = after(found, plan(found))
    place = Place(MUTATING, "", "kruise-mutating-webhook-configuration")
    ours = merge(taken.objects[place], {"webhooks": [{"name": "mcloneset.kb.io"}]})
    assert plan(msgspec.structs.replace(taken, objects=taken.objects | {place: ours})).steps == ()
    back = merge(ours, {"webhooks": [{"name": "mpodunavailablebudget.kb.io"}]})
    assert place in writes(plan(msgspec.structs.replace(taken, objects=taken.objects | {place: back})))


def test_a_deployment_of_flotilla_under_the_same_name_is_left_alone():
    ours = {MANAGER: workload("kruise-controller-manager", "flotilla-webhook", replicas=2)}
    assert MANAGER not in writes(plan(openkruise_found(objects=ours)))


def test_without_policies_it_says_who_has_to_watch():
    made = plan(openkruise_found(policies=False))
    assert "make sure of it yourself" in made.notes[0]
    assert not {write.place for step in made.steps for write in step.writes} & set(policy_places())


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        pytest.param([rule("", "pods", "pods/status")], [], id="theirs"),
        pytest.param([rule("apps.kruise.io", "clonesets/finalizers")], [], id="their kinds"),
        pytest.param([rule("*", "*/scale"), rule("*", "*")], [], id="lists everything"),
        pytest.param([rule("example.com", "games")], [rule("example.com", "games")], id="of users"),
        pytest.param([rule("apps", "deployments", "x")], [rule("apps", "x")], id="of both"),
        pytest.param([{"nonResourceURLs": ["/x"]}], [{"nonResourceURLs": ["/x"]}], id="no resource"),
    ],
)
def test_rights_of_users(rules: list[Json], left: list[Json]):
    assert rules_of_users(rules) == left
    assert rules_of_users(left) == left


def test_helm_cannot_find_the_old_release():
    record = metadata("sh.helm.release.v1.kruise.v1", "default", labels={"owner": "helm", "name": "kruise"})
    changed = writes(plan(openkruise_found(releases=[record])))
    assert changed[Place(SECRET, "default", record["name"])] == {"metadata": {"labels": {"owner": OUT_OF_REACH}}}


def test_an_openkruise_in_another_namespace_is_refused():
    service = {"name": "kruise-webhook-service", "namespace": "platform"}
    entry = {"name": "mpod.kb.io", "clientConfig": {"service": service}}
    there = {CONFIGURATIONS[0]: configuration(CONFIGURATIONS[0]) | {"webhooks": [entry]}}
    made = plan(openkruise_found(objects=there))
    assert made.steps == ()
    assert "installed in namespace platform" in made.refused[0]


def test_gates_of_openkruise_are_named():
    container = {"command": ["/manager"], "args": ["--v=4", "--feature-gates=CloneSetShortHash=true"]}
    manager = workload("kruise-controller-manager")
    manager["spec"]["template"]["spec"]["containers"] = [container]
    made = plan(openkruise_found(objects={MANAGER: manager}))
    assert made.notes == ("OpenKruise ran with --feature-gates=CloneSetShortHash=true: set the same for Flotilla",)


def test_a_policy_needs_no_second_write_for_what_the_apiserver_adds():
    [policy, _] = standstill()
    live = merge(policy, {"spec": {"matchConstraints": {"matchPolicy": "Equivalent"}}})
    assert covers(live, policy)
    assert not covers(policy, live)


def test_the_way_back_leaves_everything_as_it_was():
    found = openkruise_found()
    taken = after(found, plan(found))
    made = undo(taken)
    back = after(taken, made)
    assert made.refused == ()
    for place in found.objects.keys() - {LEADER}:
        assert backup.is_as_before(taken.before[place], back.objects[place]), place
    assert LEADER not in back.objects
    assert not back.objects.keys() & set(policy_places())
    assert [write.place for write in made.steps[-2].writes] == list(CONFIGURATIONS)


def test_a_cluster_that_is_flotillas_from_the_start_is_left_alone():
    lease = held_lease(NOW)
    found = openkruise_found(leases=[lease])
    assert plan(found).refused == ()
    alone = msgspec.structs.replace(found, objects={place: found.objects[place] for place in found.definitions})
    assert "nothing to take over" in plan(alone).refused[0]
    chart = {MANAGER: workload("kruise-controller-manager", account="flotilla-watcher", replicas=2)}
    assert "nothing to take over" in plan(msgspec.structs.replace(alone, objects=alone.objects | chart)).refused[0]
    taken = after(found, plan(found))
    assert plan(msgspec.structs.replace(taken, leases=[lease])).refused == ()


def held_lease(renewed: datetime) -> Json:
    """Return the lease of a running service."""
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": renewed.isoformat()}
    return {"metadata": {"name": "flotilla-cloneset-0"}, "spec": spec}


def test_openkruise_finds_configurations_that_went_with_the_chart():
    found = openkruise_found()
    taken = after(found, plan(found))
    left = {place: live for place, live in taken.objects.items() if place not in CONFIGURATIONS}
    made = undo(msgspec.structs.replace(taken, objects=left))
    order = [write.place for step in made.steps for write in step.writes]
    empty = {write.place: write.body for write in made.steps[0].writes + made.steps[1].writes}
    assert {place: body["webhooks"] for place, body in empty.items()} == {place: [] for place in CONFIGURATIONS}
    assert max(map(order.index, CONFIGURATIONS)) < order.index(MANAGER)
    back = after(msgspec.structs.replace(taken, objects=left), made)
    assert all(backup.is_as_before(taken.before[place], back.objects[place]) for place in CONFIGURATIONS)


def test_a_service_may_come_back_under_another_address():
    place = Place(SERVICE, "kruise-system", "kruise-webhook-service")
    live: Json = {"metadata": {"name": place.name, "namespace": place.namespace}, "spec": {"clusterIP": "10.96.0.7"}}
    _, kept = backup.read(backup.backup_of(place, live).body)
    assert kept["spec"] == {}
    assert backup.is_as_before(kept, live | {"spec": {"clusterIP": "10.96.0.8"}})


def test_there_is_no_way_back_while_flotilla_works():
    found = openkruise_found()
    taken = after(found, plan(found))
    lease = held_lease(NOW - timedelta(seconds=5))
    assert "flotilla-cloneset-0" in undo(msgspec.structs.replace(taken, leases=[lease])).refused[0]
    left = msgspec.structs.replace(taken, leases=[lease])
    assert runs_out(left)
    assert not runs_out(taken)
    assert not runs_out(msgspec.structs.replace(left, pods=["flotilla-webhook-x"]))
    assert runs_out(msgspec.structs.replace(left, pods=["flotilla-webhook-x"], ending=["flotilla-webhook-x"]))
    charts = msgspec.structs.replace(taken, pods=["flotilla-bus-0"])
    assert "still pods of Flotilla (flotilla-bus-0)" in undo(charts).refused[0]
    late = NOW + timedelta(seconds=11)
    assert undo(msgspec.structs.replace(taken, leases=[lease], now=late)).refused == ()
    assert "not taken over" in undo(found).refused[0]


def of_the_release(stored: list[str]) -> Found:
    """Return a taken-over OpenKruise 1.9.0 with CRDs of Flotilla, and CloneSets stored in these versions."""
    old = {place_of(document): document for document in openkruise.definitions(released=True)}
    found = openkruise_found(objects=old)
    taken = after(found, plan(found))
    new = next(one for one in openkruise.definitions() if place_of(one) == CLONE_SETS)
    ours = {CLONE_SETS: new | {"status": {"storedVersions": stored}}}
    return msgspec.structs.replace(taken, objects=taken.objects | ours)


def test_objects_are_converted_back_while_flotilla_works():
    found = of_the_release(["v1alpha1", "v1beta1"])
    assert "only Flotilla's webhook converts them" in undo(found).refused[0]
    made = undo(msgspec.structs.replace(found, leases=[held_lease(NOW)]))
    assert "first half" in made.notes[0]
    [change, status] = [write for step in made.steps for write in step.writes]
    versions = {version["name"]: version["storage"] for version in change.body["spec"]["versions"]}
    assert versions == {"v1alpha1": True, "v1beta1": False}
    [rewritten] = [until for step in made.steps for until in step.until if isinstance(until, Rewritten)]
    assert resource_of(rewritten.definition).version == "v1alpha1"
    assert (status.verb, status.body) == (WriteVerb.STATUS, {"status": {"storedVersions": ["v1alpha1"]}})
    assert undo(of_the_release(["v1alpha1"])).refused == ()


@pytest.mark.parametrize(
    ("spec", "holder"),
    [
        pytest.param({}, "", id="nobody"),
        pytest.param({"holderIdentity": "m", "leaseDurationSeconds": 15}, "", id="never renewed"),
        pytest.param({"holderIdentity": "m", "leaseDurationSeconds": 15, "renewTime": 14}, "m", id="renewed"),
        pytest.param({"holderIdentity": "m", "leaseDurationSeconds": 15, "renewTime": 15}, "", id="run out"),
        pytest.param({"holderIdentity": HOLDER, "leaseDurationSeconds": 15, "renewTime": 1}, "", id="ours"),
        pytest.param({"holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": 1}, "", id="given back"),
    ],
)
def test_who_leads(spec: Json, holder: str):
    age = spec.get("renewTime", 0)
    renewed = {"renewTime": (NOW - timedelta(seconds=age)).isoformat()} if age else {}
    assert held_by({"spec": spec | renewed}, NOW) == holder


def test_who_held_what():
    found = openkruise_found()
    taken = after(found, plan(found))
    assert taken.objects[LEADER]["spec"]["holderIdentity"] == HOLDER
    assert taken.objects[DAEMON]["spec"]["template"]["spec"]["nodeSelector"] == {TAKEN: "true"}
    assert taken.objects[MANAGER]["spec"]["replicas"] == 0
    assert taken.before[MANAGER]["spec"]["replicas"] == 2


def test_a_manager_between_two_leaders_is_at_work() -> None:
    expired = {"spec": {"holderIdentity": "manager-0", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00Z"}}
    manager = {"spec": {"replicas": 2}}
    ours = {"spec": {"replicas": 2, "template": {"spec": {"serviceAccountName": "flotilla-webhook"}}}}
    assert at_work(expired, manager, NOW) == "Deployment kruise-controller-manager in kruise-system has 2 replicas"
    assert [at_work(expired, other, NOW) for other in ({}, {"spec": {"replicas": 0}}, ours)] == ["", "", ""]
