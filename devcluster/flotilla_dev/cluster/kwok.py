"""Fake nodes that behave like kubelets: kwok with stages of our own.

kwok's built-in pod stage is no kubelet: it sets readiness gates True itself and never notices a new image. Ours reports
what a kubelet would, in as few status patches as possible: one when a pod starts, one per image change, one per change
of readiness.

- `Ready` is True only while every readiness gate's condition is True, and follows them in both directions.
- A changed image restarts the container: new imageID and containerID, restartCount + 1, an event.
- An image with the tag `broken` is never pulled: its container stays unready until the image changes again.
- A pod with the annotation `fake.flotilla.dev/complete` succeeds, as a job's would.
- A pod in deletion is deleted after a short while; finalizers keep it, as always.

Conditions of other writers stay: every patch merges conditions by their type.

Nodes send a rare heartbeat in their status instead of leases: with leases, a kwok that replaces a killed one waits for
them to expire.

A kwok that starts lists pods and nodes at the same time. It skips a pod that it sees before it manages the pod's node,
and does not reconsider it until the pod changes. So each start has a name, which nodes show as their bootID once they
are managed, and then every pod is changed a little (`show_pods`); so is a node that kwok does not manage.
"""

from collections.abc import Callable
from importlib import resources

import msgspec
import yaml

from flotilla_cli.local import ClusterError, write_private
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.plan import Json, PatchType
from flotilla_common.kube.interface import Api
from flotilla_dev.cluster.access import ensure
from flotilla_dev.cluster.components import Places

ANNOTATION, FAKE = "kwok.x-k8s.io/node", "fake"
SELECTOR = f"{ANNOTATION}={FAKE}"
SHOWN = "fake.flotilla.dev/shown"
"""Annotation of pods and nodes: the last start of kwok that they were changed for."""
ADDED_WITHIN = 60.0  # seconds; it takes one
TAKEN_WITHIN = 60.0  # seconds; it takes a tenth of one
SHOW_NODES_EVERY = 5.0  # seconds: kwok reconsiders a node that changes
POLL = 0.05
HEARTBEAT = 60_000  # milliseconds, up to twice that; see NODE_GRACE
ENVIRONMENT = {"GOGC": "400"}
"""kwok's environment: fewer garbage collections.

Real kubelets run on other machines, so fake ones should use little CPU; they keep little memory anyway.
"""
UNUSED = ("osImage", "kernelVersion", "kubeProxyVersion", "machineID", "systemUUID", "bootID")
"""Required fields of a node that nothing here uses."""
WORKERS = 64  # status patches at a time, of all nodes together; with 16 pods waited seconds for their turn

RUNS = '.status.podIP // "" | length > 0 | tostring'
RESTARTS = (
    "[.spec.containers[] as $c | .status.containerStatuses[]? | select(.name == $c.name and .image != $c.image)]"
    " | length > 0 | tostring"
)
UNSEEN = "(.status.observedGeneration // 0) < (.metadata.generation // 0) | tostring"
READINESS_CHANGED = (
    "(([.spec.readinessGates[]?.conditionType]"
    ' - [.status.conditions[]? | select(.status == "True") | .type] | length == 0)'
    ' and ([.spec.containers[] | select(.image | endswith(":broken"))] | length == 0))'
    ' != ([.status.conditions[]? | select(.type == "Ready" and .status == "True")] | length == 1) | tostring'
)
DELETING = '.metadata.deletionTimestamp // "" | length > 0 | tostring'
GRACE_LEFT = ".metadata.deletionGracePeriodSeconds // 0 | tostring"
NODE_TAKEN = (
    '([.status.conditions[]? | select(.type == "Ready" and .status == "True")] | length == 1)'
    ' and .status.nodeInfo.bootID == "%s" | tostring'
)


class Kubelet(msgspec.Struct, frozen=True):
    """The behaviour of a fake kubelet.

    The times are in milliseconds: it takes between `x` and twice `x`, like a fast real one. `events`: it writes events
    for the containers that it restarts; a real one does so for every start and stop.
    """

    start: int = 200
    restart: int = 200
    readiness: int = 10
    stop: int = 100
    complete: int = 1000
    events: bool = True


