"""`flotilla bundle` and `flotilla replay` of DaemonSets.

Nodes are recorded, and the name of a pod may depend on an earlier pod.
"""

from flotilla_cli.replay.replayer import Replay
from flotilla_common.api.resources import NODE, POD
from flotilla_common.bus import subjects
from flotilla_daemonset.daemonset.controller import CONTROLLER
from tests.testkit.documents import Json
from tests.unit.daemonset.build import ds
from tests.unit.replay.recorder import Recording
from tests.unit.replay.test_jobs import change, recorded, recording, run_pass, settle, written

KEY = ("shop", "d")


def node(name: str, *taints: str) -> Json:
    spec = {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]}
    return {"metadata": {"name": name, "labels": {}}, "spec": spec}


def daemonset() -> Json:
    return {"metadata": {"name": "d", "uid": "uid-d", "generation": 1}, "spec": ds().spec, "status": {}}


def begin(*nodes: str) -> Recording:
    return recording(CONTROLLER, KEY, DaemonSet=[daemonset()], Node=[node(name) for name in nodes])


async def test_pods_on_nodes_that_come_and_go() -> None:
    made = begin("n1", "n2")
    settle(made)
    change(made, "Node", "n2", node("n2", "dedicated"))
    run_pass(made)
    made.heard.append(made.kube("Node", node("n3")))
    made.see(made.heard[-1])
    settle(made)
    bundle = await recorded(made)
    told = list(Replay(bundle, made.spec).steps())
    assert {step.differences for step in told} == {()}
    assert [line.split()[1] for line in written(told[0])][:3] == ["ControllerRevision", "Pod", "Pod"]
    assert sum(line.startswith("create Pod") for step in told for line in written(step)) == 3
    assert subjects.kube(NODE, "", "n1") in {message.subject for message in bundle.known}
    assert "Misscheduled" in {reason.code for reason in told[-1].plan.reasons}


async def test_a_pod_of_a_node_is_known_by_its_node() -> None:
    """The new pod gets another name than in the recording.

    The service remembers the node's former pod, which the recording has never seen.
    """
    made = begin("n1")
    settle(made)
    (former,) = (name for kind, name in made.bodies if kind == "Pod")
    made.see(made.kube("Pod", made.bodies["Pod", former], subjects.DELETED))
    kept = [place for place in made.bodies if place[0] != "Pod"]
    made.known, made.heard = [made.kube(kind, made.bodies[kind, name]) for kind, name in kept], []
    made.see(*made.known)
    (create,) = (action for action in run_pass(made).actions if action.resource == POD)
    settle(made)
    told = list(Replay(await recorded(made), made.spec).steps())
    assert create.name != former
    assert {step.differences for step in told} == {()}
    assert f"create Pod {create.name}" in written(told[0])
