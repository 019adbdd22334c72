"""Flotilla takes over from OpenKruise in the middle of rollouts, and hands back.

This is OpenKruise 1.9.0, which stores CloneSets and others in v1alpha1: Flotilla reads them through its own conversion,
and converts what it wrote before OpenKruise comes back.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from flotilla_common.api.kinds.nodepodprobe.types import NodePodProbeStatus
from flotilla_common.api.resources import CONFIG_MAP, POD, REVISION
from flotilla_common.node.reports import NodePodProbeReport
from tests.support import broadcast, cron, midway, openkruise
from tests.support.cluster import Cluster, control_plane, eventually
from tests.support.fleet import Fleet, fleet
from tests.support.probe_reports import report
from tests.support.recorder import Recorder
from tests.support.stateful import first_seen, serving
from tests.support.workspace import PATIENCE, Workspace, condition, image, is_ready, restarts, revision_of, state
from tests.testkit.documents import Json

GOLDEN = Path(__file__).parent / "golden"
SERVICES = ("watcher", "cloneset", "statefulset", "daemonset", "sidecar", "jobs", "policy", "topology", "webhook")
GATES = "CloneSetShortHash=true,SidecarSetPatchPodMetadataDefaultsAllowed=true"
PLANNED = {"cloneset": 6, "statefulset": 5, "daemonset": 1, "sidecar": 2, "jobs": 16, "policy": 5, "topology": 3}
"""Number of objects that each service finds."""
FLAGS = (f"--feature-gates={GATES}", "--lease-duration=5s", "--lease-retry-period=1s")
"""The gates were on in the OpenKruise that made the objects; leases of services that are killed shall run out soon."""
MANAGER, DAEMON, ROLE = "deploy/kruise-controller-manager", "ds/kruise-daemon", "clusterrole/kruise-manager-role"
CONFIGURATIONS = (
    "mutatingwebhookconfiguration/kruise-mutating-webhook-configuration",
    "validatingwebhookconfiguration/kruise-validating-webhook-configuration",
)
COUNTERS = ("deployment.kubernetes.io/", "deprecated.daemonset.")
SYSTEM = ("-n", openkruise.SYSTEM)
HELD = {"clone": ("76df79d685", "54465bc649"), "asts": ("asts-96dcd5984", "asts-558b4c689b")}
"""Sets that are held by their partition, by name: how pods call the current revision and the update one."""
DAEMONS_UPDATED = "5649fd9f5b"
"""Newest revision of DaemonSet `ads`, as labelled on pods: two of three have it."""
UNDERWAY = (midway.CLONE, midway.ASTS)
COPY, COPIED_TO = "shared-config", ("golden", "golden-b")
"""The object that ResourceDistribution `rd` distributes, and its namespaces."""
OLD_PROXY, NEW_PROXY = "nginx:1.20", "nginx:1.21"
"""Images of the sidecar that SidecarSet `side` has given the pods of CloneSet `meshed`: two have the old one."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cluster]:
    async with control_plane(tmp_path_factory.mktemp("plane"), nodes=0) as running:
        await openkruise.leave(running, GOLDEN, released=True)
        yield running


