"""Reads from the apiserver beside plans: one per question, for all keys that wait for it."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from flotilla_common.control.keystate import Key
from flotilla_common.control.reads import CONCURRENT, RETRY_SECONDS, Reads
from flotilla_common.kube.interface import ApiError, Unreachable
from tests.support.fake_clock import FakeClock

A, B = ("ns", "a"), ("ns", "b")


class Asking:
    """Reads over an apiserver whose answers the test gives, at once or when it likes."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.asked: list[str] = []
        self.answers: dict[str, str | Exception | None] = {}
        self.pending: dict[str, asyncio.Future[str | None]] | None = None  # a dict: reads wait for the test
        self.requeued: list[Key] = []
        self.reads = Reads(self._read, self.clock, lambda *key: self.requeued.append(key))
        self.running = asyncio.ensure_future(self.reads.run())

    async def _read(self, question: str) -> str | None:
        self.asked.append(question)
        if self.pending is not None:
            self.pending[question] = asyncio.get_running_loop().create_future()
            return await self.pending[question]
        answer = self.answers.get(question, f"about {question}")
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
async def case() -> AsyncIterator[Asking]:
    asking = Asking()
    yield asking
    asking.running.cancel()
    await asyncio.gather(asking.running, return_exceptions=True)


async def test_a_result_is_read_once_and_its_key_is_requeued(case: Asking) -> None:
    assert case.reads.ask(A, "x") is None
    assert case.reads.ask(A, "x") is None
    await case.settle()
    assert (case.reads.ask(A, "x"), case.asked, case.requeued) == ("about x", ["x"], [A])
    await case.settle()
    assert (case.asked, case.requeued) == (["x"], [A])


async def test_all_keys_that_wait_share_a_read(case: Asking) -> None:
    case.pending = {}
    case.reads.ask(A, "x")
    await case.settle()
    case.reads.ask(B, "x")
    await case.settle()
    case.pending["x"].set_result("found")
    await case.settle()
    assert (case.asked, case.requeued) == (["x"], [A, B])
    assert case.reads.ask(A, "x") == case.reads.ask(B, "x") == "found"


async def test_a_result_is_kept_while_a_key_uses_it(case: Asking) -> None:
    case.reads.ask(A, "x")
    await case.settle()
    assert case.reads.ask(B, "x") == "about x"
    case.reads.forget(A)
    assert case.reads.ask(B, "x") == "about x"
    case.reads.forget(B)
    assert case.reads.ask(B, "x") is None
    await case.settle()
    assert (case.asked, case.requeued) == (["x", "x"], [A, B])


async def test_a_read_without_a_result_is_made_again_for_the_next_question(case: Asking) -> None:
    case.answers["x"] = None
    case.reads.ask(A, "x")
    await case.settle()
    assert case.reads.ask(A, "x") is None
    await case.settle()
    assert (case.asked, case.requeued) == (["x", "x"], [A, A])
    assert (case.reads._keys, case.reads._questions, case.reads._results) == ({}, {}, {})


async def test_a_key_may_have_several_questions_or_only_one(case: Asking) -> None:
    case.reads.ask(A, "x")
    case.reads.ask(A, "y")
    await case.settle()
    assert (case.reads.ask(A, "x"), case.reads.ask(A, "y")) == ("about x", "about y")
    assert case.reads.ask_only(A, "y") == "about y"
    assert case.reads._results == {"y": "about y"}
    assert case.reads.ask_only(A, "z") is None
    await case.settle()
    assert (case.reads.ask_only(A, "z"), case.reads._results) == ("about z", {"z": "about z"})


@pytest.mark.parametrize(
    "error",
    [ApiError(403, "Forbidden", "no"), ApiError(503, "ServiceUnavailable", "later"), Unreachable("timeout")],
    ids=["forbidden", "unavailable", "unreachable"],
)
async def test_a_failed_read_is_retried_alone(case: Asking, error: Exception) -> None:
    case.answers["x"] = error
    case.reads.ask(A, "x")
    case.reads.ask(B, "y")
    await case.settle()
    assert (case.asked.count("y"), case.requeued) == (1, [B])
    assert case.clock.sleeps == [RETRY_SECONDS] * case.asked.count("x")
    case.answers["x"] = "at last"
    await case.settle()
    assert (case.reads.ask(A, "x"), case.requeued) == ("at last", [B, A])


async def test_a_question_that_is_forgotten_is_not_read(case: Asking) -> None:
    case.reads.ask(A, "x")
    case.reads.forget(A)
    case.reads.forget(B)
    await case.settle()
    assert (case.asked, case.requeued) == ([], [])


async def test_a_question_that_is_forgotten_is_not_retried(case: Asking) -> None:
    case.answers["x"] = Unreachable("timeout")
    case.reads.ask(A, "x")
    await case.settle()
    case.reads.forget(A)
    asked = len(case.asked)
    await case.settle()
    assert (len(case.asked), case.requeued) == (asked, [])


async def test_a_read_that_began_before_the_question_does_not_answer_it(case: Asking) -> None:
    case.pending = {}
    case.reads.ask(A, "x")
    await case.settle()
    early = case.pending["x"]
    case.reads.forget(A)
    case.reads.ask(A, "x")
    await case.settle()
    early.set_result("as it was")
    await case.settle()
    assert (case.reads.ask(A, "x"), case.asked, case.requeued) == (None, ["x", "x"], [])
    case.pending["x"].set_result("as it is")
    await case.settle()
    assert (case.reads.ask(A, "x"), case.requeued) == ("as it is", [A])


async def test_a_read_that_nobody_waits_for_fails_quietly(case: Asking) -> None:
    case.pending = {}
    case.reads.ask(A, "x")
    await case.settle()
    case.reads.forget(A)
    case.pending["x"].set_exception(Unreachable("timeout"))
    await case.settle()
    assert (case.asked, case.requeued, case.running.done()) == (["x"], [], False)


async def test_reads_run_side_by_side_up_to_a_limit(case: Asking) -> None:
    case.pending = {}
    for number in range(CONCURRENT + 2):
        case.reads.ask(("ns", str(number)), str(number))
    await case.settle()
    assert len(case.asked) == CONCURRENT
    case.reads.forget(("ns", str(CONCURRENT)))
    case.pending["3"].set_result("found")
    await case.settle()
    assert (case.requeued, case.asked[CONCURRENT:]) == ([("ns", "3")], [str(CONCURRENT + 1)])


async def test_a_defect_ends_the_service(case: Asking) -> None:
    case.answers["x"] = TypeError("defect")
    case.reads.ask(A, "x")
    with pytest.raises(ExceptionGroup) as failure:
        await case.running
    assert [str(error) for error in failure.value.exceptions] == ["defect"]


async def test_cancelling_ends_all_reads(case: Asking) -> None:
    case.pending = {}
    case.reads.ask(A, "x")
    await case.settle()
    case.running.cancel()
    await asyncio.gather(case.running, return_exceptions=True)
    assert case.pending["x"].cancelled()
    assert case.requeued == []
