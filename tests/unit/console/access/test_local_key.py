"""The one-time key of a console on this machine."""

from pathlib import Path

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import Response

from flotilla_cli import console_key
from flotilla_console.access import local_key
from flotilla_console.access.identity import Identity
from flotilla_console.access.local_key import LocalKey

ME = Identity(user="alice", own=True)


class Sessions:
    """Sessions as a cookie in clear text."""

    def begin(self, response: Response, identity: Identity, way: str) -> None:
        response.set_cookie("session", f"{way}-{identity.user}")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "key"


async def opened(file: Path, url: str) -> httpx2.Response:
    """Return the answer that a new browser gets."""
    app = Starlette(routes=[local_key.route(LocalKey(file), Sessions(), ME)])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1:8090") as browser:
        return await browser.get(url)


async def test_the_printed_url_begins_one_session(file: Path) -> None:
    url = console_key.url_of(8090, console_key.offer(file))
    first = await opened(file, url)
    assert (first.status_code, first.headers["location"]) == (303, "/")
    assert first.cookies["session"] == "key-alice"
    second = await opened(file, url)
    assert (second.status_code, dict(second.cookies)) == (403, {})


@pytest.mark.parametrize("query", ["", "?key=", "?key=wrong", "?key=%C3%A4", "?other=x"])
async def test_another_key_is_refused_and_uses_nothing_up(file: Path, query: str) -> None:
    key = console_key.offer(file)
    assert (await opened(file, local_key.PATH + query)).status_code == 403
    assert LocalKey(file).use(key)


def test_an_empty_file_is_no_key(file: Path) -> None:
    file.touch()
    assert not LocalKey(file).use("")


def test_a_key_that_was_not_used_is_offered_again_and_is_private(file: Path) -> None:
    key = console_key.offer(file)
    assert console_key.offer(file) == key
    assert file.stat().st_mode & 0o077 == 0
    assert LocalKey(file).use(key)
    assert console_key.offer(file) != key


def test_the_command_and_the_console_agree_on_the_path() -> None:
    assert console_key.PATH == local_key.PATH