def command(places: Places, kubelet: Kubelet, boot: str) -> list[str]:
    """Return kwok's command line, and write its configuration. `boot` names this start of it."""
    config = places.state_dir / "kwok.yaml"
    write_private(config, yaml.safe_dump_all(stages(kubelet, boot), sort_keys=False))
    return [
        "kwok",
        f"--kubeconfig={places.kubeconfig('kwok')}",
        f"--config={config}",
        f"--manage-nodes-with-annotation-selector={SELECTOR}",
    ]


def stages(kubelet: Kubelet, boot: str) -> list[Json]:
    """Return kwok's configuration: its options, and the stages of nodes and pods.

    kwok evaluates the expressions of all stages for each version of a pod, one pod after the other, and those of a
    stage in their order: first come those that few pods fulfil.
    """
    taken = NODE_TAKEN % boot
    options = {"podPlayStageParallelism": WORKERS, "nodePlayStageParallelism": 4}
    living = [_is(DELETING, "false"), _isnt(".status.phase", "Succeeded", "Failed")]
    restarted = {
        "type": "Normal",
        "reason": "Killing",
        "message": "Container definition changed, will be restarted",  # kwok cannot name the container
    }
    return [
        {"apiVersion": "config.kwok.x-k8s.io/v1alpha1", "kind": "KwokConfiguration", "options": options},
        _stage("Node", "node-ready", [_is(taken, "false")], 0, _patch("node-ready", f'nodeInfo: {{bootID: "{boot}"}}')),
        _stage("Node", "node-heartbeat", [_is(taken, "true")], HEARTBEAT, _patch("node-heartbeat")),
        _stage("Pod", "pod-start", [_is(RUNS, "false"), *living], kubelet.start, _patch("pod-status")),
        _stage(
            "Pod",
            "pod-restart",
            [_is(RESTARTS, "true"), _is(RUNS, "true"), *living],
            kubelet.restart,
            {**({"event": restarted} if kubelet.events else {}), **_patch("pod-status")},
        ),
        _stage(
            "Pod",
            "pod-readiness",
            [_is(READINESS_CHANGED, "true"), _is(RESTARTS, "false"), _is(RUNS, "true"), *living],
            kubelet.readiness,
            _patch("pod-status"),
        ),
        _stage(
            "Pod",
            "pod-observe",  # of a changed spec that restarts nothing
            [_is(UNSEEN, "true"), _is(READINESS_CHANGED, "false"), _is(RESTARTS, "false"), _is(RUNS, "true"), *living],
            kubelet.readiness,
            _patch("pod-status"),
        ),
        _completion(kubelet),
        _stage("Pod", "pod-stop", [_is(DELETING, "true"), _isnt(GRACE_LEFT, "0")], kubelet.stop, {"delete": True}),
    ]


def _completion(kubelet: Kubelet) -> Json:
    running = [
        {"key": '.metadata.annotations["fake.flotilla.dev/complete"]', "operator": "Exists"},
        _is(".status.phase", "Running"),
        _is(DELETING, "false"),
    ]
    return _stage("Pod", "pod-complete", running, kubelet.complete, _patch("pod-complete"))


def _stage(kind: str, name: str, expressions: list[Json], delay: int, then: Json) -> Json:
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": name},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": kind},
            "selector": {"matchExpressions": expressions},
            "delay": {"durationMilliseconds": delay, "jitterDurationMilliseconds": 2 * delay},
            "next": then,
        },
    }


def _patch(template: str, more: str = "") -> Json:
    text = resources.files("flotilla_dev.cluster").joinpath(f"stages/{template}.tmpl").read_text(encoding="utf-8")
    text += more
    return {"patches": [{"subresource": "status", "root": "status", "type": "strategic", "template": text}]}


def _is(key: str, value: str) -> Json:
    return {"key": key, "operator": "In", "values": [value]}


def _isnt(key: str, *values: str) -> Json:
    return {"key": key, "operator": "NotIn", "values": list(values)}


