"""Signing in over real connections: an OpenID Connect provider, the client certificate of a proxy, a fixed identity.

Each console serves TLS by itself, and is a further replica beside that of the other files.
"""

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio
from cryptography.fernet import Fernet
from playwright.async_api import Browser, expect

from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.clock import SystemClock
from flotilla_console import app, paths
from flotilla_dev.cluster.ports import free_ports
from tests.integration.browser.site.front import front
from tests.integration.browser.visitor import Visitor, visitor
from tests.integration.console.site import DEVELOPER, HOST, Site, account
from tests.support.certificates import Authority
from tests.support.cluster import eventually
from tests.support.fleet import Fleet
from tests.support.openid import CLIENT, Provider, provider_at
from tests.support.scene import OLD, Scene, cloneset, scene

pytestmark = [pytest.mark.asyncio(loop_scope="package"), pytest.mark.timeout(300)]

WEB, REPLICAS, GROUP = "web", 2, "developers"
TITLE = f"CloneSet {WEB}"
PATIENCE = 30_000


@dataclass
class Replica:
    """A console at a URL, and the flags that it was started with."""

    url: str
    flags: Sequence[str] = ()


@asynccontextmanager
async def secured(
    flotilla: Fleet, authority: Authority, *flags: str, replica: str, port: int = 0
) -> AsyncGenerator[Replica]:
    """Run a replica that serves TLS for the time of the block."""
    pair, port = authority.pair(), port or free_ports(1)[0]
    usual = (
        f"--kubeconfig={await account(flotilla)}",
        f"--console-listen={HOST}",
        f"--console-port={port}",
        f"--console-tls-cert={pair}",
        f"--console-tls-key={pair}",
    )
    await flotilla.start(app.NAME, replica=replica, flags=[*usual, *flags])
    try:
        yield Replica(f"https://{HOST}:{port}", flags)
    finally:
        await flotilla.terminate(f"{app.NAME}-{replica}")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def place(flotilla: Fleet, console: Site) -> AsyncIterator[Scene[Fleet]]:
    """Yield a namespace in which a group may do everything."""
    async with scene(flotilla) as made:
        console.admit(GROUP, made.namespace, DEVELOPER, kind="Group")
        await made.create(cloneset(WEB, REPLICAS))
        await made.settle(WEB, OLD, REPLICAS)
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def provider(authority: Authority) -> AsyncIterator[Provider]:
    (port,) = free_ports(1)
    async with provider_at(port, authority, SystemClock()) as made:
        made.claims = {"groups": [GROUP]}
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def site(
    flotilla: Fleet, authority: Authority, provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Replica]:
    """Yield a console at which users sign in with the provider."""
    (port,), key = free_ports(1), tmp_path_factory.mktemp("key") / "cookie-key"
    key.write_bytes(Fernet.generate_key())
    flags = (
        "--console-sign-in=oidc",
        f"--console-url=https://{HOST}:{port}",
        f"--console-oidc-issuer={provider.issuer}",
        f"--console-oidc-client-id={CLIENT}",
        f"--console-oidc-ca={authority.file}",
        f"--console-cookie-key-file={key}",
    )
    async with secured(flotilla, authority, *flags, replica="secured", port=port) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="package")
async def jane(browser: Browser, site: Replica, provider: Provider) -> AsyncIterator[Visitor]:
    provider.forget_codes()
    async with visitor(browser, site, "") as made:
        yield made
        assert await made.violations() == []


def workload(place: Scene[Fleet], *rest: str) -> str:
    return paths.workload(CLONE_SET.group, CLONE_SET.plural, place.namespace, WEB, *rest)


def status(at: Replica, authority: Authority, place: Scene[Fleet], cookies: Mapping[str, str]) -> int:
    """Return the status of the workload's page at a replica for somebody with these cookies."""
    header = "; ".join(f"{name}={value}" for name, value in cookies.items())
    trusted = ssl.create_default_context(cafile=authority.file)
    return httpx2.get(at.url + workload(place), headers={"Cookie": header}, verify=trusted).status_code


async def sign_in(user: Visitor, path: str, name: str) -> None:
    """Open a page, and sign in at the provider on the way."""
    await user.open(path)
    await user.link("Sign in").click()
    await user.main.get_by_role("button", name="Sign in with your organization").click()
    await user.page.get_by_label("User").fill(name)
    await user.page.get_by_role("button", name="Sign in").click()


