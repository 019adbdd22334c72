"""Gathers all facts about an installation, in parallel, each within its own deadline.

Some need the whole look: heartbeats are collected, leases are read twice, and objects listed at the beginning are
compared with the bus at the end.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.resources import LEASE, NODE, POD
from flotilla_common.api.resources import NAMESPACE as NAMESPACES
from flotilla_common.bus.interface import BusError
from flotilla_common.bus.nats import NatsBus
from flotilla_common.bus.streams import shards_of
from flotilla_common.clock import Clock
from flotilla_common.installed import published
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_insight.bus.connection import connected
from flotilla_insight.doctor import expected
from flotilla_insight.doctor.facts import (
    Banner,
    Certificate,
    Fact,
    Facts,
    Health,
    NotKnown,
    ReplicaHeartbeat,
    Sample,
    Stream,
)
from flotilla_insight.doctor.gather import bus as bus_facts
from flotilla_insight.doctor.gather import cluster, tls
from flotilla_insight.doctor.gather.cluster import listed
from flotilla_insight.installation.objects import CLUSTER_ROLE_BINDING, Place, get
from flotilla_insight.installation.rbac import NAMESPACE, account
from flotilla_insight.published import LISTEN_SECONDS

T = TypeVar("T")

SECONDS = 8.0
"""Default deadline of a fact, in seconds."""

LONG_SECONDS = bus_facts.PATIENCE_SECONDS + SECONDS
"""Deadline of facts that need the whole look."""

NO_BUS = "no bus is known for this cluster: give --nats URL, or forward the port of the chart's (docs/doctor.md)"
NODE_LEASES = "kube-node-lease"


async def fact(asking: Coroutine[Any, Any, T], seconds: float = SECONDS) -> Fact[T]:
    """Await the fact. Failures of cluster or bus become the reason why it is missing."""
    try:
        async with asyncio.timeout(seconds):
            return Fact(await asking)
    except TimeoutError:
        return Fact(why=f"no answer within {seconds:g} s")
    except ApiError as error:
        return Fact(why=f"{'not allowed: ' if error.code == 403 else ''}{error.message}")
    except Unreachable as error:
        return Fact(why=f"the apiserver does not answer: {error}")
    except BusError as error:
        return Fact(why=f"the bus does not answer: {error}")
    except NotKnown as error:
        return Fact(why=str(error))
    except OSError as error:
        return Fact(why=str(error))


async def no_processes() -> Sequence[Health]:
    """Return the processes of a cluster that is not a local set."""
    return ()


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """The places to look at. `bus_url` has all servers of the bus, with commas; None without a bus, as `bus`."""

    api: Api
    clock: Clock
    bus: NatsBus | None = None
    bus_url: str | None = None
    namespace: str = ""  # of the installation; empty: it is looked up
    enrolled: frozenset[str] = frozenset()  # nodes that have credentials for the bus
    local: Sequence[str] | None = None  # the services of the local set; None: it is not one
    processes: Callable[[], Awaitable[Sequence[Health]]] = no_processes  # of the local set


async def collect(places: Sources) -> Facts:
    """Gather all facts."""
    return await _Look(places).facts()


class _Look:
    """The requests of one look; some wait for the results of others."""

    def __init__(self, places: Sources) -> None:
        self._places = places
        self._api = places.api
        self._clock = places.clock
        self._asked: dict[str, asyncio.Task[Fact[Any]]] = {}
        self._home = asyncio.ensure_future(_namespace(places))
        self._over = asyncio.Event()

    async def facts(self) -> Facts:
        """Send all requests at once, and wait for all results."""
        questions = {**self._of_cluster(), **self._of_bus()}
        self._asked = {name: asyncio.ensure_future(fact(*question)) for name, question in questions.items()}
        processes = await self._places.processes()
        found = {name: await task for name, task in self._asked.items()}
        return Facts(
            now=self._clock.now(),
            namespace=await self._namespace(),
            **found,
            processes=processes,
            local=tuple(self._places.local or ()),
            enrolled=self._places.enrolled,
        )

    def _of_cluster(self) -> Mapping[str, tuple[Coroutine[Any, Any, object], float]]:
        api, clock = self._api, self._clock
        quick: dict[str, Coroutine[Any, Any, object]] = {
            "server": cluster.server(api, clock),
            "definitions": cluster.definitions(api),
            "hooks": cluster.hooks(api),
            "backends": self._with(cluster.backends, self._answer("hooks")),
            "home": self._namespace_object(),
            "rights": self._with(cluster.rights, self._namespace()),
            "policies": cluster.policies(api),
            "leader": cluster.leader(api),
            "nodes": listed(api, NODE),
            "node_leases": listed(api, LEASE, NODE_LEASES),
            "workloads": cluster.workloads(api),
            "pods": cluster.pods(api),
            "foreign": self._with(cluster.foreign, self._answer("definitions")),
            "webhook_certificate": self._webhook_certificate(),
        }
        long = {"probes": cluster.probes(api, clock), "leases": cluster.leases(api, self._namespace, self._over)}
        return {name: (asking, SECONDS) for name, asking in quick.items()} | {
            name: (asking, LONG_SECONDS) for name, asking in long.items()
        }

    def _of_bus(self) -> Mapping[str, tuple[Coroutine[Any, Any, object], float]]:
        return {
            "banners": (self._banners(), SECONDS),
            "account": (self._account(), SECONDS),
            "heartbeats": (self._heartbeats(), LONG_SECONDS),
            "streams": (self._streams(), LONG_SECONDS),
            "samples": (self._samples(), LONG_SECONDS),
        }

    async def _answer(self, name: str) -> Any:
        """Return the result of another request. Raises NotKnown."""
        return (await asyncio.shield(self._asked[name])).get()

    async def _with(self, ask: Callable[[Api, Any], Awaitable[object]], known: Awaitable[Any]) -> object:
        """Send a request that needs the result of another."""
        return await ask(self._api, await known)

    async def _namespace(self) -> str:
        return await asyncio.shield(self._home)  # one fact that is late does not cancel it for the others

    async def _namespace_object(self) -> Json:
        return await get(self._api, Place(NAMESPACES, "", await self._namespace())) or {}

    async def _webhook_certificate(self) -> Certificate:
        """Check a webhook outside the cluster, which is reachable from here as from the apiserver."""
        clients = [member(entry, "clientConfig") for entry in _entries(await self._answer("hooks"))]
        client = next((one for one in clients if one.get("url") and one.get("caBundle")), None)
        if client is None:
            raise NotKnown("the webhook is behind a Service, which only the apiserver can reach")
        try:
            return await tls.shown(text(client.get("url")), text(client.get("caBundle")))
        except (OSError, TimeoutError) as error:
            host = urlsplit(text(client.get("url"))).netloc
            raise NotKnown(f"{host} cannot be reached from here: {error or 'no answer'}") from error

    async def _banners(self) -> Sequence[Banner]:
        servers = [url.strip() for url in self._url().split(",") if url.strip()]
        return await asyncio.gather(*map(tls.banner, servers))

    async def _account(self) -> object:
        return await bus_facts.account(await self._bus())

    async def _heartbeats(self) -> Sequence[ReplicaHeartbeat]:
        """Collect heartbeats, then end the look, also on failure: leases are read a second time then."""
        try:
            bus = await self._bus()
            needed = asyncio.ensure_future(self._expected())
            return await bus_facts.heartbeats(
                bus, self._clock, lambda known: needed.done() and needed.result() <= known
            )
        except (BusError, NotKnown):
            await self._clock.sleep(LISTEN_SECONDS)
            raise
        finally:
            self._over.set()

    async def _expected(self) -> set[str]:
        """Return the services whose heartbeats to wait for, by the objects that may be read."""
        hooks, workloads = await asyncio.gather(*(asyncio.shield(self._asked[name]) for name in ("hooks", "workloads")))
        return expected.named(self._places.local, workloads.found or (), hooks.found or ())

    async def _streams(self) -> Mapping[str, Stream | None]:
        bus = await self._bus()
        await self._over.wait()
        shards = len(await shards_of(bus, POD))
        return await bus_facts.streams(bus, tuple(bus_facts.wanted(shards)))

    async def _samples(self) -> Mapping[str, Sample]:
        bus = await self._bus()
        listings = await bus_facts.listing(self._api, published())
        await self._over.wait()
        return await bus_facts.compared(self._api, bus, listings)

    def _url(self) -> str:
        if self._places.bus_url is None:
            raise NotKnown(NO_BUS)
        return self._places.bus_url

    async def _bus(self) -> NatsBus:
        """Return the connected bus. Raises NotKnown, BusError."""
        if self._places.bus is None:
            raise NotKnown(NO_BUS)
        await connected(self._places.bus, self._clock)
        return self._places.bus


async def _namespace(places: Sources) -> str:
    """Return the namespace of the installation, by its own binding; the default one if that cannot be read."""
    if places.namespace:
        return places.namespace
    try:
        async with asyncio.timeout(SECONDS):
            binding = await get(places.api, Place(CLUSTER_ROLE_BINDING, "", account("webhook"))) or {}
    except (ApiError, Unreachable, TimeoutError):
        return NAMESPACE
    subjects = mappings(binding.get("subjects"))
    return next((text(one.get("namespace")) for one in subjects if one.get("namespace")), NAMESPACE)


def _entries(configurations: Sequence[Json]) -> list[Json]:
    """Return the entries of our own configurations."""
    return [entry for one in configurations if expected.is_ours(one) for entry in mappings(one.get("webhooks"))]
