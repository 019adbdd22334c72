"""BroadcastJobs, AdvancedCronJobs and EphemeralJobs on real containers.

The articles' examples run verbatim, and kubelets run programs that end, fail or never start. Slow scenarios, of half a
minute or until the next full minute, are started first (`slow`) and checked last.
"""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import pytest
import pytest_asyncio

from flotilla_common.api.kinds.advancedcronjob.types import ADVANCED_CRON_JOB
from flotilla_common.api.kinds.broadcastjob.types import BROADCAST_JOB
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.ephemeraljob.types import EPHEMERAL_JOB
from flotilla_common.api.resources import JOB, POD, Resource
from flotilla_dev.cluster.realnodes.registry import SHELL
from tests.cluster.conftest import Running, forget
from tests.integration.advancedcronjob.test_seed_documents import DEMO as SCHEDULED
from tests.integration.broadcastjob.test_seed_documents import DEADLINE, DEMO, TTL, check_pods, check_table, columns
from tests.support import cron, ephemeral
from tests.support.broadcast import NAME, begun, broadcastjob, is_active, pods_of, reached
from tests.support.daemons import node_of
from tests.support.recorder import Recorder
from tests.support.verbs import Verbs
from tests.support.workspace import (
    Workspace,
    cloneset,
    condition,
    is_ready,
    moment,
    new_namespace,
    restarts,
    terminating,
)
from tests.testkit.documents import Json

NODES = ["real-0", "real-1", "real-2"]
PERL = b'#!/bin/sh\n[ "$1 $2 $3" = "-Mbignum=bpi -wle print bpi(2000)" ] && echo 3.14\n'
SLEEPING = DEMO.replace("for i in 9 8 7 6 5 4 3 2 1; do echo $i; done", "sleep 3600").replace("bcj-demo", "late")
WATCHED = (POD, BROADCAST_JOB, ADVANCED_CRON_JOB, EPHEMERAL_JOB, CLONE_SET, JOB)


class Place(NamedTuple):
    """The cluster, and a record of all namespaces."""

    running: Running
    recorder: Recorder

    def space(self, title: str, kind: Resource) -> Workspace:
        """Create a namespace for objects of a kind."""
        return self.within(new_namespace(self.running.cluster, title), kind)

    def within(self, namespace: str, kind: Resource) -> Workspace:
        return Workspace(self.running.cluster, self.recorder, namespace, kind)


class Slow(NamedTuple):
    """The scenarios that are started first."""

    short_lived: Workspace
    late: Workspace
    scheduled: Workspace


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(running: Running) -> AsyncIterator[Place]:
    await running.cluster.registry.push("perl:latest", SHELL, {"/bin/perl": PERL})
    with Recorder(running.cluster.rest, *WATCHED) as recorder:
        yield Place(running, recorder)


@pytest.fixture(scope="module", autouse=True)
def slow(place: Place) -> Iterator[Slow]:
    """Start the slow examples."""
    short_lived, late = (place.space(title, BROADCAST_JOB) for title in ("short-lived", "late"))
    scheduled = place.space("scheduled", ADVANCED_CRON_JOB)
    scheduled.apply(SCHEDULED)
    short_lived.apply(TTL)
    late.apply(SLEEPING + DEADLINE)
    made = Slow(short_lived, late, scheduled)
    yield made
    for one in made:
        forget(one.cluster, one.name)


