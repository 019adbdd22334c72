"""The bus observed by the stock client with the read-only user, and by our own commands."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import nats
import pytest
from nats.aio.client import Client

from flotilla_cli.nats_config import credentials_of
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.bus.credentials import seed_in
from flotilla_common.bus.interface import BusError, Message
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.permissions import READER
from tests.support.broker import people
from tests.support.cluster import eventually
from tests.support.fleet import Fleet
from tests.support.stock_client import stock_client
from tests.support.workspace import Workspace, watched
from tests.testkit.documents import Json

pytestmark = [pytest.mark.asyncio, pytest.mark.timeout(300)]

DOCS = Path(__file__).parents[2] / "docs" / "bus.md"
PODS = 50
WEB = {
    "apiVersion": "apps.kruise.io/v1beta1",
    "kind": "CloneSet",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": PODS,
        "selector": {"matchLabels": {"app": "web"}},
        "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 10}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:alpine", "env": [{"name": "KEY", "value": "a"}]}]},
        },
    },
}


@pytest.fixture
def space(shared: Fleet, request: pytest.FixtureRequest) -> Iterator[Workspace]:
    with watched(shared.cluster, request.node.nodeid, CLONE_SET) as made:
        yield made


def flotilla(shared: Fleet, *arguments: str, user: str = "flotilla") -> str:
    """Return the output of a command, as a user of the bus."""
    seed = credentials_of(Path(shared.nats.credentials), user)
    line = [sys.executable, "-m", "flotilla_cli", *arguments, f"--nats={shared.nats.url}"]
    env = {"FLOTILLA_NATS_CREDS": str(seed), "KUBECONFIG": str(shared.cluster.kubeconfig), "PATH": "/usr/bin:/bin"}
    reply = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False, env=env)
    assert reply.returncode == 0, reply.stderr
    return reply.stdout


async def test_a_rollout_of_fifty_pods_is_told_on_one_screen(shared: Fleet, space: Workspace) -> None:
    space.apply(WEB)
    space.settled("web", availableReplicas=PODS)
    secret = {"name": "KEY", "value": "hunter2"}
    space.json_patch(
        {"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "nginx:mainline"}, name="web"
    )
    space.settled("web", updatedAvailableReplicas=PODS)
    space.refused("patch", "clone", "web", "--type=merge", "-p", '{"spec":{"replicas":-1}}')

    # The reader sees the same as the user who may do everything
    text = flotilla(shared, "history", "clone", "web", "-n", space.name, user=READER)
    lines = text.splitlines()
    assert len(lines) <= 50
    assert lines[2].endswith("generation 2 changed by admin with kubectl-patch")
    assert lines[3].strip() == "spec.template.spec.containers[main].image  nginx:alpine → nginx:mainline"
    assert re.search(rf"in-place update to web-\w+: .*\(\d+ pods?, \d+ of {PODS}\); done after", text)
    assert f"{PODS} of {PODS})" in text
    assert f"{PODS} of {PODS} pods updated, all available" in text
    assert f"3.0 for each of {PODS} pods" in lines[-2]
    assert re.search(r"the slowest was web-\w+ with [\d.]+ s, the last one web-\w+$", lines[-1])

    story = json.loads(flotilla(shared, "history", "clone", "web", "-n", space.name, "-o", "json"))
    created, rollout = story["chapters"]
    assert created["title"] == "created by admin with kubectl-client-side-apply"
    assert created["totals"]["podWrites"] == 2 * PODS
    assert rollout["done"]
    pods = {write["name"] for write in rollout["writes"] if write["kind"] == "Pod"}
    assert pods == set(space.pods)

    past = flotilla(shared, "tail", "web", "-n", space.name, "--since", "5m", "--no-follow", "-o", "json").splitlines()
    told = [json.loads(line) for line in past]
    moments = [line["at"] for line in told]
    assert moments == sorted(moments)
    assert {line["stream"] for line in told} == {"kube", "act", "why"}
    writes = [line for line in told if line["stream"] == "act" and line["kind"] == "Pod"]
    assert len(writes) == 250  # two for each created pod, three for each updated one
    assert sum(line["service"] == "webhook" for line in told) == 2

    # Another change: the content of the environment is not published
    space.json_patch({"op": "replace", "path": "/spec/template/spec/containers/0/env/0", "value": secret}, name="web")
    space.scale(3, "web")
    await eventually(lambda: "scaled with kubectl" in flotilla(shared, "history", "clone", "web", "-n", space.name))
    all_of_it = flotilla(shared, "history", "clone", "web", "-n", space.name, "--since", "5m", "--all")
    assert "spec.template.spec.containers[main].env[KEY].value\n" in all_of_it
    assert "hunter2" not in all_of_it
    pod = flotilla(shared, "history", "pod", min(space.pods), "-n", space.name)
    assert "cloneset: create, scale up for CloneSet web → Ok" in pod


async def test_the_bus_is_shown(shared: Fleet, space: Workspace) -> None:
    space.apply(WEB | {"spec": WEB["spec"] | {"replicas": 1}})
    space.settled("web", availableReplicas=1)
    found = json.loads(flotilla(shared, "bus", "--seconds", "5.5", "-o", "json", user=READER))
    rows = {row["name"]: row for row in found["streams"]}
    assert {"act", "why", "decisions", "kube_core_pods", "kube_apps_kruise_io_clonesets"} <= rows.keys()
    pods = rows["kube_core_pods"]
    assert pods["state"] == "synced"
    assert pods["publisher"].startswith("watcher/")
    assert pods["readers"] >= 2
    assert {beat["service"] for beat in found["replicas"]} >= {"watcher", "cloneset", "webhook"}
    assert found["largest"][0]["bytes"] > 500
    assert "published-by" in flotilla(shared, "bus", "--seconds", "0.1")


async def test_what_the_docs_say_works_for_the_user_that_only_reads(
    shared: Fleet, space: Workspace, tmp_path: Path
) -> None:
    space.apply(WEB | {"spec": WEB["spec"] | {"replicas": 1}})
    space.settled("web", availableReplicas=1)
    client = await stock_client(shared.nats, tmp_path)
    commands = re.findall(r"^nats ((?:sub|stream|consumer) [^#\n]*)", DOCS.read_text(), re.MULTILINE)
    assert len(commands) > 12
    following = [line for line in commands if line.startswith("sub")]
    texts = {
        line: client.run(*_words(line, space.name)) for line in commands if line not in following and "view" not in line
    }
    assert '"generation":1' in texts["stream get why --last-for why.v1.clonesets.default.web   "]
    listening = [asyncio.to_thread(client.run, *_words(line, space.name), seconds=5.5) for line in following]
    heard = await asyncio.gather(*listening)
    assert any("heartbeat.v1.cloneset" in text for text in heard)
    assert any("act.v1.webhook.clonesets" in text for text in heard)
    assert any("decisions.v1.clonesets" in text for text in heard)
    page = await asyncio.to_thread(client.on_a_terminal, ["stream", "view", "act", "5"], "Next Page?")
    assert "[1] Subject: act.v1." in page


def _words(line: str, namespace: str) -> list[str]:
    """Return the words of a command of the docs, for a namespace of our own."""
    quoted = re.findall(r"'([^']*)'|(\S+)", line.replace("2>/dev/null", ""))
    words = [one or other for one, other in quoted]
    return [word.replace(".default.", f".{namespace}.") for word in words]


async def test_the_stock_client_can_write_nothing(shared: Fleet, space: Workspace, tmp_path: Path) -> None:
    client = await stock_client(shared.nats, tmp_path)
    for line in (
        "stream add mine --subjects mine.> --defaults",
        "stream edit act --max-age 1m --force",
        "stream rm act --force",
        "stream purge act --force",
        "stream rmm act 1 --force",
        "stream copy act mine --subjects mine.>",
        "consumer add act mine --pull --defaults --ack explicit --max-pending 5 --target why.v1.clonesets.a.b",
        "pub act.v1.intruder.pods.a.b x",
        "pub kube.v1.core.pods.a.intruder x",
        "pub why.v1.clonesets.a.intruder x",
        "pub decisions.v1.clonesets.a.intruder x",
        "pub node.v1.n.nodeimages._.intruder x",
        "pub heartbeat.v1.intruder.x x",
        "pub _INBOX.cloneset.x x",
        "pub $SYS.REQ.SERVER.PING x",
        "request report.v1.n.pods.a.intruder x",
        "sub >",
        "sub _INBOX.>",
        "sub report.v1.>",
        "sub $SYS.>",
    ):
        client.refused(*line.split())


class Intruder:
    """The user that only reads, with a client that does as it likes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.inbox = "_INBOX_reader.intruder"

    async def ask(self, verb: str, body: Json, reply: str) -> None:
        await self._client.publish(f"reader.v1.{verb}", msgspec.json.encode(body), reply=reply)

    async def answer(self, verb: str, body: Json) -> Json:
        reply = await self._client.request(f"reader.v1.{verb}", msgspec.json.encode(body), timeout=5)
        return msgspec.json.decode(reply.data)


