"""StatefulSets on real containers keep identity, data and order when nodes and services fail (statefulset.md §4)."""

from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from tests.cluster.conftest import Running
from tests.support.stateful import IN_PLACE, first_seen, serving, statefulset
from tests.support.workspace import Workspace, identity, image, is_ready, restarts, terminating
from tests.testkit.documents import Json

PATIENCE = 60  # seconds: containers have a grace period
NEW = "nginx:mainline"
WATCHED = (STATEFUL_SET,)


def started(space: Workspace, replicas: int, **arguments: object) -> dict[str, Json]:
    """Apply a StatefulSet whose containers end at once, and wait until they run; returns the pods."""
    space.apply(mounted(statefulset(replicas, **arguments)))
    space.settled("web", PATIENCE, replicas=replicas, readyReplicas=replicas)
    return dict(space.pods)


def mounted(manifest: Json) -> Json:
    """Return the StatefulSet with the claim `data`, if it has one, at /data."""
    pod = manifest["spec"]["template"]["spec"]
    pod["terminationGracePeriodSeconds"] = 1
    if manifest["spec"].get("volumeClaimTemplates"):
        pod["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return manifest


def run(space: Workspace, pod: str, command: str) -> str:
    """Run a shell command in a pod and return its output."""
    return space.kubectl("exec", pod, "--", "sh", "-c", command).strip()


def service(space: Workspace) -> None:
    """Create the headless Service that gives the pods names."""
    spec = {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]}
    made = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "nginx"}, "spec": spec}
    space.create(made)


def address_of(space: Workspace, pod: str) -> str:
    """Return the address by which web-0 resolves the pod's host name; empty while it has none."""
    answer = run(space, "web-0", f"nslookup {pod}.nginx.{space.name}.svc.cluster.local 2>/dev/null || true")
    return answer.rpartition("Address: ")[2].strip()


def resolves(space: Workspace, pod: str) -> bool:
    return address_of(space, pod) == space.pod(pod)["status"]["podIP"]


def test_in_place_keeps_pod_address_and_data(space: Workspace):
    before = started(space, 3, strategy=IN_PLACE | {"maxUnavailable": 2}, claims=["data"])
    for name in before:
        run(space, name, f"echo {name} >/data/name")
    space.set_image(NEW, "web")
    space.settled("web", PATIENCE, updatedReadyReplicas=3, readyReplicas=3)
    assert {identity(pod) for pod in space.pods.values()} == {identity(pod) for pod in before.values()}
    for name, pod in space.pods.items():
        assert (restarts(pod), image(pod)) == (1, NEW)
        assert run(space, name, "cat /data/name; wget -qO- 127.0.0.1").split() == [name, NEW]


def test_a_recreated_pod_finds_its_name_and_its_data(space: Workspace):
    service(space)
    before = started(space, 2, claims=["data"])
    run(space, "web-1", "echo mine >/data/whose")
    assert run(space, "web-1", "hostname") == "web-1"
    space.until(lambda: resolves(space, "web-1"), PATIENCE)
    space.set_image(NEW, "web")
    space.settled("web", PATIENCE, updatedReadyReplicas=2, readyReplicas=2)
    assert space.pod("web-1")["metadata"]["uid"] != before["web-1"]["metadata"]["uid"]
    assert run(space, "web-1", "cat /data/whose") == "mine"
    space.until(lambda: resolves(space, "web-1"), PATIENCE)


def test_ordered_pods_wait_for_the_readiness_of_real_containers(space: Workspace):
    manifest = statefulset(3, parallel=False)
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["readinessProbe"] = {"exec": {"command": ["test", "-e", "/ready"]}, "periodSeconds": 1}
    space.apply(manifest)
    for number in range(3):
        name = f"web-{number}"
        space.until(lambda name=name: space.pod(name).get("status", {}).get("phase") == "Running", PATIENCE)
        assert f"web-{number + 1}" not in space.pods
        run(space, name, "touch /ready")
    space.settled("web", PATIENCE, readyReplicas=3)
    assert first_seen(space.history(), "ADDED") == [0, 1, 2]


