"""Copies of pull secrets (imagepull.md §6, examples 20, 21 and 23), and where they are read."""

import asyncio
from typing import Any, cast

import msgspec
import pytest

from flotilla_common.api.kinds.imagepulljob.types import ImagePullJob
from flotilla_common.api.kinds.nodeimage.types import NODE_IMAGE, SecretReference
from flotilla_common.api.resources import SECRET
from flotilla_common.control.keystate import Key
from flotilla_common.control.plan import Plan
from flotilla_common.installed import installed_components
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.node.reports import SECRETS, SecretsAnswer, SecretsRequest
from flotilla_common.node.sealing import Opener
from flotilla_common.node.serving import Sender
from flotilla_jobs.imagepull.source_secrets import REFRESH_SECONDS, SourceSecrets
from flotilla_jobs.pull_secrets import PULL_SECRETS
from flotilla_watcher.app import published
from tests.support.controller_context import FakeContext
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json
from tests.testkit.plans import codes
from tests.unit.imagepull.build import (
    begun,
    copy_of,
    entry,
    fresh,
    job,
    node_image,
    planned,
    pulling,
    secret,
    succeeded,
    summary,
    tag,
)

WITH = {"pullSecrets": ["s1"], "status": begun()}
BATCH = {"namespace": "kruise-daemon-config", "name": "s1-copy", "mode": "batch"}


def bodies(plan: Plan) -> list[Json]:
    return [cast("Json", getattr(action, "body", {})) for action in plan.actions]


def test_20_a_missing_secret_does_not_hold_the_job_up():
    plan = planned(job(**WITH), fresh("n1"), sources={"s1": None})
    assert summary(plan) == ["push n1"]
    assert "SecretsMissing" in codes(plan)
    assert "pullSecrets" not in bodies(plan)[0]["spec"]["images"]["nginx"]


def test_20_when_it_comes_a_copy_is_made_and_told_without_a_new_round():
    plan = planned(job(parallelism=2, **WITH), [pulling("n1")], sources={"s1": secret()})
    create, push = bodies(plan)
    assert create["metadata"]["name"].startswith("s1-")
    assert len(create["metadata"]["name"]) == len("s1-") + 6
    assert create["metadata"]["annotations"] == {
        "imagepulljobs.kruise.io/source-key": "ns/s1",
        "imagepulljobs.kruise.io/references": "ns/J",
        "imagepulljobs.kruise.io/mode": "batch",
    }
    change = push["spec"]["images"]["nginx"]
    assert change == {
        "pullSecrets": [{"namespace": "kruise-daemon-config", "name": create["metadata"]["name"], "mode": "batch"}]
    }
    assert summary(plan)[0].startswith("create Secret")


def test_unread_secrets_are_waited_for():
    plan = planned(job(**WITH), fresh("n1"))
    assert summary(plan) == []
    assert codes(plan) == {"WaitingForSecrets"}
    assert plan.status is not None


def test_labels_and_annotations_are_copied_but_not_the_last_apply():
    source = secret(labels={"a": "b"}, annotations={"x": "y", "kubectl.kubernetes.io/last-applied-configuration": "{}"})
    create = bodies(planned(job(**WITH), sources={"s1": source}, nodes=fresh("n1")))[0]
    assert create["metadata"]["labels"] == {"a": "b"}
    assert create["metadata"]["annotations"]["x"] == "y"
    assert "last-applied" not in str(create)


def test_21_one_copy_for_two_jobs():
    copies = [copy_of("s1", "ns/A")]
    plan = planned(job("B", **WITH), fresh("n1"), sources={"s1": secret()}, copies=copies)
    assert summary(plan) == ["patch Secret s1-copy", "push n1"]
    patch, push = bodies(plan)
    assert patch == {"metadata": {"annotations": {"imagepulljobs.kruise.io/references": "ns/A,ns/B"}}}
    assert push["spec"]["images"]["nginx"]["pullSecrets"] == [BATCH]
    (write,) = plan.actions[:1]
    assert getattr(write, "resource_version", "") == "1"


OVER = {"startTime": begun()["startTime"], "completionTime": begun(1)["startTime"], "desired": 1}


