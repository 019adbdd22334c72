"""Questions to the apiserver: once per version of the PersistentPodState, and until there is an answer."""

import asyncio

from flotilla_common.api.kinds.persistentpodstate.types import PersistentPodState
from flotilla_common.api.meta import ObjectMeta
from flotilla_common.api.resources import BUILT_IN_STATEFUL_SET, Resource
from flotilla_common.control.reads import RETRY_SECONDS
from flotilla_common.kube.interface import ApiError
from flotilla_statefulset.persistentpodstate.controller import ConfirmReads
from flotilla_statefulset.persistentpodstate.snapshot import ConfirmedRead
from tests.support.fake_clock import FakeClock


def state(version: str) -> PersistentPodState:
    return PersistentPodState(metadata=ObjectMeta(name="p", namespace="n", resource_version=version))


async def test_questions_are_answered_per_version() -> None:
    answers: list[ApiError | bytes] = [
        ApiError(500, "", "etcd"),
        ApiError(404, "NotFound", ""),
        b'{"metadata":{"uid":"1"}}',
    ]
    clock, requeued = FakeClock(), list[tuple[str, str]]()

    async def get(resource: Resource, namespace: str, name: str) -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer

    reads = ConfirmReads(get, clock, lambda *key: requeued.append(key))

    async def ask(version: str) -> ConfirmedRead | None:
        read = reads.of(state(version), BUILT_IN_STATEFUL_SET, "s")
        for _ in range(20):
            await asyncio.sleep(0)
        return read

    running = asyncio.ensure_future(reads.run())
    assert await ask("1") is None
    assert clock.sleeps == [RETRY_SECONDS]  # the first question met an error
    assert await ask("1") == ConfirmedRead(None)
    assert await ask("2") is None
    assert await ask("2") == ConfirmedRead(ObjectMeta(uid="1"))
    assert requeued == [("n", "p"), ("n", "p")]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
