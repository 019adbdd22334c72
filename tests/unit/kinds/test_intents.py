"""Intents of the writes of each kind, with their revisions and pods.

Those of CloneSets and of image pulls are in their whole plans.
"""

import pytest

from flotilla_common.control.plan import Action, Patch, Plan
from flotilla_common.workload.inplace.state import UpdateSpec
from flotilla_sidecar.podreadiness import plan as readiness
from tests.unit.advancedcronjob import world as cron
from tests.unit.broadcastjob import build as broadcast
from tests.unit.control.fakes import START
from tests.unit.daemonset import build as daemon
from tests.unit.ephemeraljob import world as ephemeral
from tests.unit.launchpriority import test_launchpriority as launch
from tests.unit.persistentpodstate import world as persistent
from tests.unit.podreadiness import test_podreadiness as gated
from tests.unit.resourcedistribution import world as distribution
from tests.unit.sidecarset import build as sidecar
from tests.unit.statefulset import build as stateful
from tests.unit.terminator import test_terminator as terminator

OLD, NEW = sidecar.side("A"), sidecar.side("B")
SIDECARS = sidecar.revision(NEW, 1).metadata.name


def intents(plan: Plan) -> set[str]:
    """Return the plan's writes but for a status, each sort once: `patch Pod/status: in-place update to web-B`."""
    return {told(action) for action in plan.actions}


def told(action: Action) -> str:
    part = f"/{action.subresource}" if isinstance(action, Patch) and action.subresource else ""
    revision = f" to {action.revision}" if action.revision else ""
    pods = f" for {' '.join(action.pods)}" if action.pods else ""
    return f"{action.verb} {action.resource.kind}{part}: {action.intent}{revision}{pods}"


def stateful_plan(builder: stateful.Builder, there: str, *claims: str, hooked: str = "") -> Plan:
    labels = {number: {"hold": hooked} for number in range(3)} if hooked else {}
    result = stateful.planned(builder, stateful.pods(there, claims=claims, labels=labels))
    assert result.status is not None
    assert told(result.status) == "patch StatefulSet/status: status"
    return result


STATEFUL_SETS = [
    pytest.param(
        stateful_plan(stateful.sts(2).claims("data"), "0B", "data"),
        {"create Pod: create to w-B", "create PersistentVolumeClaim: claim for w-1"},
        id="missing",
    ),
    pytest.param(stateful_plan(stateful.sts(2).p(2), "0A"), {"create Pod: create to w-A"}, id="behind the partition"),
    pytest.param(stateful_plan(stateful.sts(1), "0B 1B"), {"delete Pod: scale in"}, id="surplus"),
    pytest.param(stateful_plan(stateful.sts(1), "0A"), {"delete Pod: recreate to w-B"}, id="recreated"),
    pytest.param(
        stateful_plan(stateful.sts(1).in_place(), "0A"),
        {"patch Pod/status: in-place update to w-B", "patch Pod: in-place update to w-B"},
        id="in place",
    ),
    pytest.param(
        stateful_plan(stateful.sts(1).in_place(grace=5), "0A"),
        {"patch Pod/status: grace to w-B", "patch Pod: grace to w-B"},
        id="after a grace period",
    ),
    pytest.param(
        stateful_plan(stateful.sts(1).in_place().hook("inPlaceUpdate"), "0A", hooked="inPlaceUpdate"),
        {"patch Pod: hold to w-B"},
        id="held before its update",
    ),
    pytest.param(
        stateful_plan(stateful.sts(1).hook("preDelete"), "0B 1B", hooked="preDelete"),
        {"patch Pod: hold"},
        id="held before its deletion",
    ),
    pytest.param(
        stateful_plan(stateful.sts(1).hook("preDelete"), "0B:PreparingDelete", hooked="preDelete"),
        {"patch Pod: update"},
        id="kept after all",
    ),
]

DAEMON_SETS = [
    pytest.param(daemon.planned(daemon.ds(), "1B 2B 3B 4B"), {"create Pod: create to d-B"}, id="missing"),
    pytest.param(daemon.planned(daemon.ds(), "1B 2B 3B 4B 5A"), {"delete Pod: recreate to d-B"}, id="recreated"),
    pytest.param(
        daemon.planned(daemon.ds().in_place(), "1B 2B 3B 4B 5A"),
        {"patch Pod/status: in-place update to d-B", "patch Pod: in-place update to d-B"},
        id="in place",
    ),
    pytest.param(daemon.planned(daemon.ds().surge(), "1B 2B 3B 4B 5B 5A"), {"delete Pod: scale in"}, id="replaced"),
    pytest.param(daemon.planned(daemon.ds(), "1B 2B 3B 4B 5BF"), {"delete Pod: replace"}, id="failed"),
]

