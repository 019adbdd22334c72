"""The BroadcastJob manifests, commands and tables of the users' articles, verbatim, and their outcomes.

Their cluster has two nodes, this one has three. Where the articles' programs end by themselves, a test ends them here.
"""

from tests.support.broadcast import begun, end, is_active, job_status, numbers, pods_of, reached
from tests.support.daemons import node_of
from tests.support.workspace import Workspace, condition
from tests.testkit.manifests import article

DEMO = article("broadcastjob/demo")
TTL = article("broadcastjob/ttl")
"""The first article's policies are added to its first manifest."""
DEADLINE = """
  completionPolicy:
    type: Always
    activeDeadlineSeconds: 10
"""
NEVER = """
  completionPolicy:
    type: Never
"""


def columns(space: Workspace, *words: str) -> list[dict[str, str]]:
    """Return a table of kubectl: each line by the words of its header."""
    header, *lines = space.kubectl("get", *words).splitlines()
    names = header.replace("NOMINATED NODE", "NOMINATED").replace("READINESS GATES", "GATES").split()
    return [dict(zip(names, line.split(), strict=True)) for line in lines]


def check_table(space: Workspace, name: str, nodes: int) -> None:
    """Check the output of `kubectl get bcj` once all have succeeded."""
    (line,) = columns(space, "bcj")
    assert line.pop("AGE")
    assert line == {"NAME": name, "DESIRED": str(nodes), "ACTIVE": "0", "SUCCEEDED": str(nodes), "FAILED": "0"}


def check_pods(space: Workspace, name: str, nodes: int) -> None:
    """Check the output of `kubectl get po -owide` once all have succeeded."""
    pods = columns(space, "po", "-owide")
    assert len({pod["NODE"] for pod in pods}) == len(pods) == nodes
    for pod in pods:
        assert pod["NAME"].startswith(f"{name}-")
        assert (pod["READY"], pod["STATUS"], pod["RESTARTS"]) == ("0/1", "Completed", "0")
        assert (pod["NOMINATED"], pod["GATES"]) == ("<none>", "1/1")


def test_a_pod_on_each_node(space: Workspace):
    applied = space.kubectl("apply", "-f", "-", stdin=DEMO)
    assert applied == "broadcastjob.apps.kruise.io/bcj-demo created\n"
    pods = begun(space, 3, "bcj-demo")
    assert [node_of(pod) for pod in pods] == ["node-0", "node-1", "node-2"]
    end(space, pods)
    reached(space, "bcj-demo", phase="completed", desired=3, active=0, succeeded=3, failed=0)
    check_table(space, "bcj-demo", 3)


def test_one_pod_at_a_time(space: Workspace):
    """The second article's; it goes with its pods after half a minute, which tests on real nodes wait for."""
    space.apply(TTL)
    for done in range(3):
        (pod,) = begun(space, 1, "broadcastjob-ttl")
        assert numbers(job_status(space, "broadcastjob-ttl"))[2] == done
        end(space, [pod])
        space.until(lambda done=done: numbers(job_status(space, "broadcastjob-ttl"))[2] == done + 1)
    reached(space, "broadcastjob-ttl", phase="completed", desired=3, succeeded=3)
    for pods in space.moments():
        assert sum(map(is_active, pods.values())) <= 1
    assert space.clone("broadcastjob-ttl")["spec"]["completionPolicy"]["ttlSecondsAfterFinished"] == 30


def test_never_done(space: Workspace):
    space.apply(DEMO + NEVER)
    end(space, begun(space, 3, "bcj-demo"))
    assert "completionTime" not in reached(space, "bcj-demo", phase="running", desired=3, active=0, succeeded=3)
    (gone, *_) = pods_of(space, "bcj-demo")
    space.kubectl("delete", "pod", gone["metadata"]["name"])
    (again,) = begun(space, 1, "bcj-demo")
    assert node_of(again) == node_of(gone)
    assert condition(again, "KruisePodReady")["status"] == "True"
