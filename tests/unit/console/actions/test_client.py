"""The apiserver as the user: what is sent, and which failures come back."""

from collections.abc import Awaitable, Callable, Mapping
from typing import cast

import msgspec
import pytest

from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.resources import POD
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.interface import Api, pages
from flotilla_console.access.acting import UserApi
from flotilla_console.access.identity import Identity
from flotilla_console.actions.client import UserClient

ALICE = Identity(user="alice", groups=("dev",))


class Wire:
    """Records requests, and answers each with the next answer."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)
        self.sent: list[tuple[str, str, bytes]] = []
        self.headers: list[Mapping[str, str]] = []

    async def raw(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        self.sent.append((method, path, body))
        self.headers.append(headers)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, identity: Identity = ALICE) -> UserClient:
        return UserClient(UserApi(cast("Api", self), identity))


def listed(name: str, token: str = "") -> bytes:
    return msgspec.json.encode({"metadata": {"continue": token}, "items": [{"metadata": {"name": name}}]})


async def test_lists_are_read_in_pages_as_the_user() -> None:
    wire = Wire(listed("a", "next"), listed("b"))
    found = [bytes(raw) async for page in pages(wire.client(), POD, "shop", limit=1) for raw in page.items]
    assert found == [b'{"metadata":{"name":"a"}}', b'{"metadata":{"name":"b"}}']
    assert [path for _, path, _ in wire.sent] == [
        "/api/v1/namespaces/shop/pods?limit=1",
        "/api/v1/namespaces/shop/pods?limit=1&continue=next",
    ]
    assert {headers["Impersonate-User"] for headers in wire.headers} == {"alice"}


async def test_an_answer_that_is_no_list_is_no_answer() -> None:
    with pytest.raises(Unreachable):
        await Wire(b"<html>").client().list(POD)


async def test_a_dry_run_stays_one() -> None:
    wire = Wire(b"{}", b"{}")
    client = wire.client()
    await client.patch(POD, "shop", "a", b"{}", PatchType.MERGE, params={"dryRun": "All"})
    await client.patch(POD, "shop", "a", b"{}", PatchType.MERGE)
    assert ["dryRun=All" in path for _, path, _ in wire.sent] == [True, False]


async def test_a_deletion_is_of_this_pod_only() -> None:
    wire = Wire(b"{}")
    await wire.client().delete(POD, "shop", "a", uid="u-1")
    ((method, _, body),) = wire.sent
    assert (method, msgspec.json.decode(body)) == ("DELETE", {"preconditions": {"uid": "u-1"}})


REQUESTS: dict[str, Callable[[UserClient], Awaitable[object]]] = {
    "get": lambda client: client.get(POD, "shop", "a"),
    "list": lambda client: client.list(POD, "shop"),
    "patch": lambda client: client.patch(POD, "shop", "a", b"{}", PatchType.MERGE),
    "create": lambda client: client.create(POD, "shop", b"{}"),
    "delete": lambda client: client.delete(POD, "shop", "a"),
}


@pytest.mark.parametrize("verb", REQUESTS)
async def test_refusals_keep_their_code_and_words(verb: str) -> None:
    with pytest.raises(ApiError) as caught:
        await REQUESTS[verb](Wire(ApiError(403, "Forbidden", "alice cannot")).client())
    assert (caught.value.code, caught.value.message) == (403, "alice cannot")


@pytest.mark.parametrize("verb", ["patch", "create", "delete"])
async def test_who_may_only_read_sends_no_write(verb: str) -> None:
    wire = Wire()
    with pytest.raises(ApiError) as caught:
        await REQUESTS[verb](wire.client(Identity(user="guest", read_only=True)))
    assert caught.value.code == 403
    assert wire.sent == []


async def test_a_name_that_leads_elsewhere_is_not_sent() -> None:
    wire = Wire()
    with pytest.raises(ApiError) as caught:
        await wire.client().get(POD, "shop", "..")
    assert caught.value.code == 400
    assert wire.sent == []