def flotilla(cluster: Cluster, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flotilla_cli", *words, "--kubeconfig", str(cluster.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def adopt(cluster: Cluster, *flags: str) -> subprocess.CompletedProcess[str]:
    return flotilla(cluster, "adopt", *flags)


def essence(document: Json) -> Json:
    """Return the parts of an object that express a user's intent."""
    meta = document["metadata"]
    kept = {field: meta.get(field) for field in ("name", "labels")}
    annotations = {key: value for key, value in meta.get("annotations", {}).items() if not key.startswith(COUNTERS)}
    rest = {key: value for key, value in document.items() if key not in ("metadata", "status")}
    return rest | kept | {"annotations": annotations}


def installation(cluster: Cluster) -> dict[str, Json]:
    """Return OpenKruise's objects."""
    names = [*CONFIGURATIONS, ROLE, *cluster.kubectl("get", "crd", "-o", "name").split()]
    found = {name: essence(cluster.read(name)) for name in names}
    return found | {name: essence(cluster.read(name, *SYSTEM)) for name in (MANAGER, DAEMON)}


def objects(cluster: Cluster) -> dict[str, Json]:
    """Return all objects of OpenKruise's kinds that have settled, as they are stored."""
    found: dict[str, Json] = {}
    for kind in openkruise.KINDS:
        where = openkruise.resource(kind, released=True)
        for item in cluster.read(f"{where.plural}.{where.version}.{where.group}", "-A")["items"]:
            if item["metadata"].get("namespace") == midway.SPACE:
                continue
            for field in ("resourceVersion", "generation"):
                item["metadata"].pop(field, None)
            found[f"{kind} {item['metadata']['name']}"] = item
    return found


def refusal(cluster: Cluster, *arguments: str) -> str:
    with pytest.raises(AssertionError) as refused:
        cluster.kubectl(*arguments)
    return str(refused.value)


def lines(space: Workspace, since: int, kind: str = "Pod") -> list[str]:
    """Return the events of objects of a kind since a mark."""
    return [f"{event.type} {event.object['metadata']['name']}" for event in space.history(since, kind)]


async def worked(services: Fleet) -> None:
    """Wait until every object has been planned."""
    for name, objects in PLANNED.items():
        member = services.members[name]
        await eventually(lambda: member.metric("controller_runtime_reconcile_total") >= objects)  # noqa: B023
        await eventually(lambda: member.metric("controller_runtime_active_workers") == 0)  # noqa: B023


def stored(cluster: Cluster) -> list[str]:
    """Return the versions in which CloneSets may be stored."""
    return cluster.read("crd", "clonesets.apps.kruise.io")["status"]["storedVersions"]


def take(cluster: Cluster) -> None:
    """Take the cluster over, as a user does."""
    openkruise.lead(cluster, seconds=5)
    assert "run flotilla adopt first" in flotilla(cluster, "install").stderr
    planned = adopt(cluster, "--dry-run")
    for rollout in ("CloneSet golden/clone", "StatefulSet golden/asts"):
        assert f"{rollout}: 2 of 4 pods updated, partition 2" in planned.stdout, planned.stderr
    assert "DaemonSet golden/ads: 2 of 3 nodes updated, partition 1" in planned.stdout
    assert "SidecarSet side: 1 of 3 pods have the newest sidecars, partition 2" in planned.stdout
    assert "scale Deployment kruise-controller-manager in kruise-system from 2 to 0" in planned.stdout, planned.stderr
    assert cluster.read(MANAGER, *SYSTEM)["spec"]["replicas"] == 2
    done = adopt(cluster)
    assert done.returncode == 0, done.stderr + done.stdout
    again = adopt(cluster)
    assert again.stdout.endswith("nothing to do\n"), again.stdout + again.stderr


def check_standstill(cluster: Cluster) -> None:
    """Check that OpenKruise is down, and cannot be started by accident."""
    assert not cluster.read("pods", *SYSTEM)["items"]
    assert "its manager stays at 0" in refusal(cluster, "scale", *SYSTEM, MANAGER, "--replicas=1")
    selector = '[{"op":"remove","path":"/spec/template/spec/nodeSelector"}]'
    assert "off the nodes" in refusal(cluster, "patch", *SYSTEM, DAEMON, "--type=json", "-p", selector)
    holder = ("--type=merge", "-p", '{"spec":{"holderIdentity":"manager-1"}}')
    assert "no other holder may take it" in refusal(cluster, "patch", *SYSTEM, "lease/kruise-manager", *holder)


def check_objects(before: dict[str, Json], now: dict[str, Json]) -> None:
    """Check that all objects are as they were stored.

    Only the label of the list job is ours: the original's hash cannot be computed, and the jobs that were made from it
    stay.
    """
    jobs = "ImageListPullJob pulls"
    assert now[jobs]["metadata"]["labels"].keys() == {"controller-revision-hash"}
    before[jobs]["metadata"]["labels"] = now[jobs]["metadata"]["labels"]
    assert {name: now.get(name) for name in before} == before
    assert now.keys() == before.keys()


@pytest.mark.timeout(600)
async def test_take_over_and_back(cluster: Cluster):
    before, found = installation(cluster), objects(cluster)
    rights = cluster.read(ROLE)["rules"]
    with Recorder(cluster.rest, POD, REVISION, CONFIG_MAP) as recorder:
        assert recorder.until(recorder.begun, PATIENCE)
        space, underway = (Workspace(cluster, recorder, name) for name in ("golden", midway.SPACE))
        began, unfinished = space.now(), underway.pods
        held = sidecars_and_copies(cluster)
        take(cluster)
        check_standstill(cluster)
        assert cluster.read(ROLE)["rules"] == [rights[-1]]

        async with fleet(cluster, SERVICES, FLAGS) as services:
            await worked(services)
            space.catch_up()
            assert lines(space, began) == []
            assert lines(space, began, "ControllerRevision") == []
            assert sidecars_and_copies(cluster) == held
            check_objects(found, objects(cluster))
            for workload in UNDERWAY:
                went_on(underway, workload, unfinished)
            check_nothing_was_begun(underway, began)
            await rolled_out(space, "clone", "clone")
            await rolled_out(space, "asts", "asts")
            came_back(space, "asts-2")
            rolled_one_by_one(space)
            rolled_by_node(space)
            sidecars_went_on(space)
            injected(space)
            rolled_zone_by_zone(space)
            kept_its_place(space)
            await followed(cluster)
            ran_once_more(space)
            await asyncio.to_thread(probes_went_on, space, services)
            for workload in UNDERWAY:
                await unhooked(underway, workload)
            await services.healthy()
            assert stored(cluster) == ["v1alpha1", "v1beta1"]
            half = adopt(cluster, "--undo")
            assert "this is the first half" in half.stdout, half.stderr
            assert stored(cluster) == ["v1alpha1"]
            assert "still run here" in adopt(cluster, "--undo", "--dry-run").stderr

    back = adopt(cluster, "--undo")
    assert back.returncode == 0, back.stderr + back.stdout
    assert installation(cluster) == before
    assert cluster.read(MANAGER, *SYSTEM)["status"]["availableReplicas"] == 2
    assert "not taken over" in adopt(cluster, "--undo").stderr
    clone = cluster.read("clonesets.v1alpha1.apps.kruise.io", "clone", "-n", "golden")
    assert clone["spec"]["updateStrategy"]["partition"] == 0
    assert clone["status"]["updatedReadyReplicas"] == 4
    for version in ("v1alpha1", "v1beta1"):
        assert len(cluster.read(f"broadcastjobs.{version}.apps.kruise.io", "-n", "golden")["items"]) == 4


def went_on(space: Workspace, workload: midway.Midway, before: Mapping[str, Json]) -> None:
    """Wait until ongoing operations proceed by themselves.

    One pod becomes ready, and the grace period of another ends; pods in hooks stay in them.
    """
    names = (workload.done, workload.grace)
    space.until(lambda: all(state(space.pod(name)) == "Updated" and is_ready(space.pod(name)) for name in names))
    assert {image(space.pod(name)) for name in names} == {midway.IMAGE}
    assert [restarts(space.pod(name)) - restarts(before[name]) for name in names] == [0, 1]
    assert state(space.pod(workload.deleted)) == "PreparingDelete"
    assert state(space.pod(workload.held)) == "PreparingUpdate"


def check_nothing_was_begun(space: Workspace, since: int) -> None:
    """Check that only the pods in the middle of an update were touched."""
    names = {name for workload in UNDERWAY for name in (workload.done, workload.grace)}
    assert {line.split()[0] for line in lines(space, since)} == {"MODIFIED"}
    assert {line.split()[1] for line in lines(space, since)} == names


async def unhooked(space: Workspace, workload: midway.Midway) -> None:
    """Release the hooks as users do: the update starts, and the pod marked for deletion is replaced."""
    before, deleted = space.pod(workload.held), space.pod(workload.deleted)
    space.label(workload.held, "drain-")
    space.until(lambda: state(space.pod(workload.held)) == "Updated")
    after = space.pod(workload.held)
    assert (image(after), restarts(after)) == (midway.IMAGE, restarts(before) + 1)
    space.label(workload.deleted, "guard-")
    await eventually(lambda: served(space, workload.name, workload.name, updatedReadyReplicas=4, replicas=4))
    assert deleted["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in space.pods.values()}
    assert {workload.done, workload.grace, workload.held} < space.pods.keys()


def probes_went_on(space: Workspace, services: Fleet) -> None:
    """Check that an agent's report of a probe written by OpenKruise reaches the pod."""
    found = msgspec.convert(space.cluster.read("nodepodprobe", "node1")["status"], NodePodProbeStatus)
    first, *others = found.pod_probe_statuses
    assert space.pod(first.name)["metadata"]["labels"]["idle"] == "true"
    failed = [msgspec.structs.replace(state, state="Failed", message="busy") for state in first.probe_states]
    said = [msgspec.structs.replace(first, probe_states=failed), *others]
    uid = space.cluster.read("nodepodprobe", "node1")["metadata"]["uid"]
    body = NodePodProbeReport(uid=uid, status=NodePodProbeStatus(pod_probe_statuses=said))
    assert report(services.nats, "node1", body).accepted
    space.until(lambda: "idle" not in space.pod(first.name)["metadata"]["labels"])
    shown = condition(space.pod(first.name), "example.com/idle")
    assert (shown["status"], shown["message"]) == ("False", "busy")


def sidecars_and_copies(cluster: Cluster) -> dict[str, str]:
    """Return the versions of objects that must not be written: SidecarSet, revisions, ResourceDistribution, copies."""
    objects = [cluster.read("sidecarset", "side"), cluster.read("resourcedistribution", "rd")]
    objects += cluster.read("controllerrevisions", *SYSTEM, "-l", "kruise.io/sidecarset-name=side")["items"]
    objects += [cluster.read("configmap", COPY, "-n", namespace) for namespace in COPIED_TO]
    versions = {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in objects}
    assert len(versions) == 6
    return versions


def proxy(pod: Json) -> tuple[str, int]:
    """Return image and restarts of the sidecar."""
    [status] = (one for one in pod["status"]["containerStatuses"] if one["name"] == "proxy")
    [container] = (one for one in pod["spec"]["containers"] if one["name"] == "proxy")
    return container["image"], status["restartCount"]


def meshed(pods: Mapping[str, Json]) -> dict[str, Json]:
    """Return the pods that have the sidecar."""
    return {name: pod for name, pod in pods.items() if name.startswith("meshed-")}


def rolled_by_node(space: Workspace) -> None:
    """Update the DaemonSet's last node in place: its pods are recognised by OpenKruise's revisions."""
    before = {name: pod for name, pod in space.pods.items() if name.startswith("ads-")}
    [left] = (name for name, pod in before.items() if revision_of(pod) != DAEMONS_UPDATED)
    assert len(before) == 3
    mark = space.now()
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}, "ads", "ads")
    space.until(lambda: served(space, "ads", "ads", updatedNumberScheduled=3, numberAvailable=3))
    space.catch_up()
    assert {line.split()[1] for line in lines(space, mark)} == {left}
    assert lines(space, mark, "ControllerRevision") == []
    after = space.pod(left)
    assert (revision_of(after), image(after)) == (DAEMONS_UPDATED, "nginx:1.22.0")
    assert restarts(after) == restarts(before[left]) + 1


