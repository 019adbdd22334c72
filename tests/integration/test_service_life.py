"""Services start and end: without their CRD, switched off, stopped; and objects that they cannot decode."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from flotilla_cli.local import is_alive
from flotilla_common.api.keys import RUNTIME_CONTAINERS_META
from flotilla_common.bus import subjects
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.subjects import WHY_STREAM
from flotilla_common.clock import SystemClock
from flotilla_common.node.reports import PODS, Answer, PodReport
from flotilla_dev.cluster.processes import send
from tests.support.broker import environment, people
from tests.support.cluster import Cluster, control_plane, eventually
from tests.support.fleet import Fleet, Member, fleet, install

pytestmark = pytest.mark.timeout(300)  # a dozen starts of Python processes, seconds each on a loaded machine

CRD = "clonesets.apps.kruise.io"


def clone_set(name: str, replicas: Any = 2, **spec: Any) -> str:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "m", "image": "nginx:alpine"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    body = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "metadata": {"name": name}, "spec": spec}
    return json.dumps(body)


def ready_replicas(cluster: Cluster, name: str) -> int:
    return cluster.read("clone", name).get("status", {}).get("readyReplicas", 0)


def log_lines(member: Member) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(member.process.log).read_text(encoding="utf-8").splitlines()]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    async with control_plane(tmp_path_factory.mktemp("plane")) as cluster, fleet(cluster, services=()) as running:
        yield running


@pytest.mark.asyncio(loop_scope="module")
async def test_a_missing_crd_is_waited_for(flotilla: Fleet):
    cluster = flotilla.cluster
    cluster.kubectl("delete", "crd", CRD)
    member = await flotilla.start("cloneset", wait=False)
    await flotilla.start("watcher", wait=False)
    await eventually(lambda: f"waiting for CRD {CRD}" in member.why_not_ready())
    before = member.cpu_seconds()
    await SystemClock().sleep(3)
    assert is_alive(member.process)
    assert member.cpu_seconds() - before < 0.3  # it waits, and does not spin

    await asyncio.to_thread(install, cluster, flotilla.webhook_url)
    await flotilla.ready("cloneset")
    await flotilla.start("webhook")
    cluster.apply(clone_set("first"))
    await eventually(lambda: ready_replicas(cluster, "first") == 2)
    waits = [line for line in log_lines(member) if line["event"] == "not installed"]
    assert len(waits) == 1


@pytest.mark.asyncio(loop_scope="module")
async def test_a_service_told_to_stop_hands_over_at_once(flotilla: Fleet):
    cluster = flotilla.cluster
    first = flotilla.members["cloneset"]
    flags = ["--log-level=debug"]
    second = await flotilla.start("cloneset", replica="standby", flags=flags)
    leader = "kruise_manager_is_leader"
    assert (first.metric(leader), second.metric(leader)) == (1.0, 0.0)
    cluster.apply(clone_set("handed", replicas=60))
    await eventually(lambda: len(cluster.read("pods", "-l", "app=handed")["items"]) > 5)

    clock = SystemClock()
    os.kill(first.process.pid, signal.SIGTERM)
    told = clock.monotonic()
    await eventually(lambda: not is_alive(first.process))
    assert clock.monotonic() - told < 10
    del flotilla.members["cloneset"]
    await eventually(lambda: second.metric(leader) == 1.0)
    assert clock.monotonic() - told < 14  # a retry period, a LIST, and our own polling; not the 15 s of the lease
    await eventually(lambda: ready_replicas(cluster, "handed") == 60)
    assert len(cluster.read("pods", "-l", "app=handed")["items"]) == 60

    last = log_lines(first)[-1]
    assert last["event"] == "stopped"
    lines = log_lines(second)
    assert all(line["service"] == "cloneset" and line["replica"] for line in lines)
    planned = [line for line in lines if line["event"] == "planned"]
    assert planned
    assert {line["object"] for line in planned} >= {"default/handed"}
    assert all(line["trace"] for line in planned)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_the_schema_lets_in_can_be_read(flotilla: Fleet):
    """Past the webhook, too."""
    cluster = flotilla.cluster
    flotilla.kill("webhook")
    cluster.kubectl("delete", "mutatingwebhookconfiguration", "kruise-mutating-webhook-configuration")
    cluster.kubectl("delete", "validatingwebhookconfiguration", "kruise-validating-webhook-configuration")
    odd = {
        "float-replicas": clone_set("float-replicas").replace('"replicas": 2', '"replicas": 2.0'),
        "null-members": clone_set("null-members", updateStrategy=None, lifecycle=None, volumeClaimTemplates=None),
        "number-as-text": clone_set("number-as-text", updateStrategy={"rollingUpdate": {"partition": "12"}}),
        "null-items": clone_set("null-items", scaleStrategy={"podsToDelete": None}),
    }
    for manifest in odd.values():
        cluster.create(manifest)
    for name in odd:
        await eventually(lambda name=name: ready_replicas(cluster, name) == 2)
    huge = clone_set("huge", updateStrategy={"rollingUpdate": {"partition": 10**30}})
    with pytest.raises(AssertionError, match="must be of type integer"):
        cluster.create(huge)


@pytest.mark.asyncio(loop_scope="module")
async def test_an_object_that_cannot_be_read_is_reported_and_stops_nobody(flotilla: Fleet):
    """A time in the year 0 passes the schema, and Python has no such year."""
    cluster = flotilla.cluster
    set_condition_time(cluster, "first", "0000-01-01T00:00:00Z")
    await eventually(lambda: "$.status.conditions[0].lastTransitionTime" in described(cluster, "first"))
    assert re.search(r"Warning +Undecodable +\S+ .* cloneset-controller +nothing is done", described(cluster, "first"))
    undecodable = 'flotilla_mirror_undecodable_objects{resource="apps_kruise_io.clonesets"} 1.0'
    assert undecodable in flotilla.members["cloneset-standby"].metrics_text()
    explained = await asyncio.to_thread(explain, flotilla, "first")
    assert [reason["code"] for reason in explained["reasons"]] == ["Undecodable"]

    cluster.kubectl("scale", "clone", "first", "--replicas=1")
    cluster.create(clone_set("good"))
    await eventually(lambda: ready_replicas(cluster, "good") == 2)
    assert len(cluster.read("pods", "-l", "app=first")["items"]) == 2  # nothing is done for it
    set_condition_time(cluster, "first", "2026-01-01T00:00:00Z")
    await eventually(lambda: ready_replicas(cluster, "first") == 1)


def set_condition_time(cluster: Cluster, name: str, time: str) -> None:
    condition = {"type": "Odd", "status": "True", "lastTransitionTime": time}
    body = json.dumps({"status": {"conditions": [condition]}})
    cluster.kubectl("patch", "clone", name, "--subresource=status", "--type=merge", "-p", body)


def described(cluster: Cluster, name: str) -> str:
    """Return the events part of `kubectl describe`."""
    return cluster.kubectl("describe", "clone", name).partition("Events:")[2]


def explain(flotilla: Fleet, name: str) -> dict[str, Any]:
    command = [
        sys.executable,
        "-m",
        "flotilla_cli",
        "explain",
        "clone",
        name,
        f"--nats={flotilla.nats.url}",
        "-o",
        "json",
    ]
    env = environment(flotilla.nats)
    return json.loads(subprocess.run(command, capture_output=True, text=True, timeout=30, check=True, env=env).stdout)


@pytest.mark.asyncio(loop_scope="module")
async def test_controllers_of_kinds_that_are_not_named_stay_off(flotilla: Fleet):
    cluster = flotilla.cluster
    flotilla.kill("cloneset-standby")
    member = await flotilla.start("cloneset", flags=["--custom-resource-enable= DaemonSet , SidecarSet"])
    assert "[+]cloneset-controller off: CloneSet is not in CUSTOM_RESOURCE_ENABLE" in member.why_not_ready()
    assert "controller is disabled" in [line["event"] for line in log_lines(member)]
    cluster.create(clone_set("ignored"))
    await SystemClock().sleep(2)
    assert cluster.read("pods", "-l", "app=ignored")["items"] == []
    flotilla.kill("cloneset")
    await flotilla.start("cloneset", flags=["--custom-resource-enable=DaemonSet, CloneSet"])
    await eventually(lambda: ready_replicas(cluster, "ignored") == 2)


@pytest.mark.asyncio(loop_scope="module")
async def test_reports_on_pods_are_served_where_no_kind_of_node_agents_is_installed(flotilla: Fleet):
    cluster = flotilla.cluster
    for plural in ("nodeimages", "imagepulljobs", "imagelistpulljobs", "containerrecreaterequests"):
        cluster.kubectl("delete", "crd", f"{plural}.apps.kruise.io")
    await flotilla.start("jobs", flags=["--custom-resource-enable=CloneSet"])
    cluster.apply(clone_set("reported", replicas=1))
    await eventually(lambda: ready_replicas(cluster, "reported") == 1)
    [pod] = cluster.read("pods", "-l", "app=reported")["items"]
    meta = '{"containers":[{"name":"m"}]}'
    answer = await report(flotilla, pod, PodReport(uid=pod["metadata"]["uid"], runtime_containers_meta=meta))
    assert answer.accepted, answer
    written = cluster.read("pod", pod["metadata"]["name"])
    assert written["metadata"]["annotations"][RUNTIME_CONTAINERS_META] == meta
    flotilla.kill("jobs")


async def report(flotilla: Fleet, pod: dict[str, Any], body: PodReport) -> Answer:
    """Report as the agent of the pod's node; return the answer."""
    node, meta = pod["spec"]["nodeName"], pod["metadata"]
    inbox, subject = subjects.node_inbox(node), subjects.report(node, PODS, meta["namespace"], meta["name"])
    bus = NatsBus(people(flotilla.nats), name=node, clock=SystemClock(), inbox_prefix=inbox)
    try:
        await bus.ensure_stream(WHY_STREAM)  # returns when it is connected
        return msgspec.json.decode(await bus.request(subject, msgspec.json.encode(body), 6.0), type=Answer)
    finally:
        await bus.close()


