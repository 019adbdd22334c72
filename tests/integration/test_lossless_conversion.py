"""An object that a client of v1alpha1 reads, changes and writes back keeps the fields of v1beta1, and vice versa.

Random objects of all kinds, through a real apiserver that calls our conversion, without admission or controllers.
"""

import base64
import json
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial

import msgspec
import pytest
import pytest_asyncio
from aiohttp import web

from flotilla_cli.local import HOST
from flotilla_common.api.crds import definition
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.resources import CRD, Resource
from flotilla_common.api.versions import ANNOTATION
from flotilla_common.clock import SystemClock
from flotilla_common.kube.interface import Api, ApiError
from flotilla_dev.cluster.access import admin
from flotilla_webhook.server.reviews import convert
from tests.simulation.contract.apiserver.harness import eventually
from tests.support.certificates import Authority
from tests.support.cluster import control_plane
from tests.support.random_objects import BOTH, lost, lost_in_storage, random_object
from tests.testkit.documents import Json

SEEDS = range(6)
"""Objects of each kind and direction; the seed is part of what a failure shows."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Api]:
    folder = tmp_path_factory.mktemp("plane")
    authority = Authority(folder)
    trusted = authority.file.read_bytes()
    async with control_plane(folder / "state", nodes=0) as cluster:
        runner = web.AppRunner(_application())
        await runner.setup()
        site = web.TCPSite(runner, HOST, 0, ssl_context=authority.server_context())
        await site.start()
        try:
            async with admin(cluster.kubeconfig, SystemClock()) as client:
                port = runner.addresses[0][1]
                await _define(client, f"https://{HOST}:{port}/convert", trusted)
                yield client
        finally:
            await runner.cleanup()


def _application() -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(body=convert(await request.read()), content_type="application/json")

    application = web.Application(client_max_size=64 * 1024 * 1024)
    application.router.add_post("/convert", answer)
    return application


async def _define(api: Api, url: str, trusted: bytes) -> None:
    """Create our CRDs, which call the conversion here."""
    bundle = base64.b64encode(trusted).decode()
    for kind in BOTH:
        manifest = definition(kind)
        if manifest["spec"]["conversion"]["strategy"] == "Webhook":
            manifest["spec"]["conversion"]["webhook"]["clientConfig"] = {"url": url, "caBundle": bundle}
        await api.create(CRD, "", msgspec.json.encode(manifest))
    for resource in [of(kind, version) for kind in BOTH for version in kind.versions]:
        await eventually(partial(_serves, api, resource))


async def _serves(api: Api, resource: Resource) -> bool:
    with suppress(ApiError):
        await api.list(resource)
        return True
    return False


def of(kind: Kind, version: str) -> Resource:
    """Return the resource of a version."""
    return msgspec.structs.replace(kind.resource, version=version)


def place(kind: Kind) -> str:
    return "default" if kind.resource.namespaced else ""


async def stored(api: Api, kind: Kind, document: Json, version: str) -> None:
    """Create the object with its status."""
    name, resource = document["metadata"]["name"], of(kind, version)
    made = json.loads(await api.create(resource, place(kind), msgspec.json.encode(document)))
    if "status" in document:
        body = msgspec.json.encode(made | {"status": document["status"]})
        await api.replace(resource, place(kind), name, body, "status")


async def read(api: Api, kind: Kind, name: str, version: str) -> Json:
    return json.loads(await api.get(of(kind, version), place(kind), name))


async def touched(api: Api, kind: Kind, name: str, version: str) -> None:
    """Do what a client of a version does: read, change and write back, the object and its status."""
    resource = of(kind, version)
    view = await read(api, kind, name, version)
    view["metadata"].setdefault("labels", {})["touched"] = "yes"
    view = json.loads(await api.replace(resource, place(kind), name, msgspec.json.encode(view)))
    if "status" in view:
        await api.replace(resource, place(kind), name, msgspec.json.encode(view), "status")
    patch = msgspec.json.encode({"metadata": {"annotations": {"example.com/patched": "yes"}}})
    await api.patch(resource, place(kind), name, patch, "application/merge-patch+json")


def written(document: Json) -> Json:
    """Return what a user wrote of an object, with its status."""
    return {key: document[key] for key in ("apiVersion", "kind", "spec", "status") if key in document}


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.singular)
async def test_both_directions(api: Api, kind: Kind) -> None:
    for seed in SEEDS:
        for version, other in (("v1beta1", "v1alpha1"), ("v1alpha1", "v1beta1")):
            document = random_object(kind, version, random.Random(seed), f"{version}-{seed}")
            await stored(api, kind, document, version)
            await touched(api, kind, document["metadata"]["name"], other)
            after = await read(api, kind, document["metadata"]["name"], version)
            missing = lost if version == "v1beta1" else lambda *pair: lost_in_storage(kind, *pair)
            assert not missing(written(document), after), f"seed {seed}"
            assert (
                after["metadata"]["labels"]["touched"]
                == after["metadata"]["annotations"]["example.com/patched"]
                == "yes"
            )
            raw = await read(api, kind, document["metadata"]["name"], "v1beta1")
            assert ANNOTATION not in raw["metadata"]["annotations"]


@pytest.mark.parametrize("size", [200_000, 300_000], ids=["fits", "does not fit"])
async def test_fields_as_large_as_annotations_may_be(api: Api, size: int) -> None:
    """The apiserver fails a LIST with more than 256 KiB of annotations: such fields are left out, and not lost."""
    (kind,) = [one for one in BOTH if one.name == "StatefulSet"]
    name, resource = f"large-{size}", of(kind, "v1alpha1")
    spec = {"selector": {}, "template": {}, "lifecycle": {"preDelete": {"labelsHandler": {"a": "x" * size}}}}
    document = {"apiVersion": "apps.kruise.io/v1beta1", "kind": kind.name, "metadata": {"name": name}, "spec": spec}
    await stored(api, kind, document, "v1beta1")
    assert (await api.list(resource)).items
    if size < 256 * 1024:
        await touched(api, kind, name, "v1alpha1")
    else:
        with pytest.raises(ApiError, match="do not fit into an annotation: write it as v1beta1"):
            await touched(api, kind, name, "v1alpha1")
    assert (await read(api, kind, name, "v1beta1"))["spec"]["lifecycle"] == spec["lifecycle"]
