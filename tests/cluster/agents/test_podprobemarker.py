"""Probes on real nodes: their results are on the pods, also across restarts (podprobemarker.md §6, §11)."""

from itertools import groupby

import pytest

from flotilla_common.api.kinds.podprobemarker.types import POD_PROBE_MARKER
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_common.clock import SystemClock
from tests.cluster.conftest import Staffed
from tests.support.stateful import statefulset
from tests.support.workspace import Workspace, condition, is_ready
from tests.testkit.documents import Json, typed

pytestmark = pytest.mark.usefixtures("staffed")
WATCHED = (STATEFUL_SET,)
PATIENCE = 60
IDLE = "game.io/idle"
PROMPT = 4.0
"""Seconds: a period, and what the way to the pod may take."""
NOTE = "if [ -e /tmp/busy ]; then cat /tmp/busy >&2; exit 1; fi; echo idle"
POD_NAME = "web-0"


def marker(**probes: Json) -> Json:
    """Return a PodProbeMarker that probes the container nginx every second.

    Each result is a condition `game.io/<name>`; that of `idle` is also shown as labels and annotations.
    """
    policy = [
        {"state": "Succeeded", "labels": {"idle": "yes"}, "annotations": {"cost": "-5"}},
        {"state": "Failed", "annotations": {"cost": "5"}},
    ]
    listed = [
        {
            "name": name,
            "containerName": "nginx",
            "podConditionType": f"game.io/{name}",
            "probe": {"periodSeconds": 1, **probe},
            **({"markerPolicy": policy} if name == "idle" else {}),
        }
        for name, probe in probes.items()
    ]
    return typed(POD_PROBE_MARKER, "m", spec={"selector": {"matchLabels": {"app": "web"}}, "probes": listed})