def test_claims_are_kept_or_collected_as_the_policy_says(space: Workspace):
    policy = {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Retain", "whenDeleted": "Retain"}}
    started(space, 2, claims=["data"], **policy)
    run(space, "web-1", "echo kept >/data/word")
    space.scale(1, "web")
    space.settled("web", PATIENCE, replicas=1)
    space.scale(2, "web")
    space.settled("web", PATIENCE, readyReplicas=2)
    assert run(space, "web-1", "cat /data/word") == "kept"
    policy["persistentVolumeClaimRetentionPolicy"]["whenScaled"] = "Delete"
    space.patch({"spec": policy}, "web")
    space.settled("web", PATIENCE, readyReplicas=2)
    space.scale(1, "web")
    space.settled("web", PATIENCE, replicas=1)
    space.until(lambda: [one["metadata"]["name"] for one in space.read("pvc")["items"]] == ["data-web-0"], PATIENCE)
    space.scale(2, "web")
    space.settled("web", PATIENCE, readyReplicas=2)
    assert run(space, "web-1", "cat /data/word 2>/dev/null || echo gone") == "gone"


def test_a_pod_has_its_time_to_end_and_the_next_waits_for_it(space: Workspace):
    """Its preStop hook writes into the volume, which the next pod of its name reads."""
    stop = {"exec": {"command": ["sh", "-c", "sleep 2; echo ended >>/data/log"]}}
    manifest = mounted(statefulset(1, claims=["data"]))
    pod = manifest["spec"]["template"]["spec"] | {"terminationGracePeriodSeconds": 10}
    pod["containers"][0] |= {
        "lifecycle": {"preStop": stop},
        "command": ["sh", "-c", "echo begun >>/data/log; trap 'exit 0' TERM; sleep infinity & wait"],
    }
    manifest["spec"]["template"]["spec"] = pod
    space.apply(manifest)
    space.settled("web", PATIENCE, readyReplicas=1)
    mark = space.now()
    space.set_image(NEW, "web")
    space.settled("web", PATIENCE, updatedReadyReplicas=1, readyReplicas=1)
    assert run(space, "web-0", "cat /data/log").split() == ["begun", "ended", "begun"]
    steps = [event.type for event in space.history(mark) if event.type != "MODIFIED"]
    assert steps == ["DELETED", "ADDED"]


async def test_a_rollout_goes_on_through_kills_and_a_wiped_bus(space: Workspace, running: Running):
    before = started(space, 4, strategy=IN_PLACE | {"maxUnavailable": 1})
    mark = space.now()
    space.set_image(NEW, "web")
    space.until(lambda: any(image(pod) == NEW for pod in space.pods.values()), PATIENCE)
    await running.fleet.restart("statefulset")
    await running.fleet.wipe_bus()
    space.settled("web", PATIENCE, updatedReadyReplicas=4, readyReplicas=4)
    assert {identity(pod) for pod in space.pods.values()} == {identity(pod) for pod in before.values()}
    assert {restarts(pod) for pod in space.pods.values()} == {1}
    assert min(serving(pods) for pods in space.moments(mark)) >= 3


async def test_no_second_pod_of_a_name_while_a_node_is_silent(space: Workspace, running: Running):
    """The node may be cut off and still run the container: only its own word, or a person's, ends the old pod."""
    before = started(space, 2, claims=["data"])
    lost = before["web-1"]
    run(space, "web-1", "echo mine >/data/whose; sync")
    node = lost["spec"]["nodeName"]
    await running.cluster.kill(node)
    space.kubectl("delete", "pod", "web-1", "--wait=false")
    space.scale(3, "web")
    space.until(
        lambda: is_ready(space.pod("web-2")) or space.pod("web-2").get("spec", {}).get("nodeName") == node, PATIENCE
    )
    assert space.pod("web-1")["metadata"]["uid"] == lost["metadata"]["uid"]
    assert terminating(space.pod("web-1"))
    await running.cluster.repair()
    space.settled("web", 120, replicas=3, readyReplicas=3)
    assert space.pod("web-1")["metadata"]["uid"] != lost["metadata"]["uid"]
    assert run(space, "web-1", "cat /data/whose") == "mine"
    names = [one.object["metadata"]["uid"] for one in space.history() if one.object["metadata"]["name"] == "web-1"]
    assert len(dict.fromkeys(names)) == 2
