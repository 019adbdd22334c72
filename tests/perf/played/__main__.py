"""Runs the stand-in as a process: python -m tests.perf.played --port 8001 --sets 10 --pods-each 1000 --nodes 100.

Beside the API it answers requests of tests: POST /played/change?rate=500&seconds=60, POST /played/lose, GET /played.
"""

import argparse
import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import uvloop
from aiohttp import web

from tests.perf.played.apiserver import Apiserver
from tests.perf.played.player import Player
from tests.perf.played.population import Population, Sizes
from tests.perf.played.recording import recorded
from tests.perf.played.world import World

HOST = "127.0.0.1"


def main() -> None:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser()
    for name in ("port", "sets", "pods-each", "nodes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    arguments = parser.parse_args()
    sizes = Sizes(sets=arguments.sets, pods_each=arguments.pods_each, nodes=arguments.nodes)
    uvloop.run(serve(sizes, arguments.port))


async def serve(sizes: Sizes, port: int) -> None:
    """Serve until cancelled."""
    world = World(Population(recorded(), sizes))
    apiserver = Apiserver(world.collections, world.last_version, world.settle)
    player = Player(world.pods, sizes.pods)
    apiserver.on_created.append(player.created)
    application = web.Application(client_max_size=16 << 20)
    application.add_routes(
        [
            *apiserver.routes(),
            web.post("/played/change", _starting(player.change)),
            web.post("/played/lose", _starting(player.lose)),
            web.get("/played", _showing(player, apiserver)),
        ]
    )
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, HOST, port).start()
    await asyncio.Event().wait()


Handler = Callable[[web.Request], Awaitable[web.Response]]


def _starting(play: Callable[[float, float], Awaitable[None]]) -> Handler:
    """Return a handler that answers when everything is played."""

    async def handle(request: web.Request) -> web.Response:
        await play(float(request.query["rate"]), float(request.query["seconds"]))
        return web.json_response({})

    return handle


def _showing(player: Player, apiserver: Apiserver) -> Handler:
    async def handle(_: web.Request) -> web.Response:
        shown = {"sent": player.sent, "reactions": player.reactions, "requests": apiserver.requests}
        return web.Response(body=msgspec.json.encode(shown), content_type="application/json")

    return handle


if __name__ == "__main__":
    main()
