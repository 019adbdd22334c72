"""Users with the same rights share a sight, and an unknown right is not granted."""

from collections.abc import Collection
from types import SimpleNamespace
from typing import cast

import msgspec

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import POD, Resource
from flotilla_common.kube.interface import Api, Unreachable
from flotilla_console.access.identity import Identity
from flotilla_console.access.rights import Rights
from flotilla_console.model.model import Held, Model
from flotilla_console.model.sight import Wanted
from flotilla_console.sights import SECONDS, Sights
from tests.support.fake_clock import FakeClock

ALICE, BOB, CAROL = (Identity(user=name) for name in ("alice", "bob", "carol"))


class Reviews:
    """Answers reviews by user and namespace; counts them."""

    def __init__(self) -> None:
        self.grants = {"alice": "shop", "bob": "shop", "carol": ""}
        self.asked = 0
        self.down = False

    async def raw(self, method: str, path: str, body: bytes = b"", headers: object = None) -> bytes:
        self.asked += 1
        if self.down:
            raise Unreachable("no route")
        spec = msgspec.json.decode(body)["spec"]
        granted, namespace = self.grants[spec["user"]], spec["resourceAttributes"].get("namespace", "")
        allowed = granted in ("", namespace)
        return msgspec.json.encode({"status": {"allowed": allowed}})


class Places:
    """A model of which only the places matter."""

    def __init__(self, *namespaces: str) -> None:
        self.version = self.places_version = 0
        self._namespaces = list(namespaces)

    def places(self) -> Collection[Held]:
        return [Held(resource, namespace) for namespace in self._namespaces for resource in (CLONE_SET, POD)]

    def add(self, namespace: str) -> None:
        self._namespaces.append(namespace)
        self.places_version += 1


def rights_of(resource: Resource) -> Collection[tuple[str, Resource]]:
    return [("patch", resource)] if resource == CLONE_SET else []


def world(*namespaces: str) -> SimpleNamespace:
    reviews, places, clock = Reviews(), Places(*namespaces), FakeClock()
    rights = Rights(cast("Api", reviews), clock)
    sights = Sights(cast("Model", places), rights, clock, actions=rights_of)
    return SimpleNamespace(reviews=reviews, places=places, clock=clock, sights=sights)


async def test_equal_rights_are_one_sight() -> None:
    made = world("shop", "bank")
    shared = await made.sights.sight_of(ALICE)
    assert await made.sights.sight_of(BOB) is shared
    assert await made.sights.sight_of(CAROL) is not shared
    assert [shared.may("patch", CLONE_SET, name) for name in ("shop", "bank")] == [True, False]
    assert not shared.may("delete", POD, "shop"), "it was not asked for"


async def test_a_sight_is_used_again_for_a_moment() -> None:
    made = world("shop")
    first = await made.sights.sight_of(ALICE)
    asked = made.reviews.asked
    made.reviews.grants["alice"] = "bank"
    made.clock.time += SECONDS / 2
    assert await made.sights.sight_of(ALICE) is first
    assert made.reviews.asked == asked
    made.clock.time += 60
    assert not (await made.sights.sight_of(ALICE)).may("list", POD, "shop")


async def test_a_new_namespace_is_asked_about_at_once() -> None:
    made = world("bank")
    before = await made.sights.sight_of(ALICE)
    made.places.add("shop")
    after = await made.sights.sight_of(ALICE)
    assert after is not before
    assert after.may("list", POD, "shop")


async def test_who_may_see_everything_keeps_their_sight_when_namespaces_come() -> None:
    made = world("shop")
    before = await made.sights.sight_of(CAROL)
    made.places.add("bank")
    assert await made.sights.sight_of(CAROL) is before
    assert before.may("list", POD, "bank")


async def test_unknown_rights_are_no_rights() -> None:
    made = world("shop")
    made.reviews.down = True
    assert not (await made.sights.sight_of(ALICE)).may("list", POD, "shop")


async def test_one_right_is_asked_for_by_itself() -> None:
    made = world()
    wanted = Wanted(verb="list", group="", plural="pods", namespace="shop")
    assert [await made.sights.may(one, wanted) for one in (ALICE, CAROL)] == [True, True]
    other = msgspec.structs.replace(wanted, namespace="bank")
    assert not await made.sights.may(ALICE, other)
