"""Requests of the launch priority controller to the apiserver, and its reading of the responses."""

import asyncio
from typing import Any

import msgspec
import pytest

from flotilla_common.control.keystate import Memory
from flotilla_common.control.reads import RETRY_SECONDS
from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_common.settings import Settings
from flotilla_sidecar.app import PARTS
from flotilla_sidecar.launchpriority.controller import CONTROLLER, PODS, Barriers, Gatherer
from flotilla_sidecar.launchpriority.launch import GOOD_SECONDS, Barrier
from tests.support.controller_context import FakeContext
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json
from tests.unit.launchpriority.test_launchpriority import CREATED, READY, TWO, pod

KEY = ("shop", "web-1")
DONE = {"apps.kruise.io/container-launch-priority-completed": "true"}


def config_map(*keys: str, owner: str = "u1", **metadata: Any) -> Json:
    owners = [{"kind": "Pod", "name": "web-1", "uid": owner}] if owner else []
    named = {"name": "web-1-barrier", "uid": "b1", "resourceVersion": "7", "ownerReferences": owners}
    return {"metadata": named | metadata, "data": dict.fromkeys(keys, "true")}


class Asking:
    """Barriers over an apiserver in the hands of the test."""

    def __init__(self, answer: Json | Exception) -> None:
        self.answers = [answer]  # the last one stays
        self.asked: list[tuple[str, str, str]] = []
        self.woken: list[tuple[str, str]] = []
        self.clock = FakeClock()
        self.barriers = Barriers(self._get, self.clock, lambda *key: self.woken.append(key))
        self._task: asyncio.Task[None] | None = None

    async def _get(self, resource: Any, namespace: str, name: str) -> bytes:
        self.asked.append((resource.plural, namespace, name))
        answer = self.answers.pop(0) if self.answers[1:] else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return msgspec.json.encode(answer)

    async def __aenter__(self) -> "Asking":
        self._task = asyncio.create_task(self.barriers.run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


async def test_an_answer_with_the_key_is_good_for_a_while() -> None:
    async with Asking(config_map("p_10")) as case:
        assert case.barriers.of(pod(TWO), "p_10") is None
        await case.settle()
        assert (case.asked, case.woken) == ([("configmaps", "shop", "web-1-barrier")], [KEY])
        expected = Barrier(uid="b1", version="7", keys=frozenset({"p_10"}))
        assert [case.barriers.of(pod(TWO), "p_10") for _ in range(3)] == [expected] * 3
        case.clock.time += GOOD_SECONDS + 1
        assert case.barriers.of(pod(TWO), "p_10") is None
        await case.settle()
        assert len(case.asked) == 2


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(ApiError(404, "NotFound", "not found"), id="none"),
        pytest.param(config_map("p_10"), id="without the key"),
        pytest.param(config_map("p_0", owner="u0"), id="of another pod"),
    ],
)
async def test_any_other_answer_is_good_for_one_plan(answer: Any) -> None:
    async with Asking(answer) as case:
        case.barriers.of(pod(TWO), "p_0")
        await case.settle()
        assert case.barriers.of(pod(TWO), "p_0") is not None
        assert case.barriers.of(pod(TWO), "p_0") is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(ApiError(404, "NotFound", "not found"), Barrier(), id="none"),
        pytest.param(
            config_map("p_1", owner=""),
            Barrier(uid="b1", version="7", keys=frozenset({"p_1"}), foreign=True),
            id="of nobody",
        ),
        pytest.param(
            config_map("p_1", ownerReferences=[{"kind": "Deployment", "name": "web-1", "uid": "d1"}]),
            Barrier(uid="b1", version="7", keys=frozenset({"p_1"}), foreign=True),
            id="of something else",
        ),
        pytest.param(
            config_map("p_1", ownerReferences=[{"kind": "Pod", "name": "web-2", "uid": "u9"}]),
            Barrier(uid="b1", version="7", keys=frozenset({"p_1"}), foreign=True),
            id="of another pod",
        ),
        pytest.param(
            config_map("a", owner="u1"), Barrier(uid="b1", version="7", keys=frozenset({"a"})), id="of this pod"
        ),
        pytest.param(
            config_map("p_1", "p_-2", owner="u0"),
            Barrier(uid="b1", version="7", keys=frozenset({"p_1", "p_-2"}), earlier=True),
            id="of an earlier pod",
        ),
        pytest.param(
            config_map("p_1", "settings.yaml", owner="u0"),
            Barrier(uid="b1", version="7", keys=frozenset({"p_1", "settings.yaml"}), foreign=True),
            id="of an earlier pod, with something in it",
        ),
        pytest.param(
            config_map(deletionTimestamp="2026-01-01T00:00:00Z"),
            Barrier(uid="b1", version="7", going=True),
            id="being deleted",
        ),
    ],
)
async def test_what_the_answer_means(answer: Any, expected: Barrier) -> None:
    async with Asking(answer) as case:
        case.barriers.of(pod(TWO), "p_10")
        await case.settle()
        assert case.barriers.of(pod(TWO), "p_10") == expected