@pytest.mark.asyncio(loop_scope="module")
async def test_a_crd_that_goes_and_comes_back_is_served_again(flotilla: Fleet):
    cluster = flotilla.cluster
    if "cloneset" not in flotilla.members:  # also when run alone
        for service in ("watcher", "cloneset"):
            await flotilla.start(service)
    cluster.kubectl("delete", "crd", CRD)
    watcher = flotilla.members["watcher"]
    await eventually(lambda: f"[-]apps_kruise_io.clonesets waiting for CRD {CRD}" in watcher.why_not_ready())
    await asyncio.to_thread(install, cluster, flotilla.webhook_url)
    cluster.kubectl("delete", "mutatingwebhookconfiguration", "kruise-mutating-webhook-configuration")
    cluster.kubectl("delete", "validatingwebhookconfiguration", "kruise-validating-webhook-configuration")
    cluster.create(clone_set("again"))
    await eventually(lambda: ready_replicas(cluster, "again") == 2)


@pytest.mark.asyncio(loop_scope="module")
async def test_services_end_in_time_while_the_apiserver_hangs(flotilla: Fleet):
    cluster, clock = flotilla.cluster, SystemClock()
    members = [flotilla.members[name] for name in ("watcher", "cloneset")]
    cluster.create(clone_set("hanging", replicas=50))
    apiserver = cluster.plane.processes.get("kube-apiserver")
    assert apiserver is not None
    send(apiserver, signal.SIGSTOP)
    try:
        told = clock.monotonic()
        for member in members:
            os.kill(member.process.pid, signal.SIGTERM)
        await eventually(lambda: not any(is_alive(member.process) for member in members))
        assert clock.monotonic() - told < 30  # then Kubernetes would kill them
    finally:
        send(apiserver, signal.SIGCONT)
    assert [log_lines(member)[-1]["event"] for member in members] == ["stopped", "stopped"]
    for name in ("watcher", "cloneset"):
        del flotilla.members[name]
        await flotilla.start(name)
    await eventually(lambda: ready_replicas(cluster, "hanging") == 50)