def sidecars_went_on(space: Workspace) -> None:
    """Continue the partitioned sidecar update with the remaining pods, one by one: only the sidecar restarts."""
    before = meshed(space.pods)
    left = {name for name, pod in before.items() if proxy(pod)[0] == OLD_PROXY}
    assert (len(before), len(left)) == (3, 2)
    mark = space.now()
    space.cluster.kubectl(
        "patch", "sidecarset", "side", "--type=merge", "-p", '{"spec":{"updateStrategy":{"partition":0}}}'
    )
    counts = {"matchedPods": 3, "updatedPods": 3, "readyPods": 3, "updatedReadyPods": 3}
    space.until(lambda: counts.items() <= space.cluster.read("sidecarset", "side")["status"].items())
    space.catch_up()
    after = meshed(space.pods)
    assert after.keys() == before.keys()
    for name, pod in after.items():
        assert proxy(pod) == (NEW_PROXY, proxy(before[name])[1] + (name in left))
        others = [one for one in pod["status"]["containerStatuses"] if one["name"] != "proxy"]
        assert [one["restartCount"] for one in others] == [0] * len(others)
    assert {line.split()[1] for line in lines(space, mark)} == left
    assert min(sum(map(is_ready, meshed(pods).values())) for pods in space.moments(mark)) >= 2