@pytest.fixture
def space(place: Place, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    """Yield a fresh namespace for BroadcastJobs."""
    made = place.space(request.node.nodeid, BROADCAST_JOB)
    yield made
    forget(made.cluster, made.name)


@pytest.fixture
def dumps(space: Workspace, place: Place) -> Workspace:
    """Return the same namespace for EphemeralJobs."""
    return place.within(space.name, EPHEMERAL_JOB)


def script(text: str, **more: object) -> Json:
    """Return a pod of one container that runs a script."""
    return {"containers": [{"name": "main", "image": "busybox:1.36", "command": ["sh", "-c", text], **more}]}


def test_a_pod_on_each_node(space: Workspace):
    """The first article's example, as it is printed there."""
    assert space.kubectl("apply", "-f", "-", stdin=DEMO) == "broadcastjob.apps.kruise.io/bcj-demo created\n"
    reached(space, "bcj-demo", phase="completed", desired=3, active=0, succeeded=3, failed=0)
    check_table(space, "bcj-demo", 3)
    space.until(lambda: all(condition(pod, "KruisePodReady") for pod in pods_of(space, "bcj-demo")))
    check_pods(space, "bcj-demo", 3)
    for name in space.pods:
        assert space.kubectl("logs", name).split() == list("987654321")


def test_a_container_that_fails(space: Workspace, running: Running):
    """Under Continue all nodes try; the reason is reported."""
    space.apply(broadcastjob(pod=script("echo no such disk; exit 3"), failurePolicy={"type": "Continue"}))
    status = reached(space, phase="completed", desired=3, active=0, succeeded=0, failed=3)
    assert status["conditions"][0]["message"] == "Job completed, 0 pods succeeded, 3 pods failed"
    assert {pod["status"]["phase"] for pod in pods_of(space)} == {"Failed"}
    assert "exit code 3" in Verbs(space, running.fleet).run("explain", "bcj", NAME)


def test_restarts_within_a_limit(space: Workspace):
    """Row 32: a program that succeeds the second time is no failure, and its pod is left alone."""
    once = script(
        "test -e /notes/tried || { touch /notes/tried; exit 1; }",
        volumeMounts=[{"name": "notes", "mountPath": "/notes"}],
    )
    body = once | {"restartPolicy": "OnFailure", "volumes": [{"name": "notes", "emptyDir": {}}]}
    space.apply(broadcastjob(pod=body, failurePolicy={"type": "FailFast", "restartLimit": 1}))
    reached(space, phase="completed", succeeded=3, failed=0)
    assert {restarts(pod) for pod in pods_of(space)} == {1}


def test_a_cordoned_node(space: Workspace):
    """Rows 7 to 9."""
    kubectl = space.cluster.kubectl
    kubectl("cordon", "real-0")
    space.apply(broadcastjob(pod={"terminationGracePeriodSeconds": 1}))
    assert [node_of(pod) for pod in begun(space, 2)] == NODES[1:]
    kubectl("uncordon", "real-0")
    assert [node_of(pod) for pod in begun(space, 3)] == NODES
    kubectl("cordon", "real-2")
    space.until(lambda: [node_of(pod) for pod in pods_of(space) if not terminating(pod)] in (NODES[:2], NODES[1::-1]))
    reached(space, desired=2, active=2, failed=0)
    kubectl("uncordon", "real-2")


def test_ephemeral_containers_and_their_ends(dumps: Workspace):
    """Four jobs in the same two pods: one ends well, one does not, one has no such program, one no such image."""
    ephemeral.started(dumps, "p1", "p2", node="real-0")
    good = ephemeral.container("good", "sh", "-c", "ls /proc", targetContainerName="web")
    kinds = {
        "good": good,
        "bad": ephemeral.container("bad", "sh", "-c", "exit 1"),
        "absent": ephemeral.container("absent", "/no/such/program"),
        "unpulled": ephemeral.container("unpulled", image="nobody.example/nothing:1"),
    }
    for name, made in kinds.items():
        dumps.apply(ephemeral.ephemeraljob(name, containers=[made], parallelism=2))
    ephemeral.reached(dumps, "good", phase="Succeeded", match=2, succeeded=2)
    for name in ("bad", "absent"):
        ephemeral.reached(dumps, name, phase="Failed", match=2, failed=2)
    ephemeral.reached(dumps, "unpulled", phase="Waiting", match=2, waiting=2)
    dumps.patch({"spec": {"activeDeadlineSeconds": 1}}, "unpulled")
    ephemeral.reached(dumps, "unpulled", phase="Failed", waiting=2)
    assert "self" in dumps.kubectl("logs", "p1", "-c", "good").split()
    assert {restarts(pod) for pod in dumps.pods.values()} == {0}


def test_an_image_update_leaves_ephemeral_containers_alone(dumps: Workspace, place: Place):
    """Row 24."""
    sets = place.within(dumps.name, CLONE_SET)
    sets.apply(
        cloneset(
            1,
            template={"spec": {"terminationGracePeriodSeconds": 1}},
            strategy={"podUpdatePolicy": "InPlaceIfPossible"},
        )
    )
    sets.settled(readyReplicas=1)
    (name,) = sets.pods
    sleeper = ephemeral.container("dump", "sleep", "3600")
    dumps.apply(ephemeral.ephemeraljob(containers=[sleeper], selector={"matchLabels": {"app": "sample"}}))
    ephemeral.reached(dumps, phase="Running", running=1)
    (before,) = dumps.pod(name)["status"]["ephemeralContainerStatuses"]
    sets.set_image("nginx:mainline")
    sets.settled(updatedReadyReplicas=1, readyReplicas=1)
    sets.until(lambda: restarts(sets.pod(name)) == 1 and is_ready(sets.pod(name)))
    (after,) = dumps.pod(name)["status"]["ephemeralContainerStatuses"]
    assert (after["containerID"], after["state"]) == (before["containerID"], before["state"])
    ephemeral.reached(dumps, phase="Running", running=1)


def test_built_in_jobs_by_a_schedule(space: Workspace, place: Place):
    """Real Jobs, which end and leave the status."""
    space = place.within(space.name, ADVANCED_CRON_JOB)
    template = {"jobTemplate": {"spec": {"template": {"spec": script("date") | {"restartPolicy": "Never"}}}}}
    space.apply(cron.cronjob(template, "@every 2s"))
    cron.begun(space, 2)
    cron.stop(space)
    space.until(lambda: not cron.active(space) and all(one["status"].get("succeeded") for one in space.objects("Job")))
    assert len(set(cron.ever(space))) == len(cron.ever(space)) >= 2


def test_a_deadline(slow: Slow):
    """The first article's ten seconds."""
    space = slow.late
    status = reached(space, "late", phase="failed", desired=3, active=0, succeeded=0, failed=3)
    assert status["conditions"][0]["message"].endswith("was active longer than specified deadline")
    took = moment(status["completionTime"]) - moment(status["startTime"])
    assert 10 <= took.total_seconds() < 20
    space.until(lambda: not space.pods)


def test_one_at_a_time_and_gone_after_its_time(slow: Slow):
    """The second article's example: what it computes is there for half a minute."""
    space = slow.short_lived
    space.until(lambda: not space.clone("broadcastjob-ttl") and not space.pods, 90)
    last = [event for event in space.history(kind="BroadcastJob") if event.type == "DELETED"][-1].object
    assert (last["status"]["phase"], last["status"]["succeeded"]) == ("completed", 3)
    assert {node_of(event.object) for event in space.history() if event.type == "ADDED"} == set(NODES)
    for pods in space.moments():
        assert sum(map(is_active, pods.values())) <= 1
    kept = datetime.now(UTC) - moment(last["status"]["completionTime"])
    assert kept.total_seconds() >= 30


def test_a_job_every_minute(slow: Slow):
    """The first article's example and its tables."""
    space = slow.scheduled
    space.until(lambda: bool(finished(space)), 90)
    header, line = space.kubectl("get", "acj").splitlines()
    assert header.split() == ["NAME", "SCHEDULE", "TYPE", "LASTSCHEDULETIME", "AGE"]
    assert line.split()[:7] == ["acj-test", "*/1", "*", "*", "*", "*", "BroadcastJob"]
    assert len(line.split()) == 9
    (run, *_) = finished(space)
    name = run["metadata"]["name"]
    assert moment(run["metadata"]["annotations"]["apps.kruise.io/scheduled-at"]).timestamp() % 60 == 0
    assert name == f"acj-test-{cron.due(run).timestamp():.0f}"
    pods = [pod for pod in columns(space, "po") if pod["NAME"].startswith(f"{name}-")]
    assert {(pod["READY"], pod["STATUS"]) for pod in pods} == {("0/1", "Completed")}
    assert run["spec"]["completionPolicy"] == {"type": "Always", "ttlSecondsAfterFinished": 30}


def finished(space: Workspace) -> list[Json]:
    """Return the existing runs whose pods have finished on all nodes."""
    return [one for one in space.objects("BroadcastJob") if one.get("status", {}).get("succeeded") == len(NODES)]