@pytest.mark.parametrize(
    ("users", "write"),
    [
        pytest.param(["ns/A", "ns/B"], "patch Secret s1-copy", id="21: A completes"),
        pytest.param(["ns/A"], "delete Secret s1-copy", id="21: the last one"),
        pytest.param(["ns/B"], "", id="not ours"),
    ],
)
def test_release(users: list[str], write: str):
    one = job("A", pullSecrets=["s1"], status=OVER)
    expected = [write, "patch ImagePullJob A"] if write else ["patch ImagePullJob A"]
    assert summary(planned(one, copies=[copy_of("s1", *users)])) == expected
    deleted = job("A", pullSecrets=["s1"], meta={"deletionTimestamp": "2026-03-01T11:00:00Z"})
    assert summary(planned(deleted, copies=[copy_of("s1", *users)])) == expected


def test_23_a_job_beside_the_copies_names_its_secrets_directly():
    one = job(meta={"namespace": "kruise-daemon-config"}, **WITH)
    plan = planned(one, fresh("n1"))
    assert summary(plan) == ["push n1"]
    assert bodies(plan)[0]["spec"]["images"]["nginx"]["pullSecrets"] == [
        {"namespace": "kruise-daemon-config", "name": "s1"}
    ]


def test_changed_data_reaches_the_copy():
    copies = [copy_of("s1", "ns/J", data="b2xk")]
    plan = planned(job(**WITH), [succeeded("n1")], sources={"s1": secret()}, copies=copies)
    assert bodies(plan)[0] == {"data": {".dockerconfigjson": "eA=="}}


def test_what_cannot_be_changed_is_made_anew():
    copy = msgspec.structs.replace(copy_of("s1", "ns/J", data="b2xk"), immutable=True)
    plan = planned(job(**WITH), [pulling("n1")], sources={"s1": secret()}, copies=[copy])
    assert summary(plan)[0] == "delete Secret s1-copy"


def test_a_copy_that_is_right_is_left_alone():
    held = node_image("n1", [tag("J")], [entry("Pulling")], secrets=[BATCH])
    plan = planned(job(**WITH), [held], sources={"s1": secret()}, copies=[copy_of("s1", "ns/J")])
    assert summary(plan) == []


def test_of_several_copies_the_one_in_use_wins_and_else_the_first():
    copies = [copy_of("s1", name="a"), copy_of("s1", "ns/J", name="b")]
    plan = planned(job(**WITH), fresh("n1"), sources={"s1": secret()}, copies=copies)
    assert bodies(plan)[-1]["spec"]["images"]["nginx"]["pullSecrets"][0]["name"] == "b"
    copies = [copy_of("s1", "ns/X", name="a"), copy_of("s1", "ns/X", name="b")]
    plan = planned(job(**WITH), fresh("n1"), sources={"s1": secret()}, copies=copies)
    assert bodies(plan)[-1]["spec"]["images"]["nginx"]["pullSecrets"][0]["name"] == "a"


def test_a_copy_of_a_secret_that_is_not_wanted_any_more_is_released():
    plan = planned(job(status=begun()), fresh("n1"), copies=[copy_of("old", "ns/J")])
    assert summary(plan) == ["delete Secret old-copy", "push n1"]


def test_a_taken_name_is_avoided():
    first = bodies(planned(job(**WITH), fresh("n1"), sources={"s1": secret()}))[0]["metadata"]["name"]
    plan = planned(job(**WITH), fresh("n1"), sources={"s1": secret()}, taken={first})
    assert bodies(plan)[0]["metadata"]["name"] not in ("", first)


def test_a_node_that_lacks_a_secret_uses_a_slot():
    nodes = [succeeded("n1"), *fresh("n2")]
    plan = planned(job(**WITH), nodes, sources={"s1": secret()}, copies=[copy_of("s1", "ns/J")])
    assert summary(plan) == ["push n1"]
    assert bodies(plan)[0]["spec"]["images"]["nginx"].keys() == {"pullSecrets"}, "no new round"