def injected(space: Workspace) -> None:
    """Check that a new pod gets the same sidecars as OpenKruise's pods."""
    before = meshed(space.pods)
    space.scale(4, "meshed")
    space.until(lambda: len(meshed(space.pods)) == 4 and all(map(is_ready, meshed(space.pods).values())))
    [new] = (pod for name, pod in meshed(space.pods).items() if name not in before)
    old = next(iter(before.values()))
    for part in ("containers", "initContainers"):
        assert [one["name"] for one in new["spec"][part]] == [one["name"] for one in old["spec"][part]]
    assert proxy(new)[0] == NEW_PROXY
    assert new["metadata"]["annotations"]["mesh"] == "on"


def rolled_zone_by_zone(space: Workspace) -> None:
    """Roll the UnitedDeployment back to an earlier template of OpenKruise.

    Its workloads stay, and the revision has its old name.
    """
    before = {one["metadata"]["uid"] for one in space.read("clone")["items"]}
    mark = space.now()
    template = {"spec": {"containers": [{"name": "nginx", "image": "nginx:1.21"}]}}
    space.patch({"spec": {"template": {"cloneSetTemplate": {"spec": {"template": template}}}}}, "ud", "ud")
    counts = {"replicas": 5, "readyReplicas": 5, "updatedReplicas": 5, "updatedReadyReplicas": 5}
    space.until(lambda: served(space, "ud", "ud", **counts))
    space.catch_up()
    assert {one["metadata"]["uid"] for one in space.read("clone")["items"]} == before
    assert "MODIFIED ud-79849fd8bc" in lines(space, mark, "ControllerRevision")
    mine = [pod["metadata"]["labels"] for pod in space.pods.values() if pod["metadata"]["labels"].get("app") == "ud"]
    assert [labels["apps.kruise.io/controller-revision-hash"] for labels in mine] == ["ud-79849fd8bc"] * 5
    assert sorted(labels["apps.kruise.io/subset-name"] for labels in mine) == ["a", "a", "b", "b", "b"]


