"""Causes outside of containers: nodes, claims, volumes, gates, hooks, and pods that do not end."""

import pytest

from flotilla_common.api.core import Pod
from flotilla_common.api.workload import Lifecycle, LifecycleHook
from flotilla_common.workload.causes import Claim, PodContext, cause_of
from tests.testkit.documents import Json
from tests.testkit.tables import cases
from tests.unit.causes.build import NOW, ago, around, claim, condition, event, node, pod, ready_pod, running, waiting

CREATING = waiting("ContainerCreating")
DATA = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
NO_NODE = (
    "0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, 2 Insufficient cpu. "
    "no new claims to deallocate, preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, "
    "2 No preemption victims found for incoming pod."
)
UNBOUND = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
SILENT = node("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
LEFT = {"deletionTimestamp": ago(-20), "deletionGracePeriodSeconds": 30}
OVERDUE = {"deletionTimestamp": ago(60), "deletionGracePeriodSeconds": 30}
UPDATING = condition("InPlaceUpdateReady", "False", "StartInPlaceUpdate")


def unscheduled(message: str = "", reason: str = "Unschedulable", **spec: object) -> Pod:
    told = [condition("PodScheduled", "False", reason, message)] if message else []
    return pod(node="", phase="Pending", conditions=told, **spec)


def state(name: str, **labels: str) -> Json:
    return {"labels": {"lifecycle.apps.kruise.io/state": name, **labels}}


DRAIN = Lifecycle(pre_delete=LifecycleHook(labels_handler={"drain": "true"}, finalizers_handler=["example.com/drain"]))
UPDATE = Lifecycle(in_place_update=LifecycleHook(labels_handler={"traffic": "on"}))
NORMAL = Lifecycle(pre_normal=LifecycleHook(labels_handler={"registered": "true"}))

Row = tuple[str, Pod, PodContext, str, str, bool]
SCHEDULING: list[Row] = [
    (
        "no node",
        unscheduled(NO_NODE),
        around(),
        "Unschedulable",
        (
            "no node takes it: 0/3 nodes are available: 1 node(s) had untolerated taint "
            "{node.kubernetes.io/unreachable: }, 2 Insufficient cpu"
        ),
        True,
    ),
    (
        "not looked at",
        unscheduled(),
        around(),
        "WaitingForScheduling",
        "scheduler default-scheduler has not looked",
        False,
    ),
    (
        "no such scheduler",
        unscheduled(schedulerName="batch"),
        around(),
        "WaitingForScheduling",
        "scheduler batch has not looked at it yet: is there a scheduler of that name?",
        True,
    ),
    (
        "gated",
        unscheduled(
            "Scheduling is blocked due to non-empty scheduling gates",
            "SchedulingGated",
            schedulingGates=[{"name": "example.com/budget"}],
        ),
        around(),
        "SchedulingGated",
        "scheduling gate example.com/budget holds it until the gate is removed",
        True,
    ),
    (
        "no such class",
        unscheduled(UNBOUND, volumes=DATA),
        around(
            claims={
                "data": claim(
                    "Pending", "fast", event("ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found')
                )
            }
        ),
        "ClaimNotBound",
        'claim data of storage class fast is not bound: storageclass.storage.k8s.io "fast" not found',
        True,
    ),
    (
        "no class",
        unscheduled(UNBOUND, volumes=DATA),
        around(
            claims={
                "data": claim(
                    "Pending",
                    None,
                    event(
                        "FailedBinding", "no persistent volumes available for this claim and no storage class is set"
                    ),
                )
            }
        ),
        "ClaimNotBound",
        (
            "claim data of no storage class is not bound: no persistent volumes available for this claim and "
            "no storage class"
        ),
        True,
    ),
    (
        "no provisioner",
        unscheduled(UNBOUND, volumes=DATA),
        around(
            claims={
                "data": claim(
                    "Pending",
                    "fast",
                    event(
                        "ExternalProvisioning",
                        "Waiting for a volume to be created either by the external provisioner 'csi.example.com'",
                    ),
                )
            }
        ),
        "ClaimNotBound",
        "claim data of storage class fast is not bound: Waiting for a volume to be created either by the external",
        True,
    ),
    (
        "no claim",
        unscheduled('0/3 nodes are available: persistentvolumeclaim "data" not found.', volumes=DATA),
        around(claims={"data": Claim(found=None)}),
        "ClaimMissing",
        "claim data does not exist",
        True,
    ),
    (
        "a claim that waits for the pod is no cause",
        unscheduled("0/3 nodes are available: 3 Insufficient cpu.", volumes=DATA),
        around(claims={"data": claim("Pending", "local", event("WaitForFirstConsumer", "waiting for first consumer"))}),
        "Unschedulable",
        "no node takes it: 0/3 nodes are available: 3 Insufficient cpu",
        True,
    ),
    (
        "claim on its way out",
        unscheduled(UNBOUND, volumes=DATA),
        around(claims={"data": claim(deletionTimestamp=ago(5), finalizers=["kubernetes.io/pvc-protection"])}),
        "ClaimTerminating",
        "claim data is being deleted, held by finalizer kubernetes.io/pvc-protection",
        True,
    ),
]
STARTING: list[Row] = [
    ("creating", pod(CREATING, phase="Pending"), around(), "Starting", "container app is being created", False),
    ("not begun", pod(phase="Pending"), around(), "Starting", "the kubelet of node n1 has not started it yet", False),
    (
        "pulling",
        pod(CREATING, phase="Pending"),
        around(event("Pulling", 'Pulling image "shop:2"', container="app")),
        "PullingImage",
        "image shop:2 of container app is being pulled",
        False,
    ),
    (
        "secret volume",
        pod(CREATING, phase="Pending"),
        around(event("FailedMount", 'MountVolume.SetUp failed for volume "tls" : secret "tls" not found')),
        "FailedMount",
        'a volume cannot be mounted: MountVolume.SetUp failed for volume "tls" : secret "tls" not found',
        True,
    ),
    (
        "mounted since",
        pod(CREATING, phase="Pending"),
        around(
            event("FailedMount", 'MountVolume.SetUp failed for volume "tls" : secret "tls" not found', at=20),
            event("Pulled", 'Container image "shop:2" already present on machine', container="app", at=5),
        ),
        "Starting",
        "container app is being created",
        False,
    ),
    (
        "attached elsewhere",
        pod(CREATING, phase="Pending"),
        around(
            event("FailedAttachVolume", 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) web-0')
        ),
        "FailedAttachVolume",
        'a volume cannot be mounted: Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) web-0',
        True,
    ),
    (
        "sandbox",
        pod(CREATING, phase="Pending"),
        around(
            event(
                "FailedCreatePodSandBox",
                "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "
                '"1f": plugin type="bridge" failed (add): no IP addresses available in range set',
            )
        ),
        "FailedCreatePodSandBox",
        (
            'the pod\'s sandbox cannot be made: failed to setup network for sandbox "1f": plugin '
            'type="bridge" failed (add): '
            "no IP addresses available"
        ),
        True,
    ),
]
NODES: list[Row] = [
    (
        "node not ready",
        pod(running(), conditions=[condition("Ready", "False")]),
        around(nodes={"n1": SILENT}),
        "NodeNotReady",
        "node n1 is not ready since 2026-03-01T11:59:00Z: NodeStatusUnknown: Kubelet stopped posting node status.",
        True,
    ),
    ("node gone", pod(CREATING), around(nodes={"n1": None}), "NodeNotReady", "node n1 does not exist any more", True),
    (
        "kubelet silent",
        ready_pod(condition("Ready")),
        around(silent={"n1": NOW}, nodes={"n1": node("True")}),
        "NodeNotReady",
        "node n1 is not ready: its kubelet is silent, it renewed its lease last at 2026-03-01T12:00:00Z",
        True,
    ),
    (
        "as its pod tells",
        ready_pod(condition("Ready", "False")),
        around(),
        "NodeNotReady",
        "node n1 does not report: the pod is not Ready although all of its containers are",
        True,
    ),
    (
        "evicted",
        pod(
            phase="Failed",
            status={"reason": "Evicted", "message": "The node was low on resource: memory. Threshold quantity: 100Mi"},
        ),
        around(),
        "Evicted",
        "it has failed: Evicted: The node was low on resource: memory. Threshold quantity: 100Mi (on node n1)",
        True,
    ),
    (
        "rejected",
        pod(
            phase="Failed",
            status={"reason": "OutOfcpu", "message": "Pod was rejected: Node didn't have enough resource: cpu"},
        ),
        around(),
        "OutOfcpu",
        "it has failed: OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu",
        True,
    ),
    (
        "failed by its container",
        pod(
            phase="Failed",
            status={
                "containerStatuses": [
                    {"name": "log", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
                    {"name": "app", "state": {"terminated": {"exitCode": 3, "reason": "Error", "message": "no disk"}}},
                ]
            },
        ),
        around(),
        "PodFailed",
        'it has failed: container app crashes with exit code 3 (on node n1, last words: "no disk")',
        True,
    ),
    (
        "over",
        pod(phase="Succeeded", restartPolicy="Always"),
        around(),
        "PodCompleted",
        "it ran to its end, but should keep running",
        True,
    ),
]
ENDING: list[Row] = [
    (
        "finalizer",
        pod(metadata={**OVERDUE, "finalizers": ["example.com/backup"]}),
        around(),
        "HeldByFinalizer",
        (
            "terminating, held by finalizer example.com/backup, until whoever set that removes it "
            "(since 2026-03-01T11:58:30Z)"
        ),
        True,
    ),
    (
        "garbage collector",
        pod(metadata={**OVERDUE, "finalizers": ["foregroundDeletion"]}),
        around(),
        "HeldByFinalizer",
        "terminating, held by finalizer foregroundDeletion (the garbage collector, which waits for what the pod owns)",
        True,
    ),
    (
        "grace",
        pod(running(ready=True), metadata=LEFT),
        around(),
        "Terminating",
        (
            "terminating: its grace period of 30 s ends at 2026-03-01T12:00:20Z; "
            "a preStop hook runs, or a process does not end"
        ),
        False,
    ),
    (
        "overdue",
        pod(running(ready=True), metadata=OVERDUE),
        around(nodes={"n1": node("True")}),
        "TerminationOverdue",
        (
            "terminating since 2026-03-01T11:58:30Z: its grace period ended at 2026-03-01T11:59:00Z, "
            "and the kubelet of node n1 has not confirmed"
        ),
        True,
    ),
    (
        "lost node",
        pod(running(ready=True), metadata=OVERDUE),
        around(nodes={"n1": SILENT}),
        "TerminatingOnLostNode",
        (
            "terminating since 2026-03-01T11:58:30Z, and its end cannot be confirmed: "
            "node n1 is not ready since 2026-03-01T11:59:00Z: NodeStatus"
        ),
        True,
    ),
]
HOOKS: list[Row] = [
    (
        "preDelete",
        ready_pod(
            condition("Ready"), metadata={**state("PreparingDelete", drain="true"), "finalizers": ["example.com/drain"]}
        ),
        around(lifecycle=DRAIN),
        "WaitingForHook",
        (
            "PreparingDelete: nobody has answered the preDelete hook: whoever is to answer it has to take off label "
            "drain=true and finalizer example.com/drain"
        ),
        True,
    ),
    (
        "half answered",
        ready_pod(condition("Ready"), metadata=state("PreparingDelete", drain="true")),
        around(lifecycle=DRAIN),
        "WaitingForHook",
        (
            "PreparingDelete: nobody has answered the preDelete hook: whoever is to answer it has to take off "
            "label drain=true"
        ),
        True,
    ),
    (
        "not known",
        ready_pod(condition("Ready"), metadata=state("PreparingUpdate")),
        around(),
        "WaitingForHook",
        (
            "PreparingUpdate: nobody has answered the inPlaceUpdate hook: whoever is to answer it has to take "
            "off the hook's"
        ),
        True,
    ),
    (
        "to be put on again",
        ready_pod(condition("Ready"), metadata=state("Updated")),
        around(lifecycle=UPDATE),
        "WaitingForHook",
        "Updated: nobody has answered the inPlaceUpdate hook: whoever is to answer it has to put on label traffic=on",
        True,
    ),
    (
        "preNormal",
        ready_pod(condition("Ready"), metadata=state("PreparingNormal")),
        around(lifecycle=NORMAL),
        "WaitingForHook",
        (
            "PreparingNormal: nobody has answered the preNormal hook: whoever is to answer it has to put on "
            "label registered"
        ),
        True,
    ),
]
GATES = [{"conditionType": "example.com/traffic"}]
READINESS: list[Row] = [
    (
        "foreign gate",
        ready_pod(condition("Ready", "False", "ReadinessGatesNotReady", "…"), readinessGates=GATES),
        around(),
        "ReadinessGate",
        "readiness gate example.com/traffic is not set: whoever is to set this condition on the pod has not",
        True,
    ),
    (
        "gate that is False",
        ready_pod(
            condition("Ready", "False", "ReadinessGatesNotReady"),
            condition("example.com/traffic", "False", "NoTarget", "no target group"),
            readinessGates=GATES,
        ),
        around(),
        "ReadinessGate",
        "readiness gate example.com/traffic is False: NoTarget: no target group",
        True,
    ),
    (
        "our own gate",
        ready_pod(
            condition("Ready", "False", "ReadinessGatesNotReady"),
            readinessGates=[{"conditionType": "InPlaceUpdateReady"}],
        ),
        around(),
        "ReadinessGate",
        "readiness gate InPlaceUpdateReady is not set: the service of its workload sets it",
        False,
    ),
    (
        "an update in place has begun",
        ready_pod(
            condition("Ready", "False", "ReadinessGatesNotReady"),
            condition("InPlaceUpdateReady", "False", "StartInPlaceUpdate"),
            readinessGates=[{"conditionType": "InPlaceUpdateReady"}],
        ),
        around(),
        "InPlaceUpdate",
        "in-place update: its kubelet has not restarted what changed yet",
        False,
    ),
    (
        "held",
        ready_pod(
            condition("Ready", "False", "ReadinessGatesNotReady"),
            condition("KruisePodReady", "False", "", '[{"userAgent":"Lifecycle","key":"preDeleteHook"}]'),
            readinessGates=[{"conditionType": "KruisePodReady"}],
        ),
        around(),
        "ReadinessGate",
        "readiness gate KruisePodReady is False, held by Lifecycle (preDeleteHook)",
        True,
    ),
    (
        "min ready",
        ready_pod(condition("Ready", since=10)),
        around(min_ready_seconds=30),
        "MinReadySeconds",
        "ready, and available after minReadySeconds 30 (at 2026-03-01T12:00:20Z)",
        False,
    ),
    (
        "being updated",
        ready_pod(condition("Ready", "False", "ReadinessGatesNotReady"), UPDATING),
        around(),
        "InPlaceUpdate",
        "in-place update: its kubelet has not restarted what changed yet",
        False,
    ),
    (
        "too large",
        ready_pod(
            condition("Ready", "False", "ReadinessGatesNotReady"),
            UPDATING,
            condition(
                "PodResizePending", "True", "Infeasible", "Node didn't have enough capacity: cpu, requested: 900000"
            ),
        ),
        around(),
        "ResizeInfeasible",
        "the kubelet calls the new resources Infeasible: Node didn't have enough capacity: cpu, requested: 900000",
        True,
    ),
    (
        "later",
        ready_pod(
            condition("Ready", "False", "ReadinessGatesNotReady"),
            UPDATING,
            condition("PodResizePending", "True", "Deferred", "Node didn't have enough resource: cpu"),
        ),
        around(),
        "ResizeDeferred",
        "the kubelet calls the new resources Deferred: Node didn't have enough resource: cpu",
        False,
    ),
    (
        "no more is known",
        pod(
            conditions=[condition("Ready", "False", "ContainersNotReady", "containers with unready status: [app]")],
            status={"containerStatuses": [running(ready=True)]},
        ),
        around(),
        "NotReady",
        "it is not Ready: ContainersNotReady: containers with unready status: [app]",
        False,
    ),
]
ROWS = [*SCHEDULING, *STARTING, *NODES, *ENDING, *HOOKS, *READINESS]


@pytest.mark.parametrize(("found", "known", "code", "text", "stuck"), cases(ROWS))
def test_pods(found: Pod, known: PodContext, code: str, text: str, stuck: bool) -> None:
    cause = cause_of(found, known)
    assert cause is not None
    assert (cause.code, cause.stuck) == (code, stuck)
    assert cause.text.startswith(text)


@pytest.mark.parametrize(
    ("found", "known"),
    [
        pytest.param(ready_pod(condition("Ready")), around(), id="ready"),
        pytest.param(ready_pod(condition("Ready", since=40)), around(min_ready_seconds=30), id="ready for long enough"),
        pytest.param(
            ready_pod(condition("Ready"), metadata=state("PreparingDelete")),
            around(lifecycle=DRAIN),
            id="hook answered",
        ),
        pytest.param(
            ready_pod(condition("Ready"), metadata=state("Updated")), around(lifecycle=Lifecycle()), id="no hook"
        ),
        pytest.param(ready_pod(condition("Ready")), around(nodes={"n1": node("True")}), id="node ready"),
        pytest.param(pod(phase="Succeeded", restartPolicy="Never"), around(), id="has done its work"),
    ],
)
def test_nothing_is_known_against_it(found: Pod, known: PodContext) -> None:
    assert cause_of(found, known) is None