class OneSecret:
    """Serves what is in it, and counts."""

    def __init__(self) -> None:
        self.held: dict[Key, bytes] = {}
        self.asked: list[Key] = []
        self.down = False

    async def get(self, resource: object, namespace: str, name: str) -> bytes:
        self.asked.append((namespace, name))
        if self.down:
            raise ApiError(500, "InternalError", "down")
        if (namespace, name) not in self.held:
            raise ApiError(404, "NotFound", "")
        return self.held[namespace, name]


async def settle() -> None:
    """Let pending reads end."""
    for _ in range(10):
        await asyncio.sleep(0)


async def until(clock: FakeClock, time: float) -> None:
    """Let others run until it is later than that."""
    for _ in range(1000):
        if clock.time > time:
            return
        await asyncio.sleep(0)
    raise AssertionError("nobody waits any more")


class Sources:
    """The cache over one apiserver. `planned`: the requeued jobs; `news`: the secrets that have changed."""

    def __init__(self, *jobs: ImagePullJob) -> None:
        self.api, self.clock = OneSecret(), FakeClock()
        self.planned: list[Key] = []
        self.news: list[Key] = []
        self.wanted = {("ns", "s1"): {one.metadata.uid for one in jobs}}
        self.secrets = SourceSecrets(
            get=self.api.get,
            clock=self.clock,
            requeue=lambda *key: self.planned.append(key),
            wanted=lambda: self.wanted,
            changed=self.news.append,
        )
        self.of = self.secrets.of


async def test_sources_are_read_when_asked_for_and_looked_at_again():
    one = job(**WITH)
    case = Sources(one)
    assert case.of(one) == {}
    running = asyncio.create_task(case.secrets._reads.run())
    await settle()
    assert (case.of(one), case.planned, case.news) == ({"s1": None}, [("ns", "J")], [])
    running.cancel()
    case.api.held["ns", "s1"] = msgspec.json.encode(secret())
    running = asyncio.create_task(case.secrets.run())
    await until(case.clock, REFRESH_SECONDS)
    found = case.of(one)["s1"]
    assert found is not None
    assert found.metadata.name == "s1"
    assert (case.planned, case.news) == ([("ns", "J")], [("ns", "s1")])
    case.api.down = True
    await until(case.clock, 3 * REFRESH_SECONDS)
    assert case.of(one)["s1"] is not None, "an apiserver that is away changes nothing"
    running.cancel()


async def test_a_job_that_begins_does_not_rely_on_what_another_job_was_told():
    first, second, third = job("A", **WITH), job("B", **WITH), job("C", **WITH)
    case = Sources(first, second, third)
    running = asyncio.create_task(case.secrets._reads.run())
    case.of(first)
    await settle()
    case.api.held["ns", "s1"] = msgspec.json.encode(secret())
    assert (case.of(first), case.of(second)) == ({"s1": None}, {})
    await settle()
    assert case.of(first) == case.of(second) == {"s1": secret()}
    assert (case.planned, case.news) == ([("ns", "A"), ("ns", "B")], [("ns", "s1")])
    case.api.down = True
    assert case.of(third) == {}
    await settle()
    assert case.of(third) == {}
    assert (len(case.api.asked), case.planned[2:]) == (2 + len(case.clock.sleeps), [])
    case.api.down = False
    await settle()
    assert (case.of(third), case.planned[2:], case.news) == ({"s1": secret()}, [("ns", "C")], [("ns", "s1")])
    case.secrets._forget({})
    assert case.of(first) == {}
    running.cancel()


async def test_a_job_that_asks_during_a_read_waits_for_the_next_one():
    first, second = job("A", **WITH), job("B", **WITH)
    case = Sources(first, second)
    get = case.api.get

    async def slowly(resource: object, namespace: str, name: str) -> bytes:
        try:
            return await get(resource, namespace, name)
        finally:
            case.of(second)
            case.api.held["ns", "s1"] = msgspec.json.encode(secret())

    case.secrets._get = slowly
    running = asyncio.create_task(case.secrets._reads.run())
    case.of(first)
    await settle()
    assert (case.of(first), case.planned) == ({"s1": None}, [("ns", "A"), ("ns", "B")])
    assert case.of(second) == {}
    await settle()
    assert case.of(second) == {"s1": secret()}
    running.cancel()


