"""The route that carries actions out, with the checks of its door."""

from urllib.parse import parse_qsl

import httpx2
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from flotilla_common.api.errors import Unreachable
from flotilla_common.clock import SystemEntropy
from flotilla_console.access.identity import Identity
from flotilla_console.actions.carrying_out import Actor, stamp_of
from flotilla_console.actions.fields import Fields
from flotilla_console.blocks.types import Notice, Text
from flotilla_console.forms import ActionRoutes
from flotilla_console.model.sight import Sight
from flotilla_console.page import Page
from tests.support.fake_clock import FakeClock
from tests.testkit.apiserver import FakeApi
from tests.unit.console.actions.objects import FakeSight, kind_of, pod, workload

CLONE_SET = kind_of("clonesets")
PATH = "/workloads/apps.kruise.io/clonesets/shop/web/action"
STAMP = dict(stamp_of(workload(CLONE_SET)))


class FakeDoor:
    """Lets `alice` in, with forms that have the token."""

    def __init__(self, sight: Sight) -> None:
        self.sight: Sight | Exception = sight
        self.signed_in = True

    async def user_of(self, request: Request) -> Identity | Response:
        return Identity(user="alice") if self.signed_in else PlainTextResponse("sign in", 401)

    async def form_of(self, request: Request, identity: Identity) -> Fields:
        form = dict(parse_qsl((await request.body()).decode()))
        if form.pop("token", "") != "good":
            raise HTTPException(403)
        return form

    async def sight_of(self, identity: Identity) -> Sight:
        if isinstance(self.sight, Exception):
            raise self.sight
        return self.sight

    def show(self, request: Request, identity: Identity, page: Page, status: int) -> Response:
        notices = (block for block in page.blocks if isinstance(block, Notice))
        return PlainTextResponse(
            "\n".join(span.text for block in notices for span in block.spans if isinstance(span, Text)), status
        )

    def not_found(self, request: Request, identity: Identity) -> Response:
        return PlainTextResponse("not found", 404)


class Place:
    """The route, with an apiserver behind it."""

    def __init__(self, sight: Sight | None = None) -> None:
        self.api = FakeApi({CLONE_SET.resource: [workload(CLONE_SET)]})
        self.door = FakeDoor(sight or FakeSight([pod("web-a")]))
        actor = Actor(lambda _: self.api.api, FakeApi().api, FakeClock(), SystemEntropy())
        app = Starlette(routes=ActionRoutes(self.door, actor).routes())
        self.client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://console")

    async def post(self, verb: str, token: str = "good", **fields: str) -> tuple[int, str]:
        answer = await self.client.post(f"{PATH}/{verb}", data={"token": token, **STAMP, **fields})
        return answer.status_code, answer.text


async def test_an_action_is_carried_out() -> None:
    place = Place()
    assert await place.post("scale", replicas="4") == (200, "Done: alice scaled it to 4.")
    assert place.api.named(CLONE_SET.resource, "shop", "web")["spec"]["replicas"] == 4


async def test_a_field_that_cannot_be_used_changes_nothing() -> None:
    place = Place()
    status, text = await place.post("scale", replicas="many")
    assert (status, text) == (400, "replicas must be a whole number between 0 and 2147483647")
    assert place.api.writes == []


async def test_without_the_token_nothing_is_done() -> None:
    place = Place()
    assert (await place.post("pause", token="bad"))[0] == 403
    assert place.api.writes == []


async def test_without_signing_in_nothing_is_done() -> None:
    place = Place()
    place.door.signed_in = False
    assert await place.post("pause") == (401, "sign in")
    assert place.api.writes == []


async def test_what_may_not_be_seen_is_not_found() -> None:
    place = Place(FakeSight(exists=False))
    assert (await place.post("pause"))[0] == 404
    assert (await place.post("explode"))[0] == 404
    assert place.api.writes == []


async def test_the_missing_answer_about_rights_is_no_unknown_outcome() -> None:
    place = Place()
    place.door.sight = Unreachable("timeout")
    status, text = await place.post("pause")
    assert status == 503
    assert "nothing was done" in text


async def test_the_highest_status_of_several_pods_counts() -> None:
    place = Place()
    status, text = await place.post("delete-pods", **{"pod.web-a": "uid-web-a"})
    assert status == 404, "the mirror has a pod that the apiserver has not"
    assert text.startswith("web-a: It does not exist any more")


async def test_only_posts_are_taken() -> None:
    assert (await Place().client.get(f"{PATH}/pause")).status_code == 405
