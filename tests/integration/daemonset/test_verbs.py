"""`flotilla get`, `explain`, `plan`, `history`, `bundle`, `replay` of a DaemonSet, beside running services."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemons import IN_PLACE, NAME, NEW, by_node, daemonset, started
from tests.support.fleet import Fleet
from tests.support.foreseen import differences, foretold, happened
from tests.support.verbs import Verbs
from tests.support.workspace import Workspace

pytestmark = pytest.mark.timeout(300)  # the first one waits for the control plane, too
ELSEWHERE = {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}


@pytest.fixture
def flotilla(space: Workspace, shared: Fleet) -> Verbs:
    return Verbs(space, shared)


def test_nodes_and_why_some_have_no_pod(space: Workspace, flotilla: Verbs, tmp_path: Path):
    started(space, 1, pod=ELSEWHERE)
    (pod,) = space.pods
    tree = flotilla.run("get", "ads", NAME).splitlines()
    assert tree[0].startswith(f"DaemonSet {space.name}/{NAME}  1 desired, 1 exist, 1 ready, 1 of 1 updated")
    (line,) = (line.split() for line in tree if pod in line)
    assert line[line.index("●") + 1 :][:2] == ["node-1", "Running"]
    said = flotilla.run("explain", "ads", NAME)
    assert said.startswith("done: 1 of 1 node updated, all available")
    assert "  node-0, node-2: does not match nodeSelector kubernetes.io/hostname=node-1" in said.splitlines()
    assert "decisions match those of the service" in flotilla.replayed(tmp_path, "ads", NAME)


def test_a_pod_that_no_node_takes(space: Workspace, flotilla: Verbs):
    """The scheduler gives the reason, and each node has this one."""
    huge: dict[str, Any] = {"requests": {"cpu": "1000"}}
    space.apply(daemonset(pod={"containers": [{"name": "nginx", "image": NEW, "resources": huge}]}))
    space.until(lambda: len(by_node(space)) == 3 and all(map(_refused, space.pods.values())))
    found = json.loads(flotilla.run("explain", "ads", NAME, "-o", "json"))
    assert found["verdict"] == "stuck"
    assert found["nodesWithoutPod"].keys() == {"node-0", "node-1", "node-2"}
    assert all("Insufficient cpu" in why for why in found["nodesWithoutPod"].values())


def _refused(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in conditions)


def test_what_is_foretold_happens(space: Workspace, flotilla: Verbs):
    strategy = IN_PLACE | {"partition": 1}
    before = {pod["metadata"]["name"]: pod for pod in started(space, 3, strategy).values()}
    changed = daemonset(strategy, pod={"containers": [{"name": "nginx", "image": NEW}]})
    manifest, mark = json.dumps(changed), space.now()
    (story,) = json.loads(flotilla.run("plan", "-f", "-", "-o", "json", stdin=manifest, codes=(1,)))
    assert len(space.pods) == 3
    space.apply(changed)
    status = space.settled(NAME, updatedNumberScheduled=2, numberAvailable=3)
    assert story["revision"] == {"name": f"{NAME}-{status['updateRevision']}", "new": True}
    assert differences(foretold(story), happened(space.history(mark), before)) == []
    told = flotilla.run("history", "ads", NAME)
    assert f"spec.template.spec.containers[nginx].image  nginx:alpine → {NEW}" in told
    touched = {name for wave in foretold(story) for _, name in wave if name}
    assert len(touched) == 2
    assert all(name in told for name in touched)