async def test_a_job_that_ends_is_not_read_for():
    one = job(**WITH)
    case = Sources(one)
    case.of(one)
    case.secrets._forget({})
    running = asyncio.create_task(case.secrets._reads.run())
    await settle()
    assert case.api.asked == []
    running.cancel()


class SecretServer:
    """The responder over its two tables; reading finds nothing more."""

    def __init__(self) -> None:
        self.context = FakeContext()
        self.images, self.secrets = (self.context.table(watch) for watch in PULL_SECRETS.watches)
        self.images.apply(node_image("n1", [tag("J")], secrets=[BATCH]))
        self.secrets.apply(copy_of("s1", "ns/J"))
        self.opener = Opener()

    async def ask(self, name: str, node: str = "n1", about: str = "n1", namespace: str = "kruise-daemon-config") -> Any:
        reference = SecretReference(namespace=namespace, name=name)
        request = SecretsRequest(public_key=self.opener.public_key, references=[reference])
        await PULL_SECRETS.build(self.context)
        assert self.context.by_any_replica == set(PULL_SECRETS.answers)
        return await self.context.tell(SECRETS, Sender(node, "", about), request)


async def test_a_node_gets_what_its_node_image_names():
    server = SecretServer()
    answer = await server.ask("s1-copy")
    assert isinstance(answer, SecretsAnswer)
    assert [one.data for one in server.opener.open(answer.sealed)] == [{".dockerconfigjson": "eA=="}]
    assert "eA==" not in answer.sealed


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param({"name": "other"}, id="not referred to"),
        pytest.param({"name": "s1-copy", "node": "n2", "about": "n2"}, id="another node's"),
        pytest.param({"name": "s1-copy", "node": "n2", "about": "n1"}, id="in another node's name"),
        pytest.param({"name": "s1-copy", "namespace": "kube-system"}, id="another namespace"),
    ],
)
async def test_a_node_gets_nothing_else(asked: Json):
    answer = await SecretServer().ask(**asked)
    assert not answer.accepted
    assert answer.why


async def test_what_the_mirror_lacks_is_read():
    server = SecretServer()
    server.images.remove("", "n1", "uid-n1")
    server.secrets.remove("kruise-daemon-config", "s1-copy", "uid-s1-copy")
    server.context.server[NODE_IMAGE, "", "n1"] = node_image("n1", [tag("J")], secrets=[BATCH], uid="again")
    late = msgspec.structs.replace(copy_of("s1", "ns/J").metadata, uid="again")
    server.context.server[SECRET, "kruise-daemon-config", "s1-copy"] = msgspec.structs.replace(
        copy_of("s1", "ns/J"), metadata=late
    )
    answer = await server.ask("s1-copy")
    assert [one.name for one in server.opener.open(answer.sealed)] == ["s1-copy"]
    server.context.trouble = Unreachable("away")
    answer = await server.ask("other")
    assert (answer.accepted, answer.again) == (False, True)


async def test_what_is_no_credential_or_does_not_exist_is_left_out():
    server = SecretServer()
    server.secrets.remove("kruise-daemon-config", "s1-copy", "uid-s1-copy")
    answer = await server.ask("s1-copy")
    assert server.opener.open(answer.sealed) == []
    opaque = msgspec.structs.replace(copy_of("s1", "ns/J", name="opaque"), type="Opaque")
    server.secrets.apply(opaque)
    server.images.apply(node_image("n1", [tag("J")], secrets=[BATCH | {"name": "opaque"}], resourceVersion="9"))
    assert server.opener.open((await server.ask("opaque")).sealed) == []


def test_secrets_are_never_on_the_bus():
    assert SECRET not in published()
    watches = [watch for parts in installed_components().values() for part in parts for watch in part.all_watches]
    assert all(watch.direct for watch in watches if watch.resource == SECRET)
    named = {watch.private for watch in watches if watch.resource == SECRET and not watch.named}
    assert named == {"daemon_config_namespace"}