SIDECAR_SETS = [
    pytest.param(
        sidecar.planned(NEW, "A"),
        {f"patch Pod/status: update to {SIDECARS}", f"patch Pod: update to {SIDECARS}"},
        id="updated",
    ),
    pytest.param(sidecar.planned(NEW, "", revisions=[]), {"create ControllerRevision: revision"}, id="new"),
    pytest.param(
        sidecar.planned(NEW, "", revisions=[sidecar.revision(NEW, 1, owned=False)]),
        {"patch SidecarSet/status: adopt", "patch ControllerRevision: adopt"},
        id="of nobody",
    ),
]

OTHERS = [
    pytest.param(
        terminator.decided(terminator.pod("Never", {"m": 0, "s": terminator.RUNNING})),
        {"create ContainerRecreateRequest: create for job-1"},
        id="sidecars are ended",
    ),
    pytest.param(
        launch.decided(launch.pod(launch.TWO), launch.ABSENT),
        {"create ConfigMap: create for web-1"},
        id="the first container may start",
    ),
    pytest.param(
        launch.decided(launch.pod(launch.TWO, {"b": launch.READY}), launch.barrier("p_10")),
        {"patch ConfigMap: update for web-1", "patch Pod: refresh"},
        id="the last container may start",
    ),
    pytest.param(
        readiness.plan(readiness.PodSnapshot(gated.pod()), START), {"patch Pod/status: refresh"}, id="first readiness"
    ),
    pytest.param(
        broadcast.planned(broadcast.job()).plan, {"create Pod: create", "patch Pod/status: refresh"}, id="pods of a job"
    ),
    pytest.param(ephemeral.World(replicas=1).plan(), {"patch Pod/ephemeralcontainers: inject"}, id="injected"),
]


@pytest.mark.parametrize(("plan", "expected"), [*STATEFUL_SETS, *DAEMON_SETS, *SIDECAR_SETS, *OTHERS])
def test_what_the_writes_of_a_plan_are_for(plan: Plan, expected: set[str]) -> None:
    assert intents(plan) == expected


def test_copies_are_created_updated_replaced_and_deleted() -> None:
    world = distribution.World()
    world.distribute(includedNamespaces=distribution.names("a"))
    assert intents(world.plan()) == {"create Secret: create"}
    world.settle()
    world.distribute(distribution.secret(data={"k": "djI="}), includedNamespaces=distribution.names("a"))
    assert intents(world.plan()) == {"patch Secret: update"}
    world.distribute(distribution.secret(type="other"), includedNamespaces=distribution.names("a"))
    assert intents(world.plan()) == {"delete Secret: replace", "create Secret: create"}
    world.distribute(includedNamespaces=distribution.names("b"))
    assert intents(world.plan()) == {"delete Secret: delete", "create Secret: create"}


async def test_a_persistent_pod_state_follows_its_workload() -> None:
    world = persistent.World()
    world.workload(1)
    assert intents(world.plan()) == {"create PersistentPodState: create"}


def test_runs_of_a_schedule_are_created_replaced_and_cleaned_up() -> None:
    world, seen = cron.World(cron.cron_job(concurrencyPolicy="Replace", successfulJobsHistoryLimit=0)), list[str]()

    def verdict(action: Action) -> cron.Outcome:
        seen.append(told(action))
        return cron.OK

    world.verdict = verdict
    world.until("10:02:10")
    assert {"create Job: create", "delete Job: replace"} <= set(seen)
    ended = {"startTime": cron.stamp("10:02"), "conditions": [{"type": "Complete", "status": "True"}]}
    world.change("10:02", status=ended)
    assert "delete Job: clean up" in seen


@pytest.mark.parametrize(
    ("spec", "intent"),
    [
        (UpdateSpec(images={"a": "b"}), "in-place update"),
        (UpdateSpec(images={"a": "b"}, resources={"a": {}}), "in-place update"),
        (UpdateSpec(resources={"a": {}}), "resize"),
        (UpdateSpec(), "in-place update"),
    ],
)
def test_a_change_of_resources_alone_is_a_resize(spec: UpdateSpec, intent: str) -> None:
    assert spec.intent == intent