async def test_a_user_of_the_provider_acts_as_themselves(
    jane: Visitor, place: Scene[Fleet], provider: Provider
) -> None:
    await sign_in(jane, workload(place), "jane")
    await jane.shows(TITLE)
    await jane.link("Scale").click()
    await jane.main.get_by_label("Replicas").fill(str(REPLICAS + 1))
    await jane.main.get_by_role("button", name="Preview").click()
    await jane.main.get_by_role("button", name="Scale", exact=True).click(timeout=PATIENCE)
    await place.settle(WEB, OLD, REPLICAS + 1)
    await expect(jane.main).to_contain_text(f"{provider.issuer}#jane scaled it to {REPLICAS + 1}", timeout=PATIENCE)


async def test_who_is_refused_by_the_provider_sees_why(jane: Visitor, place: Scene[Fleet]) -> None:
    await sign_in(jane, workload(place), "")
    await expect(jane.main).to_contain_text("The provider refused: access_denied nobody signed in")
    await jane.open(workload(place))
    await jane.shows("Sign in")


async def test_a_copied_cookie_ends_with_its_session(
    flotilla: Fleet, authority: Authority, provider: Provider, jane: Visitor, site: Replica, place: Scene[Fleet]
) -> None:
    """Also at another replica, and at one that starts later."""
    async with secured(flotilla, authority, *site.flags, replica="second") as second:
        await sign_in(jane, workload(place), "jane")
        await jane.shows(TITLE)
        copy = {one.get("name", ""): one.get("value", "") for one in await jane.context.cookies()}
        assert status(second, authority, place, copy) == 200
        await jane.open("/signout")
        await jane.main.get_by_role("button", name="Sign out").click()
        await expect(jane.main).to_contain_text("You are signed out")
        assert status(site, authority, place, copy) == 401
        await eventually(lambda: status(second, authority, place, copy) == 401)
    async with secured(flotilla, authority, *site.flags, replica="third") as third:
        await eventually(lambda: status(third, authority, place, copy) == 401)


async def test_the_certificate_of_a_proxy(
    flotilla: Fleet, browser: Browser, authority: Authority, place: Scene[Fleet], console: Site, tmp_path: Path
) -> None:
    """Its headers count on a connection with the certificate of its name, and on no other."""
    console.admit("joan", place.namespace, DEVELOPER)
    trusted, untrusted = free_ports(2)
    flags = (
        "--console-sign-in=proxy",
        f"--console-client-ca={authority.file}",
        f"--console-client-names={HOST}",  # the common name in certificates of the authority
    )
    certified = ssl.create_default_context(cafile=authority.file)
    certified.load_cert_chain(authority.pair())
    foreign = ssl.create_default_context(cafile=authority.file)
    foreign.load_cert_chain(Authority(tmp_path, "others").pair())
    plain = ssl.create_default_context(cafile=authority.file)
    async with (
        secured(flotilla, authority, *flags, replica="certified") as made,
        front(trusted, made.url, tls=certified),
        front(untrusted, made.url, tls=plain),
    ):
        async with visitor(browser, Replica(f"http://{HOST}:{trusted}"), "joan") as user:
            await user.open(workload(place))
            await user.shows(TITLE)
            await expect(user.banners).to_be_empty()
            assert await user.violations() == []
        async with visitor(browser, Replica(f"http://{HOST}:{untrusted}"), "joan") as user:
            await user.open(workload(place))
            await user.shows("Sign in")
        async with httpx2.AsyncClient(verify=foreign) as client:
            with pytest.raises(httpx2.TransportError):
                await client.get(made.url, headers={"X-Remote-User": "joan"})


async def test_the_fixed_identity_only_reads(
    flotilla: Fleet, browser: Browser, authority: Authority, place: Scene[Fleet], console: Site
) -> None:
    """It has the rights of a developer in the cluster, and the console does not use them."""
    console.admit("everybody", place.namespace, DEVELOPER)
    flags = ("--console-sign-in=fixed", "--console-fixed-user=everybody")
    async with secured(flotilla, authority, *flags, replica="fixed") as made, visitor(browser, made, "") as user:
        await user.open(workload(place))
        await user.shows(TITLE)
        await expect(user.link("timeline")).to_be_visible()
        await expect(user.link("Scale")).to_have_count(0)
        await user.open(workload(place, "action", "scale"))
        await user.main.get_by_label("Replicas").fill("0")
        await user.main.get_by_role("button", name="Preview").click()
        await expect(user.main).to_contain_text("everybody may only read", timeout=PATIENCE)
        assert await user.violations() == []
