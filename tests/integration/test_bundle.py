"""`flotilla bundle` beside a running rollout, and `flotilla replay` of what it recorded."""

import asyncio
import json
import signal
import subprocess
import sys
import urllib.request
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.broker import environment
from tests.support.cluster import control_plane, eventually
from tests.support.fleet import Fleet, fleet
from tests.testkit.documents import Json

SECRET = "hunter2-is-the-password"
MANIFEST = f"""
apiVersion: apps.kruise.io/v1beta1
kind: CloneSet
metadata: {{name: web}}
spec:
  replicas: 4
  selector: {{matchLabels: {{app: web}}}}
  minReadySeconds: 1
  updateStrategy: {{type: RollingUpdate, rollingUpdate: {{podUpdatePolicy: InPlaceIfPossible, maxUnavailable: 1}}}}
  volumeClaimTemplates:
  - metadata: {{name: data}}
    spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Mi}}}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - name: main
        image: nginx:alpine
        args: [--token={SECRET}]
        env: [{{name: PASSWORD, value: {SECRET}}}]
"""
OTHER = (
    MANIFEST.replace("name: web}", "name: other}")
    .replace("app: web", "app: other")
    .replace("replicas: 4", "replicas: 1")
)
IMAGE = '[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:mainline"}]'
GATE = "CloneSetShortHash=true"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def flotilla(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    flags = (f"--feature-gates={GATE}",)
    async with control_plane(tmp_path_factory.mktemp("plane")) as cluster, fleet(cluster, flags=flags) as running:
        cluster.apply(f"{MANIFEST}\n---{OTHER}")
        await eventually(lambda: status(running).get("availableReplicas") == 4)
        yield running


def status(running: Fleet) -> Json:
    return running.cluster.read("clone", "web").get("status", {})


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "flotilla_cli", *arguments]


def listens(running: Fleet) -> bool:
    """Report whether the recorder has subscribed to everything, and read the streams: its consumers are gone again."""
    with urllib.request.urlopen(f"{running.nats.monitor}/connz?subs=1", timeout=5) as reply:
        connections = json.loads(reply.read())["connections"]
    return any("act.v1.*.*.default.*" in one.get("subscriptions_list", ()) for one in connections)


async def recorded(running: Fleet, path: Path) -> None:
    """Record a rollout with a change of mind in its middle, and a scale-in."""
    line = command("bundle", "clone/web", "--seconds=300", f"--nats={running.nats.url}", "-o", str(path))
    # Tests run in the background ignore SIGINT, and children inherit that.
    line, env = ["env", "--default-signal=INT", *line], environment(running.nats)
    recorder = await asyncio.create_subprocess_exec(*line, stdout=PIPE, env=env)
    cluster = running.cluster
    await eventually(lambda: listens(running))
    cluster.kubectl("patch", "clone", "web", "--type=json", "-p", IMAGE)
    await eventually(lambda: status(running).get("updatedReadyReplicas", 0) >= 1)
    cluster.kubectl("patch", "clone", "web", "--type=merge", "-p", '{"spec":{"replicas":3}}')
    await eventually(lambda: status(running).get("updatedAvailableReplicas") == 3)
    recorder.send_signal(signal.SIGINT)
    output, _ = await recorder.communicate()
    assert recorder.returncode == 0
    assert "received in" in output.decode()


def replayed(path: Path) -> tuple[int, Json]:
    line = command("replay", str(path), "-o", "json")
    reply = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert reply.returncode in (0, 1), reply.stderr
    return reply.returncode, json.loads(reply.stdout)


@pytest.mark.timeout(300)  # some starts of Python processes, seconds each on a loaded machine
async def test_a_recorded_rollout_is_planned_again(flotilla: Fleet, tmp_path: Path):
    path = tmp_path / "web.jsonl"
    await recorded(flotilla, path)
    text = path.read_text()
    assert SECRET not in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert (lines[0]["record"], lines[0]["name"], lines[0]["planning"]["gates"]) == ("bundle", "web", GATE)
    assert lines[0]["planning"]["options"]["server_version"].startswith("v1.")
    assert not any("other-" in line.get("subject", "") for line in lines)

    code, told = replayed(path)
    assert [step["differences"] for step in told["steps"] if step["differences"]] == []
    assert (code, told["differing"], told["missingVersions"]) == (0, 0, 0)
    intents = {act["intent"] for step in told["steps"] for act in step["did"]}
    assert {"revision", "in-place update", "scale in"} <= intents, intents
    assert len(told["steps"]) > 5

    tampered = tmp_path / "tampered.jsonl"
    tampered.write_text(text.replace('"maxUnavailable":1', '"maxUnavailable":3'))
    code, told = replayed(tampered)
    assert code == 1
    assert any("patch" in line for step in told["steps"] for line in step["differences"])


def test_at_rest_the_last_words_are_judged(flotilla: Fleet, tmp_path: Path):
    path = tmp_path / "rest.jsonl"
    line = command("bundle", "clone", "other", f"--nats={flotilla.nats.url}", "-o", str(path))
    subprocess.run(line, check=True, timeout=60, stdout=subprocess.DEVNULL, env=environment(flotilla.nats))
    code, told = replayed(path)
    assert (code, len(told["steps"])) == (0, 1)
    assert told["steps"][0]["writes"] == []
    assert any(json.loads(line).get("subject", "").startswith("act.v1.") for line in path.read_text().splitlines())


def test_what_the_bus_does_not_know_is_said(flotilla: Fleet):
    line = command("bundle", "clone", "nothing", f"--nats={flotilla.nats.url}")
    env = environment(flotilla.nats)
    reply = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert reply.returncode == 1
    assert "the bus has no cloneset default/nothing" in reply.stderr
