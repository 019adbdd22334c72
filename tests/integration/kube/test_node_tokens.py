"""A real apiserver reports the node of an agent's pod, from a token that is bound to the pod."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest_asyncio

from flotilla_cli.connection import Target
from flotilla_common.bus import callout
from flotilla_common.bus.interface import Message
from flotilla_common.bus.tokens import ACCOUNT, USER, KeyPair, claims_of
from flotilla_common.clock import SystemClock
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config, read_here
from flotilla_watcher.node_logins import NodeLogins
from tests.support.cluster import Cluster

AGENT = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "agent"},
    "spec": {
        "nodeName": "fake-0",
        "serviceAccountName": "flotilla-nodeagent",
        "containers": [{"name": "agent", "image": "x"}],
    },
}


class World:
    """A cluster with an agent's pod, and the watcher's judgement."""

    def __init__(self, cluster: Cluster, logins: NodeLogins) -> None:
        self.cluster = cluster
        self.logins = logins

    def token(self, account: str, audience: str, *bound: str) -> str:
        command = ["create", "token", account, "--audience", audience, "--duration", "10m", *bound]
        return self.cluster.kubectl(*command).strip()

    async def outcome(self, token: str) -> dict[str, str]:
        """Return the claims that NATS receives."""
        server = KeyPair.generate(USER)
        asked = {"server_id": {"id": server.public}, "user_nkey": "U1", "connect_opts": {"auth_token": token}}
        data = server.sign({"iss": server.public, "nats": asked}).encode()
        answer = await self.logins.answer(Message(subject=callout.SUBJECT, data=data))
        assert answer is not None
        return msgspec.json.decode(claims_of(answer.decode()))["nats"]


@pytest_asyncio.fixture
async def world(cluster: Cluster) -> AsyncIterator[World]:
    for account in ("flotilla-nodeagent", "other"):
        cluster.kubectl("create", "serviceaccount", account)
    cluster.create(AGENT)
    api = KubeClient(await load_config(Target(str(cluster.kubeconfig)), reader=read_here), user_agent="test")
    logins = NodeLogins(
        api=api,
        clock=SystemClock(),
        issuer=KeyPair.generate(ACCOUNT),
        account="system:serviceaccount:default:flotilla-nodeagent",
        audience="flotilla-bus",
    )
    yield World(cluster, logins)
    await api.close()


BOUND = ("--bound-object-kind", "Pod", "--bound-object-name", "agent")


async def test_tokens(world: World) -> None:
    node = world.cluster.read("pod", "agent")["spec"]["nodeName"]
    good = world.token("flotilla-nodeagent", "flotilla-bus", *BOUND)
    user = msgspec.json.decode(claims_of((await world.outcome(good))["jwt"]))
    assert user["name"] == f"node/{node}"
    assert user["nats"]["pub"]["allow"] == [f"report.v1.{node}.>", f"heartbeat.v1.nodeagent.{node}"]

    unbound = world.token("flotilla-nodeagent", "flotilla-bus")
    assert "not bound to a pod" in (await world.outcome(unbound))["error"]
    elsewhere = world.token("flotilla-nodeagent", "https://kubernetes.default.svc", *BOUND)
    assert "not valid here" in (await world.outcome(elsewhere))["error"]
    stranger = world.token("other", "flotilla-bus")
    assert "is not the agents' account" in (await world.outcome(stranger))["error"]
    assert "not valid here" in (await world.outcome("made.up.token"))["error"]

    world.cluster.kubectl("delete", "pod", "agent", "--force", "--grace-period=0")
    async with asyncio.timeout(30):  # the apiserver caches a reviewed token for ten seconds
        while "jwt" in (await world.outcome(good)):
            await SystemClock().sleep(1)
