"""`flotilla get`, `explain`, `tail`, `bundle` and `replay` beside running services."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.statefulset.types import STATEFUL_SET
from flotilla_dev.cluster.ports import free_ports
from tests.support.broker import people
from tests.support.fleet import Fleet
from tests.support.verbs import Verbs
from tests.support.workspace import Workspace, watched
from tests.testkit.documents import Json
from tests.testkit.manifests import manifest

pytestmark = pytest.mark.timeout(300)  # many starts of Python processes, seconds each on a loaded machine

MANIFEST = manifest("read-verbs")
NUMBERED = manifest("read-verbs-numbered")


@pytest.fixture
def space(shared: Fleet, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    with watched(shared.cluster, request.node.nodeid, CLONE_SET, STATEFUL_SET) as made:
        yield made


@pytest.fixture(autouse=True)
def _credentials(shared: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOTILLA_NATS_CREDS", people(shared.nats).nats_creds)


def followers(running: Fleet) -> set[int]:
    """Return the connections to the bus that have subscribed to everything that `tail` shows."""
    with urllib.request.urlopen(f"{running.nats.monitor}/connz?subs=1", timeout=5) as reply:
        connections = json.loads(reply.read())["connections"]
    everything = {"kube.v1.>", "act.v1.>", "why.v1.>"}
    return {one["cid"] for one in connections if everything <= set(one.get("subscriptions_list", ()))}


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "flotilla_cli", *arguments]
    reply = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert reply.returncode == 0, reply.stderr
    return reply


def test_a_partial_rollout_as_traffic_tree_and_reasons(space: Workspace, shared: Fleet, tmp_path: Path):
    """Without the apiserver or the bus, they say that they know less."""
    space.apply(MANIFEST)
    space.settled("web", readyReplicas=3)
    nats, where = f"--nats={shared.nats.url}", f"--kubeconfig={space.cluster.kubeconfig}"
    here = ("-n", space.name)
    record, others = tmp_path / "tail.jsonl", followers(shared)
    line = [sys.executable, "-m", "flotilla_cli", "tail", "web", *here, nats, "-o", "json"]
    env = os.environ | {"PYTHONUNBUFFERED": "1"}
    with record.open("wb") as output, subprocess.Popen(line, stdout=output, env=env) as follower:
        try:
            space.until(lambda: bool(followers(shared) - others))
            space.set_image("nginx:mainline", "web")
            space.settled("web", updatedReadyReplicas=1, readyReplicas=3)
            space.until(lambda: {one["stream"] for one in shown(record)} == {"kube", "act", "why"})
        finally:
            follower.terminate()

    writes = [one for one in shown(record) if one["stream"] == "act"]
    assert all(one["owner"] == "CloneSet/web" and one["message"]["intent"] for one in writes if one["kind"] == "Pod")
    assert any(one["outcome"].startswith("Ok") for one in writes)

    tree = json.loads(ran("get", "clone", "web", *here, "-o", "json", nats, where).stdout)
    assert tree["toldBy"] == "bus"
    assert [len(revision["pods"]) for revision in tree["revisions"]] == [1, 2]
    assert [revision["update"] for revision in tree["revisions"]] == [True, False]
    text = ran("explain", "clone", "web", *here, nats, where).stdout
    title = rf"CloneSet {space.name}/web  generation \d, planned "
    assert re.match(rf"on hold: 1 of 3 pods updated, partition .*\n{title}", text)

    alone = ran("explain", "clone", "web", *here, nats, f"--kubeconfig={tmp_path / 'none'}").stdout.splitlines()
    assert alone[0] == text.splitlines()[0]
    assert alone[2].startswith("  ! only the last record of its service is available: ")
    dead = f"--nats=nats://127.0.0.1:{free_ports(1)[0]}"
    reply = ran("get", "clone", "web", *here, "-o", "json", dead, where)
    assert json.loads(reply.stdout)["toldBy"] == "status"
    assert reply.stderr.startswith("the bus does not answer")


def shown(record: Path) -> list[Json]:
    """Return the whole lines that `tail` has printed."""
    return [json.loads(line) for line in record.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_pods_with_numbers_have_a_tree_and_can_be_recorded(space: Workspace, shared: Fleet, tmp_path: Path):
    space.apply(NUMBERED)
    space.until(lambda: space.object("StatefulSet", "db").get("status", {}).get("readyReplicas") == 2)
    flotilla = Verbs(space, shared)
    tree = flotilla.run("get", "asts", "db").splitlines()
    assert tree[0].startswith(f"StatefulSet {space.name}/db  2 desired, 2 exist, 2 ready, 2 of 2 updated")
    assert tree[1] == "├── reserved ordinals: 1"
    assert re.findall(r"(db-\d) +Running", "\n".join(tree)) == ["db-0", "db-2"]
    assert "all 1 decisions match those of the service" in flotilla.replayed(tmp_path, "asts", "db")
