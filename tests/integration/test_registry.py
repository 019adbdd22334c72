"""A registry keeps pushed images, by our own client and by crane: the same in a container and as a process."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from flotilla_common.clock import SystemClock
from flotilla_dev.cluster.provision import machine, provide
from flotilla_dev.cluster.realnodes.registry import Registry
from flotilla_dev.image import oci
from flotilla_dev.image.oci import MANIFEST, Image, digest
from flotilla_dev.image.tree import File
from tests.support.registry import registry


@pytest.fixture(scope="module")
def page() -> Callable[[str], Image]:
    def page(text: str) -> Image:
        return oci.image([oci.Layer.of("page", {"page": File(text.encode())})], machine(), {})

    return page


@pytest_asyncio.fixture
async def crane() -> Path:
    return (await provide(["crane"], SystemClock()))("crane")


@pytest_asyncio.fixture
async def served(tmp_path: Path, crane: Path) -> AsyncIterator[Registry]:
    async with registry(tmp_path, {"crane": crane}.__getitem__) as running:
        yield running


async def manifest(served: Registry, path: str, name: str) -> bytes:
    accepted = {"Accept": MANIFEST}
    async with (
        aiohttp.ClientSession(served.url) as session,
        session.get(f"/v2/{path}/manifests/{name}", headers=accepted) as reply,
    ):
        assert reply.status == 200
        return await reply.read()


async def test_what_is_stored_comes_out_as_it_went_in(served: Registry, page: Callable[[str], Image]) -> None:
    image = page("one")
    await served.store("shop/app:v1", image)
    assert digest(await manifest(served, "shop/app", "v1")) == image.digest
    async with aiohttp.ClientSession(served.url) as session:
        for name in image.blobs:
            async with session.get(f"/v2/shop/app/blobs/{name}") as reply:
                assert digest(await reply.read()) == name


async def test_a_tag_moves_and_the_old_image_stays(served: Registry, page: Callable[[str], Image]) -> None:
    old, new = page("old"), page("new")
    await served.store("shop/app:v1", old)
    await served.store("shop/app:v1", new)
    assert digest(await manifest(served, "shop/app", "v1")) == new.digest
    assert digest(await manifest(served, "shop/app", old.digest)) == old.digest


async def test_crane_pushes_the_same(served: Registry, page: Callable[[str], Image], crane: Path) -> None:
    image = page("crane")
    oci.push(image, served.address, "nats:2", crane)
    assert digest(await manifest(served, "library/nats", "2")) == image.digest