@pytest.mark.parametrize(
    "trouble",
    [ApiError(503, "ServiceUnavailable", "not now"), Unreachable("gone"), ApiError(403, "Forbidden", "no")],
    ids=["503", "unreachable", "forbidden"],
)
async def test_without_an_answer_it_asks_again(trouble: Exception) -> None:
    async with Asking(trouble) as case:
        case.answers.append(config_map("p_10"))
        case.barriers.of(pod(TWO), "p_10")
        await case.settle()
        assert (len(case.asked), case.woken, case.clock.sleeps) == (2, [KEY], [RETRY_SECONDS])
        assert case.barriers.of(pod(TWO), "p_10") is not None


async def test_a_namesake_is_asked_about_anew() -> None:
    async with Asking(config_map("p_10")) as case:
        case.barriers.of(pod(TWO), "p_10")
        await case.settle()
        assert case.barriers.of(pod(TWO, uid="u2"), "p_10") is None


async def test_who_waits_no_more_is_forgotten() -> None:
    async with Asking(config_map("p_10")) as case:
        case.barriers.of(pod(TWO), "p_10")
        case.barriers.forget(KEY)
        await case.settle()
        assert (case.asked, case.woken) == ([], [])


def test_only_pods_that_wait_are_looked_at() -> None:
    context = FakeContext()
    gatherer = context.build(CONTROLLER)
    assert isinstance(gatherer, Gatherer)
    context.put(PODS, pod(TWO), pod({"a": None}, name="other", uid="u2"))
    assert gatherer.keys() == context.woken == [KEY]
    snapshot = gatherer.gather(KEY, Memory())
    assert snapshot is not None
    assert snapshot.barrier is None
    assert gatherer.gather(("shop", "other"), Memory()) is None
    assert gatherer.gather(("shop", "gone"), Memory()) is None


def test_a_pod_that_waits_no_more_is_told_once() -> None:
    context = FakeContext()
    gatherer = context.build(CONTROLLER)
    context.put(PODS, pod(TWO))
    context.put(PODS, pod(TWO, {"b": READY}, resourceVersion="2", annotations=DONE))
    context.put(PODS, pod(TWO, {"a": READY, "b": READY}, resourceVersion="3", annotations=DONE))
    assert context.woken == [KEY, KEY]
    assert isinstance(gatherer, Gatherer)
    assert (gatherer.keys(), gatherer.gather(KEY, Memory())) == ([], None)


async def test_what_the_pod_proves_is_not_asked() -> None:
    context = FakeContext()
    gatherer = context.build(CONTROLLER)
    context.put(PODS, pod(TWO, {"b": CREATED}))
    task = asyncio.ensure_future(context.tasks[0]())
    assert gatherer.gather(KEY, Memory()) is not None
    for _ in range(20):
        await asyncio.sleep(0)
    assert context.replanned == []
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_it_always_runs_with_the_workers_of_the_reference() -> None:
    assert CONTROLLER in PARTS
    assert CONTROLLER.workers_of(Settings()) == 4
    assert CONTROLLER.why_off(Settings(), FakeContext(gates="PodWebhook=false").gates) == ""