def kept_its_place(space: Workspace) -> None:
    """Delete a pod of the first subset: its place there is free again, in the status that OpenKruise wrote."""
    before = spread(space.pods)
    gone = next(name for name, pod in before.items() if place(pod) == "a")
    space.kubectl("delete", "pod", gone)
    space.until(lambda: len(spread(space.pods)) == 4 and gone not in space.pods)
    space.until(lambda: all(map(is_ready, spread(space.pods).values())))
    [new] = (pod for name, pod in spread(space.pods).items() if name not in before)
    assert (place(new), new["metadata"]["annotations"]["controller.kubernetes.io/pod-deletion-cost"]) == ("a", "200")
    assert sorted(map(place, spread(space.pods).values())) == ["a", "a", "b", "b"]


def spread(pods: Mapping[str, Json]) -> dict[str, Json]:
    """Return the pods of the WorkloadSpread."""
    return {name: pod for name, pod in pods.items() if name.startswith("spread-")}


def place(pod: Json) -> str:
    """Return the pod's subset."""
    return str(json.loads(pod["metadata"]["annotations"]["apps.kruise.io/matched-workloadspread"])["subset"])


def ran_once_more(space: Workspace) -> None:
    """Run the schedule again: OpenKruise's runs are neither repeated nor lost.

    The next run is a new one, and when it has ended, the oldest is deleted because of the history limit.
    """
    before, pods = cron.listed(space, "acj", "bcj"), set(space.pods)
    assert len(before) == 3
    space.patch({"spec": {"schedule": "@every 10s"}}, "acj", "acj")
    space.until(lambda: len(cron.listed(space, "acj", "bcj")) == 4)
    space.patch({"spec": {"schedule": "@yearly"}}, "acj", "acj")
    *known, new = cron.listed(space, "acj", "bcj")
    assert known == before
    broadcast.end(space, broadcast.begun(space, 3, new))
    space.until(lambda: cron.listed(space, "acj", "bcj") == [*before[1:], new])
    space.until(lambda: pods - space.pods.keys() == {name for name in pods if name.startswith(f"{before[0]}-")})
    assert len(space.pods.keys() - pods) == 3