LIVE = "heartbeat.v1.intruder.a"
TARGETS = ("act.v1.intruder.pods.a.b", "why.v1.clonesets.a.intruder", "kube.v1.core.pods.a.intruder", LIVE)
STREAMS = ("act", "why", "kube_core_pods")


async def _stored(bus: NatsBus) -> list[str]:
    """Return the subjects at which the intruder has stored something in a stream."""
    return [one for name, one in zip(STREAMS, TARGETS, strict=False) if await bus.get_last(name, one)]


async def test_no_trick_makes_the_server_write_for_the_reader(shared: Fleet, space: Workspace) -> None:
    """An answer, or what a consumer sends, on a subject that a stream takes."""
    space.apply(WEB | {"spec": WEB["spec"] | {"replicas": 1}})
    space.settled("web", availableReplicas=1)
    seed = seed_in(credentials_of(Path(shared.nats.credentials), READER).read_text())
    refusals: list[str] = []

    async def on_error(error: Exception) -> None:
        refusals.append(str(error).lower())

    client = await nats.connect(shared.nats.url, nkeys_seed_str=seed, inbox_prefix="_INBOX_reader.x", error_cb=on_error)
    intruder = Intruder(client)
    try:
        async with shared.bus() as bus:
            heard: list[Message] = []
            for target in TARGETS:
                await bus.subscribe(target, heard.append)
            await _tricks(intruder, bus)
            assert (await _stored(bus), heard) == ([], [])
            for subject in (
                *TARGETS,
                "$JS.API.STREAM.INFO.act",
                "$JS.ACK.act.x.1.1.1.1.1",
                "$JS.FC.act.x",
                "_INBOX.jobs.1",
            ):
                await client.publish(subject, b"{}", reply=TARGETS[0])
            await client.flush()
            await eventually(lambda: len([one for one in refusals if "publish" in one]) == len(TARGETS) + 4)
            assert (await _stored(bus), heard) == ([], [])
            await _the_tricks_are_real(bus, heard)
    finally:
        await client.close()