@pytest.fixture
def game(space: Workspace) -> Workspace:
    """Create a StatefulSet whose pod is probed; return its namespace."""
    manifest = statefulset(1)
    container = manifest["spec"]["template"]["spec"]["containers"][0]
    container["ports"] = [{"name": "web", "containerPort": 80}]
    manifest["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    space.apply(manifest)
    space.apply(
        marker(
            idle={"exec": {"command": ["sh", "-c", NOTE]}},
            open={"tcpSocket": {"port": "web"}},
            page={"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}},
            closed={"tcpSocket": {"port": 81}},
        )
    )
    space.until(lambda: is_ready(pod(space)), PATIENCE)
    space.until(lambda: shown(space) == "True", PATIENCE)
    return space


def pod(space: Workspace) -> Json:
    return space.pod(POD_NAME)


def shown(space: Workspace, name: str = "idle") -> str:
    """Return the status of a condition."""
    return condition(pod(space), f"game.io/{name}").get("status", "")


def message(space: Workspace, name: str = "idle") -> str:
    return condition(pod(space), f"game.io/{name}").get("message", "")


def marks(space: Workspace) -> tuple[str | None, str | None]:
    """Return the label and the annotation of the policy."""
    meta = pod(space)["metadata"]
    return meta["labels"].get("idle"), meta.get("annotations", {}).get("cost")


def busy(space: Workspace, note: str = "") -> None:
    """Have the probe fail with these words, or succeed again."""
    change = f"echo -n {note} > /tmp/busy" if note else "rm -f /tmp/busy"
    space.kubectl("exec", POD_NAME, "-c", "nginx", "--", "sh", "-c", change)


def told(space: Workspace, since: int) -> list[str]:
    """Return the statuses of the condition of `idle` after the mark, without repetitions."""
    seen = [condition(event.object, IDLE).get("status", "") for event in space.history(since)]
    return [status for status, _ in groupby(seen)]


def test_results_are_on_the_pod_as_they_change(game: Workspace) -> None:
    game.until(lambda: (shown(game, "open"), shown(game, "page")) == ("True", "True"), PATIENCE)
    game.until(lambda: "connection refused" in message(game, "closed"), PATIENCE)
    assert shown(game, "closed") == "False"
    assert message(game) == "idle\n"
    assert marks(game) == ("yes", "-5")
    busy(game, "players")
    game.until(lambda: (shown(game), message(game)) == ("False", "players"), PROMPT)
    game.until(lambda: marks(game) == (None, "5"), PROMPT)
    busy(game, "more")
    game.until(lambda: message(game) == "more", PROMPT)
    busy(game)
    game.until(lambda: (shown(game), marks(game)) == ("True", ("yes", "-5")), PROMPT)
    game.until(lambda: {"KruiseProbeSucceeded", "KruiseProbeFailed"} <= reasons(game), PATIENCE)


def reasons(space: Workspace) -> set[str]:
    events = space.read("events", "--field-selector=involvedObject.kind=Pod")["items"]
    ours = [one for one in events if one["source"].get("component") == "kruise-daemon-podprobe"]
    assert {one["type"] for one in ours} <= {"Normal"}
    return {one["reason"] for one in ours}


def end_container(game: Workspace) -> None:
    """End the container from within, a moment after the command has returned: it would end with the container."""
    game.kubectl("exec", POD_NAME, "-c", "nginx", "--", "sh", "-c", "(sleep 1; kill 1) >/dev/null 2>&1 &")


async def test_the_agent_is_away(game: Workspace, staffed: Staffed) -> None:
    """A kill changes no result. If the container restarts meanwhile, the state is Unknown until it is probed.

    The result was about another instance then.
    """
    node, mark = pod(game)["spec"]["nodeName"], game.now()
    await staffed.agents.kill(node)
    await staffed.agents.start(node)
    await SystemClock().sleep(5)
    game.catch_up()
    assert set(told(game, mark)) <= {"True"}
    mark = game.now()
    await staffed.agents.kill(node)
    end_container(game)
    game.until(lambda: pod(game)["status"]["containerStatuses"][0]["restartCount"] == 1, PATIENCE)
    game.until(lambda: is_ready(pod(game)), PATIENCE)
    await staffed.agents.start(node)
    game.until(lambda: "False" in told(game, mark), PATIENCE)
    game.until(lambda: shown(game) == "True", PATIENCE)


def test_a_container_that_restarts_and_a_pod_that_is_recreated_under_its_name(game: Workspace) -> None:
    """Follow example 15: the new pod has results of its own."""
    mark = game.now()
    end_container(game)
    game.until(lambda: pod(game)["status"]["containerStatuses"][0]["restartCount"] == 1, PATIENCE)
    game.until(lambda: shown(game) == "True" and "False" in told(game, mark), PATIENCE)
    busy(game, "players")
    game.until(lambda: shown(game) == "False", PROMPT)
    uid = pod(game)["metadata"]["uid"]
    game.kubectl("delete", "pod", POD_NAME, "--wait=false")
    game.until(lambda: bool(pod(game)) and pod(game)["metadata"]["uid"] != uid, PATIENCE)
    game.until(lambda: (shown(game), marks(game)) == ("True", ("yes", "-5")), PATIENCE)
    node = pod(game)["spec"]["nodeName"]
    found = game.cluster.read("nodepodprobe", node)
    for entries in (found["spec"]["podProbes"], found["status"]["podProbeStatuses"]):
        assert [one["uid"] for one in entries if one["namespace"] == game.name] == [pod(game)["metadata"]["uid"]]
    game.kubectl("delete", "podprobemarker", "m", "--timeout=30s")
    game.until(lambda: game.name not in str(game.cluster.read("nodepodprobe", node)), PATIENCE)
    assert shown(game) == "True"


def test_a_pod_in_the_nodes_network(space: Workspace) -> None:
    """The pod's IP is the node's, where the kubelet listens; the runtime has no IP for it."""
    sleeping = {"name": "nginx", "image": "nginx:alpine", "command": ["sleep", "infinity"]}
    metadata = {"name": POD_NAME, "labels": {"app": "web"}}
    spec = {"hostNetwork": True, "terminationGracePeriodSeconds": 1, "containers": [sleeping]}
    space.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    space.apply(marker(open={"tcpSocket": {"port": 10250}}, closed={"tcpSocket": {"port": 1}}))
    space.until(lambda: shown(space, "open") == "True", PATIENCE)
    space.until(lambda: "connection refused" in message(space, "closed"), PATIENCE)
