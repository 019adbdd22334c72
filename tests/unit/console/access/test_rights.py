"""Rights: by SubjectAccessReviews, cached for some seconds, and never granted by a failure."""

import asyncio
from dataclasses import replace

import msgspec
import pytest

from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_console.access.identity import Identity
from flotilla_console.access.rights import Allowed, Question, Rights, review_of
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json
from tests.unit.console.access.fakes import ReviewApi

JANE = Identity(user="jane", groups=("dev", "system:authenticated"), extra={"scopes": ("read",)})
LIST = Question("list", "apps.kruise.io", "clonesets", "shop")
PODS = Question("list", "", "pods", "shop")


def in_shop(spec: Json) -> bool:
    return spec["resourceAttributes"].get("namespace") == "shop"


def everything(_spec: Json) -> bool:
    return True


def pods_of(namespaces: int) -> list[Question]:
    return [Question("list", "", "pods", f"ns-{number}") for number in range(namespaces)]


async def ask(rights: Rights, question: Question = LIST, identity: Identity = JANE) -> bool:
    return (await rights.allowed(identity, [question]))[question]


def test_a_review_names_subject_and_question():
    question = Question("get", "", "pods", "shop", "log", "web-1")
    spec = msgspec.json.decode(msgspec.json.encode(review_of(JANE, question)))["spec"]
    attributes = {"verb": "get", "resource": "pods", "namespace": "shop", "subresource": "log", "name": "web-1"}
    assert spec == {
        "user": "jane",
        "groups": ["dev", "system:authenticated"],
        "uid": "",
        "extra": {"scopes": ["read"]},
        "resourceAttributes": attributes,
    }


async def test_a_right_for_all_namespaces_needs_one_review_for_all_of_them():
    api = ReviewApi(everything)
    asked = pods_of(100)
    allowed = await Rights(api.api, FakeClock()).allowed(JANE, asked)
    assert set(allowed.values()) == {True}
    assert len(api.reviews) == 1
    assert "namespace" not in api.reviews[0]["resourceAttributes"]


async def test_without_it_each_namespace_is_asked_about():
    table = await Rights(ReviewApi(in_shop).api, FakeClock()).table(JANE, [LIST, Question("list", "", "pods", "bank")])
    assert table.may("list", "apps.kruise.io", "clonesets", "shop")
    assert not table.may("list", "", "pods", "bank")
    assert not table.error


@pytest.mark.parametrize(
    "question",
    [
        ("get", "apps.kruise.io", "clonesets", "shop"),
        ("list", "", "clonesets", "shop"),
        ("list", "apps.kruise.io", "clonesets", "bank"),
        ("list", "apps.kruise.io", "clonesets", ""),
        ("list", "apps.kruise.io", "clonesets", "shop", "status"),
    ],
)
def test_a_table_refuses_what_was_not_asked(question: tuple[str, ...]):
    assert not Allowed(frozenset({LIST}), frozenset()).may(*question)


@pytest.mark.parametrize("granted", [True, False])
async def test_answers_are_used_for_some_seconds(granted: bool):
    api, clock = ReviewApi(lambda _: granted), FakeClock()
    rights = Rights(api.api, clock, seconds=10)
    assert await ask(rights) is granted
    before = len(api.reviews)
    clock.time = 9.9
    api.granted = lambda _: not granted
    assert await ask(rights) is granted
    assert len(api.reviews) == before
    clock.time = 10
    assert await ask(rights) is not granted


async def test_who_only_reads_may_not_write_whatever_the_apiserver_says():
    api = ReviewApi(everything)
    rights = Rights(api.api, FakeClock())
    patch = Question("patch", "apps.kruise.io", "clonesets", "shop")
    reader = replace(JANE, read_only=True)
    assert [await ask(rights, one, reader) for one in (LIST, patch)] == [True, False]
    assert await ask(rights, patch) is True, "another with the same name may"


async def test_identities_do_not_share_answers():
    api = ReviewApi(lambda spec: spec["user"] == "jane" and "dev" in spec["groups"])
    rights = Rights(api.api, FakeClock())
    assert await ask(rights)
    assert not await ask(rights, identity=Identity(user="jane"))
    assert not await ask(rights, identity=Identity(user="joe", groups=JANE.groups))


@pytest.mark.parametrize(
    "failure", [ApiError(403, "Forbidden", "cannot create subjectaccessreviews"), Unreachable("refused")]
)
async def test_a_failure_grants_nothing_and_is_shown(failure: Exception):
    api = ReviewApi(everything)
    api.failure = failure
    table = await Rights(api.api, FakeClock()).table(JANE, [LIST])
    assert table.granted == frozenset()
    assert table.refused == {LIST}
    assert str(failure) in table.error


async def test_a_right_outlives_a_failure_only_for_the_grace():
    api, clock = ReviewApi(in_shop), FakeClock()
    rights = Rights(api.api, clock, seconds=10, grace=60)
    assert await ask(rights)
    api.failure = Unreachable("refused")
    clock.time = 59
    table = await rights.table(JANE, [LIST, PODS])
    assert table.granted == {LIST}
    assert "refused" in table.error
    clock.time = 60
    assert not await ask(rights)


async def test_after_a_failure_the_apiserver_is_left_alone_for_a_moment():
    api, clock = ReviewApi(everything), FakeClock()
    rights = Rights(api.api, clock)
    api.failure = Unreachable("refused")
    assert not await ask(rights)
    api.failure = None
    sent = len(api.requests)
    assert not await ask(rights)
    assert len(api.requests) == sent
    clock.time = 2
    assert await ask(rights)


async def test_a_nonsense_answer_is_a_failure():
    class Nonsense(ReviewApi):
        async def raw(self, *_: object, **__: object) -> bytes:
            return b"<html>"

    table = await Rights(Nonsense().api, FakeClock()).table(JANE, [LIST])
    assert not table.granted
    assert "not a review" in table.error


async def test_reviews_under_way_are_bounded_and_shared():
    class Slow(ReviewApi):
        running = most = 0

        async def raw(self, method: str, path: str, *args: object, **options: object) -> bytes:
            self.running += 1
            self.most = max(self.most, self.running)
            for _ in range(5):
                await asyncio.sleep(0)
            self.running -= 1
            return await super().raw(method, path, *args, **options)  # type: ignore[arg-type]

    api = Slow(in_shop)
    rights = Rights(api.api, FakeClock(), at_once=4)
    asked = pods_of(20)
    await asyncio.gather(*(rights.allowed(JANE, asked) for _ in range(3)))
    assert api.most == 4
    assert len(api.reviews) == 21


async def test_a_cancelled_page_does_not_cancel_the_review_that_others_wait_for():
    class Held(ReviewApi):
        gate = asyncio.Event()

        async def raw(self, method: str, path: str, *args: object, **options: object) -> bytes:
            await self.gate.wait()
            return await super().raw(method, path, *args, **options)  # type: ignore[arg-type]

    api = Held(everything)
    rights = Rights(api.api, FakeClock())
    first, second = asyncio.create_task(ask(rights)), asyncio.create_task(ask(rights))
    await asyncio.sleep(0)
    first.cancel()
    api.gate.set()
    assert await second
    with pytest.raises(asyncio.CancelledError):
        await first


def test_equal_rights_are_equal_keys():
    one, two = Allowed(frozenset({LIST, PODS}), frozenset()), Allowed(frozenset({PODS, LIST}), frozenset(), "late")
    assert one.key == two.key
    assert one.key != Allowed(frozenset({LIST}), frozenset({PODS})).key