async def followed(cluster: Cluster) -> None:
    """Check that copies created by OpenKruise follow their source, and are restored."""

    def copies() -> list[Json]:
        flags = ("-A", f"--field-selector=metadata.name={COPY}")
        return cluster.read("configmap", *flags)["items"]

    before = {one["metadata"]["namespace"]: one["metadata"]["uid"] for one in copies()}
    cluster.kubectl("patch", "distributor", "rd", "--type=merge", "-p", '{"spec":{"resource":{"data":{"k":"new"}}}}')
    await eventually(lambda: [one["data"] for one in copies()] == [{"k": "new"}] * 2)
    assert {one["metadata"]["namespace"]: one["metadata"]["uid"] for one in copies()} == before
    assert before.keys() == set(COPIED_TO)
    cluster.kubectl("delete", "configmap", COPY, "-n", "golden-b")
    await eventually(lambda: len(copies()) == 2)


def served(space: Workspace, kind: str = "clone", name: str = "clone", **fields: int) -> bool:
    """Report whether the set has these counts, for its present spec."""
    live = space.read(kind, name)
    seen = live["status"]["observedGeneration"] == live["metadata"]["generation"]
    return seen and all(live["status"].get(field, 0) == value for field, value in fields.items())


async def rolled_out(space: Workspace, kind: str, workload: str) -> None:
    """Continue the partitioned rollout with the remaining pods, in place; other pods are untouched."""
    current, update = HELD[workload]
    pods = {name: pod for name, pod in space.pods.items() if name.startswith(f"{workload}-")}
    left = {name for name, pod in pods.items() if revision_of(pod) == current}
    assert len(pods) == 4
    assert len(left) == 2
    mark = space.now()
    space.patch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}}, workload, kind)
    await eventually(lambda: served(space, kind, workload, updatedReadyReplicas=4, updatedAvailableReplicas=4))
    space.catch_up()
    after = {name: space.pod(name) for name in pods}
    assert {revision_of(pod) for pod in after.values()} == {update}
    assert {image(pod) for pod in after.values()} == {"nginx:1.22.0"}
    assert all(is_ready(pod) and state(pod) == "Normal" for pod in after.values())
    assert {name for name, pod in after.items() if restarts(pod) > restarts(pods[name])} == left
    changed = lines(space, mark)
    assert {line.split()[1] for line in changed} == left
    assert {line.split()[0] for line in changed} == {"MODIFIED"}
    assert lines(space, mark, "ControllerRevision") == []


def came_back(space: Workspace, name: str) -> None:
    """Check OpenKruise's PersistentPodState of this pod: deleted by a user, it is recreated on its node."""
    before = space.pod(name)
    space.kubectl("delete", "pod", name)
    space.until(lambda: space.pod(name).get("metadata", before["metadata"])["uid"] != before["metadata"]["uid"])
    space.until(lambda: is_ready(space.pod(name)))
    after = space.pod(name)
    assert after["spec"]["nodeName"] == before["spec"]["nodeName"]
    assert after["metadata"]["annotations"]["kruise.io/injected-persistent-pod-state"] == "asts"
    assert revision_of(after) == revision_of(before)


def rolled_one_by_one(space: Workspace) -> None:
    """Roll the ordered set back to an earlier template of OpenKruise.

    Pods are replaced from the top, one by one, and the revision keeps its name.
    """
    mark = space.now()
    template = {"spec": {"containers": [{"name": "nginx", "image": "nginx:1.21"}]}}
    space.patch({"spec": {"template": template}}, "ordered", "asts")
    space.until(lambda: served(space, "asts", "ordered", updatedReadyReplicas=3, updatedAvailableReplicas=3))
    space.catch_up()
    assert lines(space, mark, "ControllerRevision") == ["MODIFIED ordered-7d4dfdcd44"]
    assert first_seen(space.history(mark), "DELETED") == [2, 1, 0]
    for pods in space.moments(mark):
        assert serving({name: pod for name, pod in pods.items() if name.startswith("ordered-")}) >= 2
    assert {revision_of(space.pod(f"ordered-{number}")) for number in range(3)} == {"ordered-7d4dfdcd44"}