async def _tricks(intruder: Intruder, bus: NatsBus) -> None:
    last = {"last_by_subj": "act.v1.>"}
    for target in (*TARGETS, "_INBOX.cloneset.x", "$JS.API.STREAM.DELETE.act"):
        await intruder.ask("STREAM.INFO.act", {}, target)
        await intruder.ask("STREAM.MSG.GET.act", last, target)
        await intruder.ask("DIRECT.GET.act", last, target)
        sending = {"stream_name": "act", "config": {"deliver_subject": target, "deliver_policy": "last"}}
        for verb in ("CONSUMER.CREATE.act", "CONSUMER.CREATE.act.mine", "CONSUMER.CREATE.act.mine.>"):
            assert "has to be an inbox of this user" in (await intruder.answer(verb, sending))["error"]["description"]
        durable = await intruder.answer("CONSUMER.DURABLE.CREATE.act.mine", sending)
        assert "read-only" in durable["error"]["description"]
    config = {"name": "others", "ack_policy": "explicit", "inactive_threshold": 60 * 10**9}
    request = msgspec.json.encode({"stream_name": "act", "config": config})
    await bus.request("$JS.API.CONSUMER.CREATE.act.others", request, 5)
    for verb in ("CONSUMER.MSG.NEXT.act.others", "CONSUMER.DELETE.act.others"):
        assert "not this user's own" in (await intruder.answer(verb, {"batch": 1}))["error"]["description"]
    pulled = {"stream_name": "act", "config": {"name": "mine", "deliver_policy": "last"}}
    made = await intruder.answer("CONSUMER.CREATE.act.mine", pulled)
    assert made["config"]["ack_policy"] == "none"
    await intruder.ask("CONSUMER.MSG.NEXT.act.mine", {"batch": 1}, TARGETS[0])
    assert (await intruder.answer("CONSUMER.DELETE.act.mine", {}))["success"]
    assert (await intruder.answer("STREAM.INFO.act", {}))["config"]["name"] == "act"  # handled


async def _the_tricks_are_real(bus: NatsBus, heard: list[Message]) -> None:
    """Check that the attempts work with the API at hand, so that the test above would have seen them."""
    sending = {"stream_name": "act", "config": {"deliver_subject": LIVE, "deliver_policy": "last"}}
    made = msgspec.json.decode(await bus.request("$JS.API.CONSUMER.CREATE.act", msgspec.json.encode(sending), 5))
    await eventually(lambda: any(message.subject.startswith("act.v1.") for message in heard), 20)
    await bus.request(f"$JS.API.CONSUMER.DELETE.act.{made['name']}", b"", 5)
    await bus.forward("$JS.API.DIRECT.GET.act", b'{"last_by_subj":"act.v1.>"}', TARGETS[1])
    await bus.forward("$JS.API.STREAM.INFO.act", b"", TARGETS[0])
    await eventually(lambda: len(heard) >= 3, 20)
    assert await _stored(bus) == list(TARGETS[:2])
    for stream, subject in zip(STREAMS[:2], TARGETS[:2], strict=True):
        await bus.request(f"$JS.API.STREAM.PURGE.{stream}", msgspec.json.encode({"filter": subject}), 5)


async def test_others_than_the_reader_have_their_own_way(shared: Fleet) -> None:
    """`people` ask JetStream directly; without a watcher they still can."""
    bus = NatsBus(people(shared.nats), name="flotilla")
    try:
        await eventually(lambda: bus.connected)
        assert await bus.stream_state("decisions") is not None
        with pytest.raises(BusError):
            await bus.request("reader.v1.STREAM.INFO.act", b"", 0.5)  # its inbox is not the reader's
    finally:
        await bus.close()
