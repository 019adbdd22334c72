"""A streaming list is never in memory as a whole, whatever its size."""

import asyncio
import tracemalloc

from aiohttp import web
from aiohttp.test_utils import TestServer

from flotilla_common.api.resources import POD
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import ApiConfig
from flotilla_common.kube.watch import ends_list
from tests.unit.kube.test_client import Tokens

OBJECT = b'{"type":"ADDED","object":{"data":"' + b"x" * 4000 + b'"}}\n'
END = b'{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
OBJECTS, AT_ONCE = 5000, 20
MOST_BYTES = 13 << 20
"""Of a list of 20 MB: two MiB that have come, as a chunk and as lines, and what the other end of this process holds."""


async def _send(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for _ in range(OBJECTS // AT_ONCE):
        await response.write(OBJECT * AT_ONCE)
    await response.write(END)
    return response


async def test_a_list_is_read_piece_by_piece() -> None:
    app = web.Application()
    app.router.add_get("/{tail:.*}", _send)
    async with TestServer(app) as server:
        config = ApiConfig(server=str(server.make_url("")).rstrip("/"), credential=Tokens("t"))
        client, listed = KubeClient(config, user_agent="x"), 0
        tracemalloc.start()
        try:
            async for event in client.stream(POD):
                if ends_list(event):
                    break
                listed += 1
                await asyncio.sleep(0)  # the apiserver sends meanwhile as much as it may
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            await client.close()
    assert listed == OBJECTS
    assert peak < MOST_BYTES < OBJECTS * len(OBJECT)