def node(index: int, zones: int = 3) -> Json:
    """Return a fake node as its kubelet would register it: 8 cores, 32 GiB, 5,000 pods, in one of `zones` zones.

    It is small enough that even pods without requests count: the scheduler spreads them over such nodes. Its number of
    pods is no limit: hundreds of tests share three nodes, and leave their pods.
    """
    name = f"node-{index}"
    room = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "1Ti", "pods": "5000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {ANNOTATION: FAKE},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": f"zone-{index % zones}",
                "type": "kwok",
            },
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": f"10.64.{index // 250}.{index % 250 + 1}"},
                {"type": "Hostname", "address": name},
            ],
            "capacity": room,
            "allocatable": room,
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": "fake",
                "containerRuntimeVersion": "containerd://fake",
                **dict.fromkeys(UNUSED, ""),
            },
        },
    }


def unschedulable(nodes: list[msgspec.Raw]) -> list[str]:
    """Return the nodes that are still tainted: new ones are until they are ready and the controllers notice."""
    documents = [msgspec.json.decode(raw, type=Json) for raw in nodes]
    return [document["metadata"]["name"] for document in documents if document["spec"].get("taints")]


async def show_pods(api: Api, clock: Clock, boot: str, ensure: Callable[[], object]) -> None:
    """Make the kwok that was started under this name consider every pod on its nodes.

    `ensure` starts it again if it ended meanwhile. Raises ClusterError if it does not manage the nodes in time.
    """
    deadline = clock.monotonic() + TAKEN_WITHIN
    next_show = clock.monotonic() + SHOW_NODES_EVERY
    nodes = await _boots(api)
    while waiting := [name for name, taken_by in nodes.items() if taken_by != boot]:
        now = clock.monotonic()
        if now > deadline:
            raise ClusterError(f"kwok has not taken {', '.join(waiting)} of its nodes in {TAKEN_WITHIN:.0f} s")
        if now > next_show:
            next_show = now + SHOW_NODES_EVERY
            ensure()
            for name in waiting:
                await _show(api, NODE, "", name, f"{boot} {now:.0f}")
        await clock.sleep(POLL)
        nodes = await _boots(api)
    for raw in (await api.list(POD, field_selector="spec.nodeName!=")).items:
        pod = msgspec.json.decode(raw, type=Json)
        if pod["spec"]["nodeName"] in nodes:
            await _show(api, POD, pod["metadata"]["namespace"], pod["metadata"]["name"], boot)


async def _show(api: Api, resource: Resource, namespace: str, name: str, mark: str) -> None:
    """Change the object a little, so that kwok considers it."""
    change = msgspec.json.encode({"metadata": {"annotations": {SHOWN: mark}}})
    await found_or_none(api.patch(resource, namespace, name, change, PatchType.MERGE))


async def _boots(api: Api) -> dict[str, str]:
    """Return the start of kwok that manages each fake node."""
    documents = [msgspec.json.decode(raw, type=Json) for raw in (await api.list(NODE)).items]
    return {
        document["metadata"]["name"]: document["status"].get("nodeInfo", {}).get("bootID", "")
        for document in documents
        if document["metadata"].get("annotations", {}).get(ANNOTATION) == FAKE
    }


async def add_nodes(api: Api, count: int, clock: Clock) -> None:
    """Create the missing nodes of `node-0` … `node-<count-1>`, and wait until pods can be scheduled there.

    Raises ClusterError on a timeout.
    """
    names = [node(index)["metadata"]["name"] for index in range(count)]
    for index in range(count):
        await ensure(api, NODE, node(index))
    deadline = clock.monotonic() + ADDED_WITHIN
    while waiting := set(names).intersection(unschedulable((await api.list(NODE)).items)):
        if clock.monotonic() > deadline:
            raise ClusterError(f"{len(waiting)} nodes are not ready")
        await clock.sleep(POLL)


async def retake_nodes(api: Api, count: int, clock: Clock, boot: str) -> None:
    """Make a kwok whose starts are all named `boot` manage these nodes again, and consider every pod on them.

    Raises ClusterError on a timeout.
    """
    forgotten = msgspec.json.encode({"status": {"nodeInfo": {"bootID": ""}}})
    for index in range(count):
        name = node(index)["metadata"]["name"]
        await api.patch(NODE, "", name, forgotten, PatchType.MERGE, subresource="status")
    await show_pods(api, clock, boot, lambda: None)
