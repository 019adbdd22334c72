"""Signing in and out over HTTP: tokens, proxies, the fixed identity, and every refusal."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from starlette.requests import Request

from flotilla_common.kube.interface import Unreachable
from flotilla_console.access.files import FileError
from flotilla_console.access.guards import CSRF_COOKIE, CSRF_FIELD
from flotilla_console.access.proxy import ProxyHeaders
from flotilla_console.access.sessions import COOKIE
from flotilla_console.access.settings import AccessSettings, FixedSettings, ProxySettings, problems
from tests.support.fake_clock import FakeClock
from tests.unit.console.access.fakes import ORIGIN, Console, ReviewApi, texts

TOKEN = "ey.token.of-jane"
SECRET = "0123456789abcdef-secret"
JANE = {"username": "jane", "uid": "7", "groups": ["dev", "system:authenticated"]}


def console(settings: AccessSettings | None = None, clock: FakeClock | None = None) -> Console:
    api = ReviewApi()
    api.users[TOKEN] = JANE
    return Console(settings or AccessSettings(), api, clock or FakeClock())


async def signed_in(settings: AccessSettings | None = None, clock: FakeClock | None = None) -> Console:
    made = console(settings, clock)
    assert (await made.post("/signin/token", {"token": TOKEN})).status_code == 303
    return made


async def test_a_token_signs_in_and_stays_in_an_encrypted_cookie():
    made = console()
    response = await made.post("/signin/token", {"token": f"  {TOKEN}\n", "next": "/nodes?sort=-cpu"})
    assert (response.status_code, response.headers["location"]) == (303, "/nodes?sort=-cpu")
    cookie = [line for line in response.headers.get_list("set-cookie") if line.startswith(COOKIE)][-1]
    for attribute in ("HttpOnly", "Secure", "SameSite=strict", "Path=/", "Max-Age=28800"):
        assert attribute in cookie
    assert TOKEN not in cookie
    assert "jane" not in cookie
    assert await made.user() == "jane"


@pytest.mark.parametrize(
    ("token", "status", "words"),
    [
        ("", 400, "Paste a token"),
        ("a b", 400, "without spaces"),
        ("tök", 400, "without spaces"),
        ("a\r\nX-Evil: 1", 400, "without spaces"),
        ("x" * 20_000, 400, "more than 16384"),
        ("of-nobody", 401, "does not accept"),
    ],
)
async def test_bad_tokens_are_refused(token: str, status: int, words: str):
    made = console()
    response = await made.post("/signin/token", {"token": token})
    assert response.status_code == status
    assert words in texts(response)
    assert await made.user() == ""


async def test_a_token_too_large_for_a_cookie_is_refused_in_words():
    made = console()
    made.api.users["x" * 8000] = JANE
    response = await made.post("/signin/token", {"token": "x" * 8000})
    assert response.status_code == 400
    assert "a cookie holds 4000" in texts(response)


async def test_no_log_and_no_page_has_a_token_or_a_cookie(capfd: pytest.CaptureFixture[str]):
    made = console()
    pages = [(await made.post("/signin/token", {"token": token})).text for token in (f"{TOKEN}-wrong", TOKEN)]
    made.api.failure = Unreachable("refused")
    pages.append((await made.post("/signin/token", {"token": f"{TOKEN}-late"})).text)
    session = made.signin.sessions.of(Request({"type": "http", "headers": [(b"cookie", _cookie(made))]}))
    logged = "".join(capfd.readouterr())
    assert "user=jane" in logged
    for text in (*pages, logged, repr(session)):
        assert TOKEN not in text
        assert made.browser.cookies[COOKIE] not in text


def _cookie(made: Console) -> bytes:
    return f"{COOKIE}={made.browser.cookies[COOKIE]}".encode()


async def test_an_apiserver_that_does_not_answer_signs_nobody_in():
    made = console()
    made.api.failure = Unreachable("connection refused")
    response = await made.post("/signin/token", {"token": TOKEN})
    assert response.status_code == 503
    assert "connection refused" in texts(response)


async def test_a_token_that_is_revoked_ends_its_session_within_a_minute():
    clock = FakeClock()
    made = await signed_in(clock=clock)
    made.api.users.clear()
    clock.time = 59
    assert await made.user() == "jane"
    clock.time = 60
    assert await made.user() == ""


async def test_a_session_expires():
    clock = FakeClock()
    made = await signed_in(AccessSettings(session_seconds=600), clock)
    clock.time = 599
    assert await made.user() == "jane"
    clock.time = 601
    assert await made.user() == ""


async def test_a_changed_cookie_is_nobody():
    made = await signed_in()
    value = made.browser.cookies[COOKIE]
    for changed in (value[:-8] + "AAAAAAA=", value[:40] + ("A" if value[40] != "A" else "B") + value[41:], "", "ü"):
        other = made.new_browser()
        other.headers.raw.append((b"cookie", f"{COOKIE}={changed}".encode()))
        assert await made.user(other) == ""


async def test_signing_out_ends_copies_of_the_cookie():
    made = await signed_in()
    thief = made.new_browser()
    thief.cookies.set(COOKIE, made.browser.cookies[COOKIE], domain="console.example")
    assert await made.user(thief) == "jane"
    response = await made.post("/signout")
    assert response.status_code == 200
    assert COOKIE not in made.browser.cookies
    assert await made.user() == ""
    assert await made.user(thief) == ""


async def test_without_a_session_there_is_nothing_to_end():
    assert "no session to end" in texts(await console().post("/signout"))
    assert (await console().get("/signout")).json()["page"]["blocks"][1]["method"] == "post"


async def test_replicas_with_the_same_key_file_share_sessions_and_a_new_key_keeps_them(tmp_path: Path):
    file = tmp_path / "keys"
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    file.write_text(f"{old}\n")
    settings = AccessSettings(key_file=str(file))
    first = await signed_in(settings)
    cookie = f"{COOKIE}={first.browser.cookies[COOKIE]}"
    assert await console(settings).user(cookie=cookie) == "jane"
    file.write_text(f"{new}\n{old}\n")
    assert await console(settings).user(cookie=cookie) == "jane"
    file.write_text(f"{new}\n")
    assert await console(settings).user(cookie=cookie) == ""


@pytest.mark.parametrize(("text", "words"), [("", "is empty"), ("short\n", "key 1"), (None, "No such file")])
def test_key_files_that_cannot_be_used(text: str | None, words: str, tmp_path: Path):
    file = tmp_path / "keys"
    if text is not None:
        file.write_text(text)
    with pytest.raises(FileError, match=words):
        console(AccessSettings(key_file=str(file)))


@pytest.mark.parametrize(
    "next_path",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "javascript:alert(1)",
        " /nodes",
        "nodes",
        "/signin?next=/signin",
        "/signout",
        "//[",
    ],
)
async def test_no_sign_in_leads_elsewhere(next_path: str):
    made = console()
    response = await made.post("/signin/token", {"token": TOKEN, "next": next_path})
    assert response.headers["location"] == "/"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"sec_fetch_site": ""}, 303),
        ({"origin": ""}, 303),
        ({"origin": "", "sec_fetch_site": ""}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://console.example"}, 403),
        ({"sec_fetch_site": "cross-site"}, 403),
        ({"sec_fetch_site": "same-site"}, 403),
        ({"sec_fetch_site": "none"}, 403),
    ],
)
async def test_other_sites_cannot_post(headers: dict[str, str], status: int):
    assert (await console().post("/signin/token", {"token": TOKEN}, **headers)).status_code == status


async def test_a_configured_origin_counts_behind_a_proxy():
    made = console(AccessSettings(origin="https://flotilla.example.com"))
    fields = {"token": TOKEN}
    assert (await made.post("/signin/token", fields)).status_code == 403
    assert (await made.post("/signin/token", fields, origin="https://flotilla.example.com")).status_code == 303


@pytest.mark.parametrize("token", ["", "forged", "ü"])
async def test_forms_without_their_token_are_refused(token: str):
    made = console()
    await made.get("/signin")
    assert (await made.send("/signin/token", {CSRF_FIELD: token, "token": TOKEN})).status_code == 403


async def test_a_form_of_another_browser_or_session_is_refused():
    made = console()
    other = (await made.new_browser().get("/signin")).json()["csrf"]
    await made.get("/signin")
    assert (await made.send("/signin/token", {CSRF_FIELD: other, "token": TOKEN})).status_code == 403
    before = (await made.get("/signin")).json()["csrf"]
    await made.post("/signin/token", {"token": TOKEN})
    assert (await made.send("/signout", {CSRF_FIELD: before})).status_code == 403
    del made.browser.cookies[CSRF_COOKIE]
    assert (await made.send("/signout", {CSRF_FIELD: before})).status_code == 403
    assert await made.user() == "jane"


async def test_forms_are_bounded():
    made = console()
    headers = {"Origin": ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
    for body, status in ((b"a=" + b"x" * 70_000, 413), (b"&".join([b"a=1"] * 300), 400), (b"a=%ff", 400)):
        assert (await made.browser.post("/signin/token", content=body, headers=headers)).status_code == status
    response = await made.browser.post("/signin/token", json={}, headers={"Origin": ORIGIN})
    assert response.status_code == 415


async def test_attempts_are_limited_per_minute():
    clock = FakeClock()
    made = console(AccessSettings(attempts_per_minute=3), clock)
    codes = [(await made.post("/signin/token", {"token": "wrong"})).status_code for _ in range(4)]
    assert codes == [401, 401, 401, 429]
    response = await made.post("/signin/token", {"token": TOKEN})
    assert response.status_code == 429
    assert 0 < int(response.headers["retry-after"]) <= 61
    clock.time = 60
    assert (await made.post("/signin/token", {"token": TOKEN})).status_code == 303


async def test_a_link_on_another_site_is_followed_once_more_with_the_cookie():
    made = await signed_in()
    response = await made.get("/signin?next=/nodes", sec_fetch_site="cross-site")
    assert response.headers["refresh"] == "0; url=/nodes"
    response = await made.get("/signin?next=/nodes", sec_fetch_site="same-origin")
    assert (response.status_code, response.headers["location"]) == (303, "/nodes")


async def test_headers_of_urls_have_no_letters_that_headers_cannot_have():
    response = await console().get("/signin?next=/pods/ü%22;x", sec_fetch_site="cross-site")
    assert response.headers["refresh"] == "0; url=/pods/%C3%BC%22;x"


async def test_the_way_back_leads_to_the_page_that_was_asked_for():
    response = await console().get("/whoami?sort=name")
    assert response.json()["href"] == "/signin?next=%2Fwhoami%3Fsort%3Dname"


async def test_ways_that_are_not_configured_do_not_exist():
    made = console(AccessSettings(ways=("fixed",), fixed=FixedSettings(user="viewer")))
    assert await made.user() == "viewer"
    for path in ("/signin/token", "/signin/oidc"):
        assert (await made.post(path)).status_code == 404
    assert (await made.get("/signin/oidc/callback")).status_code == 404


async def test_a_session_of_a_way_that_was_removed_is_nobody(tmp_path: Path):
    file = tmp_path / "keys"
    file.write_bytes(Fernet.generate_key())
    made = await signed_in(AccessSettings(key_file=str(file)))
    later = console(AccessSettings(key_file=str(file), ways=("fixed",), fixed=FixedSettings(user="viewer")))
    assert await later.user(cookie=f"{COOKIE}={made.browser.cookies[COOKIE]}") == "viewer"


def proxied(tmp_path: Path, **settings: str) -> Console:
    file = tmp_path / "secret"
    file.write_text(f"another-secret-of-16\n{SECRET}\n")
    proxy = ProxySettings(secret_file=str(file), **settings)  # type: ignore[arg-type]
    return console(AccessSettings(ways=("proxy", "token"), proxy=proxy))


async def test_headers_of_a_proxy_count_with_its_secret(tmp_path: Path):
    made = proxied(tmp_path)
    headers = [("X-Remote-User", "jo"), ("X-Remote-Group", "a,b"), ("X-Remote-Group", "c")]
    headers += [("X-Remote-Extra-Acme.com%2Fid", "7"), ("X-Flotilla-Proxy-Secret", SECRET)]
    answer = (await made.browser.get("/whoami", headers=headers)).json()
    assert answer == {
        "user": "jo",
        "groups": ["a,b", "c", "system:authenticated"],
        "extra": {"acme.com/id": ["7"]},
    }


async def test_groups_may_be_separated_by_a_sign(tmp_path: Path):
    made = proxied(tmp_path, group_header="X-Forwarded-Groups", group_separator=",")
    headers = {"X-Remote-User": "jo", "X-Forwarded-Groups": "a, b,", "X-Flotilla-Proxy-Secret": SECRET}
    answer = (await made.browser.get("/whoami", headers=headers)).json()
    assert answer["groups"] == ["a", "b", "system:authenticated"]


@pytest.mark.parametrize("secret", ["", "wrong", SECRET[:-1], SECRET + "x", f"another-secret-of-16 {SECRET}"])
async def test_headers_without_the_secret_are_nobody(secret: str, tmp_path: Path):
    made = proxied(tmp_path)
    headers = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters", "X-Flotilla-Proxy-Secret": secret}
    answer = (await made.browser.get("/whoami", headers=headers)).json()
    assert answer["user"] == ""
    assert "not trusted" in answer["reason"]


async def test_beside_a_proxy_the_other_ways_work(tmp_path: Path):
    made = proxied(tmp_path)
    await made.post("/signin/token", {"token": TOKEN})
    assert await made.user() == "jane"
    assert await made.user(X_Remote_User="jo") == "jane"
    assert await made.user(X_Remote_User="jo", X_Flotilla_Proxy_Secret=SECRET) == "jo"


@pytest.mark.parametrize(("text", "words"), [("", "is empty"), ("short\n", "16 bytes"), (None, "No such file")])
def test_secret_files_that_cannot_be_used(text: str | None, words: str, tmp_path: Path):
    file = tmp_path / "secret"
    if text is not None:
        file.write_text(text)
    with pytest.raises(FileError, match=words):
        ProxyHeaders(ProxySettings(secret_file=str(file)))


def test_settings_that_contradict_are_named():
    assert problems(AccessSettings()) == ()
    every = problems(AccessSettings(ways=("proxy", "oidc", "fixed")))
    assert len(every) == 5
    assert "secret file or names of client certificates" in every[0]
    assert problems(AccessSettings(ways=())) == ("no way to sign in is configured",)
