"""`flotilla get`, `explain` and `tail` beside running services."""

import asyncio
import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import pytest_asyncio

from flotilla_dev.cluster.ports import free_ports
from tests.support.broker import people
from tests.support.cluster import eventually
from tests.support.fleet import Fleet
from tests.testkit.documents import Json
from tests.testkit.manifests import manifest

MANIFEST = manifest("read-verbs")
NUMBERED = manifest("read-verbs-numbered")
NEW_IMAGE = '{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:mainline"}]}}}}'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(shared: Fleet) -> Fleet:
    shared.cluster.apply(MANIFEST)
    await eventually(lambda: status(shared).get("readyReplicas") == 3)
    return shared


def status(running: Fleet) -> Json:
    return running.cluster.read("clone", "web").get("status", {})


def follows(running: Fleet) -> bool:
    """Report whether `tail` has subscribed to everything that it shows."""
    with urllib.request.urlopen(f"{running.nats.monitor}/connz?subs=1", timeout=5) as reply:
        connections = json.loads(reply.read())["connections"]
    return any({"kube.v1.>", "act.v1.>", "why.v1.>"} <= set(one.get("subscriptions_list", ())) for one in connections)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "flotilla_cli", *arguments]


@pytest.fixture(autouse=True)
def _credentials(flotilla: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOTILLA_NATS_CREDS", people(flotilla.nats).nats_creds)


def said(*arguments: str) -> str:
    reply = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=30, check=False)
    assert reply.returncode == 0, reply.stderr
    return reply.stdout


@pytest.mark.timeout(300)  # a dozen starts of Python processes, seconds each on a loaded machine
async def test_a_partial_rollout_as_tree_reasons_and_traffic(flotilla: Fleet, tmp_path: Path):
    cluster, nats = flotilla.cluster, f"--nats={flotilla.nats.url}"
    record = tmp_path / "tail.jsonl"
    with record.open("wb") as output:
        follower = await asyncio.create_subprocess_exec(
            *command("tail", "web", "-n", "default", nats, "-o", "json"), stdout=output
        )
        await eventually(lambda: follows(flotilla))
        cluster.kubectl("patch", "clone", "web", "--type=merge", "-p", NEW_IMAGE)
        await eventually(lambda: status(flotilla).get("updatedReadyReplicas") == 1)
        await asyncio.sleep(1)
        follower.terminate()
        await follower.wait()

    lines = [json.loads(line) for line in record.read_text().splitlines()]
    writes = [line for line in lines if line["stream"] == "act"]
    assert {line["stream"] for line in lines} == {"kube", "act", "why"}
    assert all(
        line["owner"] == "CloneSet/web" and line["message"]["intent"] for line in writes if line["kind"] == "Pod"
    )
    assert any(line["outcome"].startswith("Ok") for line in writes)

    tree = json.loads(said("get", "clone", "web", "-o", "json", nats, f"--kubeconfig={cluster.kubeconfig}"))
    assert tree["toldBy"] == "bus"
    assert [len(revision["pods"]) for revision in tree["revisions"]] == [1, 2]
    assert [revision["update"] for revision in tree["revisions"]] == [True, False]
    text = said("get", "clone", "web", nats, f"--kubeconfig={cluster.kubeconfig}")
    assert text.startswith("CloneSet default/web  3 desired, 3 exist, 3 ready, 1 of 1 updated")

    where = f"--kubeconfig={cluster.kubeconfig}"
    why = json.loads(said("explain", "clone", "web", "-o", "json", nats, where))
    assert (why["kind"], why["name"], why["service"]) == ("CloneSet", "web", "cloneset")
    assert why["generation"] == cluster.read("clone", "web")["metadata"]["generation"]
    text = said("explain", "clone", "web", nats, where)
    assert re.match(r"on hold: 1 of 3 pods updated, partition .*\nCloneSet default/web  generation \d, planned ", text)
    nobody = f"--kubeconfig={tmp_path / 'none'}"
    alone = said("explain", "clone", "web", nats, nobody).splitlines()
    assert alone[0] == text.splitlines()[0]
    assert alone[2].startswith("  ! only the last record of its service is available: ")


@pytest.mark.timeout(300)
async def test_pods_with_numbers_have_a_tree_and_can_be_recorded(flotilla: Fleet, tmp_path: Path):
    cluster, nats = flotilla.cluster, f"--nats={flotilla.nats.url}"
    cluster.apply(NUMBERED)
    await eventually(lambda: cluster.read("asts", "db").get("status", {}).get("readyReplicas") == 2)
    tree = said("get", "asts", "db", nats, f"--kubeconfig={cluster.kubeconfig}").splitlines()
    assert tree[0].startswith("StatefulSet default/db  2 desired, 2 exist, 2 ready, 2 of 2 updated")
    assert tree[1] == "├── reserved ordinals: 1"
    assert re.findall(r"(db-\d) +Running", "\n".join(tree)) == ["db-0", "db-2"]
    assert "2 of 2 pods updated" in said("explain", "asts", "db", nats, f"--kubeconfig={cluster.kubeconfig}")
    bundle = str(tmp_path / "db.jsonl")
    said("bundle", "asts", "db", "-o", bundle, nats)
    assert "all 1 decisions match those of the service" in said("replay", bundle)


def test_a_tree_without_the_bus_says_that_it_knows_less(flotilla: Fleet):
    dead = [f"--nats=nats://127.0.0.1:{free_ports(1)[0]}", f"--kubeconfig={flotilla.cluster.kubeconfig}"]
    line = command("get", "clone", "web", "-o", "json", *dead)
    reply = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    assert json.loads(reply.stdout)["toldBy"] == "status"
    assert reply.stderr.startswith("the bus does not answer")


def test_explain_says_when_there_is_no_such_object(flotilla: Fleet):
    where = (f"--nats={flotilla.nats.url}", f"--kubeconfig={flotilla.cluster.kubeconfig}")
    line = command("explain", "clone", "nothing", *where)
    reply = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    assert reply.returncode == 1
    assert "CloneSet default/nothing does not exist" in reply.stderr
