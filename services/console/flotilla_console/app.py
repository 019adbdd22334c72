"""The program of the console: its pages, and what they are made of.

It writes as the user who clicks, and holds no lease: each replica serves all pages, from a mirror of its own.
"""

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from starlette.routing import BaseRoute

from flotilla_common.api.resources import Resource
from flotilla_common.bus.nats import NatsBus
from flotilla_common.health import bind
from flotilla_common.kube.client import KubeClient
from flotilla_common.kube.config import load_config
from flotilla_common.service import Context, Service, run_alone
from flotilla_console import sign_in_pages
from flotilla_console.access import local_key
from flotilla_console.access.acting import Acting, without_credentials
from flotilla_console.access.identity import Identity
from flotilla_console.access.reading import UserReader
from flotilla_console.access.rights import Rights
from flotilla_console.access.signin import SignIn
from flotilla_console.actions.carrying_out import Actor
from flotilla_console.actions.catalogue import rights_of
from flotilla_console.actions.client import UserClient
from flotilla_console.actions.kinds import KINDS
from flotilla_console.actions.preview import Previews
from flotilla_console.door import Door, Entrance
from flotilla_console.examiner import Examiner
from flotilla_console.forms import ActionRoutes
from flotilla_console.model.model import Model
from flotilla_console.page import PageSpec
from flotilla_console.pages import bus, doctor, pod, timeline
from flotilla_console.pages.action import ActionPage
from flotilla_console.pages.fleet import FLEET
from flotilla_console.pages.nodes import NODE_PAGE, NODES
from flotilla_console.pages.topology import TOPOLOGY
from flotilla_console.pages.workload import WORKLOAD
from flotilla_console.privileges import ACCESS, AS_USERS, bus_permissions
from flotilla_console.settings import access_settings
from flotilla_console.sights import Sights
from flotilla_console.story.bus_look import BusWatcher
from flotilla_console.story.records import RecordReader
from flotilla_console.story.traffic import TrafficReader
from flotilla_console.web.serving import serving
from flotilla_console.web.site import Site
from flotilla_console.web.tls import certificate_of
from flotilla_insight.doctor.collect import Sources
from flotilla_insight.doctor.looking import examined
from flotilla_insight.services import usual

NAME = "console"


async def run(context: Context) -> None:
    """Serve the console until cancelled. Raises PortTaken, SettingsError and FileError."""
    sign_in = SignIn(access_settings(context.settings), context.api, context.clock)
    model = Model(
        api=context.api,
        bus=context.bus,
        clock=context.clock,
        health=context.health,
        fallback_after=context.settings.bus_fallback_after,
    )
    context.vitals["lag"] = lambda: round(model.lag, 1)
    context.vitals["direct"] = lambda: [one.id for one in model.direct]
    async with _acting(context, sign_in) as acting, asyncio.TaskGroup() as group:
        console = _Console(context, sign_in, model, acting)
        group.create_task(model.run())
        group.create_task(console.examiner.run())
        if sign_in.has("oidc") or sign_in.has("token"):
            await sign_in.ended.share(context.bus, context.service)
        await model.synced()
        await console.serve()


class _Console:
    """The parts of the console, put together."""

    def __init__(self, context: Context, sign_in: SignIn, model: Model, acting: Acting) -> None:
        self._context, self._sign_in, self._model, self._acting = context, sign_in, model, acting
        self._bus = cast("NatsBus", context.bus)  # a process has no other
        self._right = bus.needed(context.settings.namespace)
        access = sign_in.settings
        rights = Rights(
            context.api,
            context.clock,
            seconds=access.rights_seconds,
            grace=access.rights_grace_seconds,
            at_once=access.reviews_at_once,
        )
        self._sights = Sights(model, rights, context.clock, actions=_action_rights, further=[self._right])
        sources = Sources(
            api=context.api,
            clock=context.clock,
            bus=self._bus,
            bus_url=context.settings.nats_url,
            namespace=context.settings.namespace,
        )
        self.examiner = Examiner(lambda: examined(sources), context.clock)
        entrance = Entrance(sign_in)
        self._site = Site(self._pages(), entrance, self._sights, context.clock, context.entropy)

    async def serve(self) -> None:
        """Serve the pages, and render what is looked at, until cancelled. Raises PortTaken."""
        settings = self._context.settings
        application = self._site.application(await self._routes())
        certificate = certificate_of(settings.console_tls_cert, settings.console_tls_key, settings.console_client_ca)
        socket = bind(settings.console_port, "console", settings.console_listen)
        tls = None if certificate is None else certificate.context
        async with asyncio.TaskGroup() as group, serving(application, socket, tls) as ended:
            group.create_task(self._site.hub.run())
            if certificate is not None:
                group.create_task(certificate.keep_current(self._context.clock))
            self._context.started()
            await ended

    def _pages(self) -> Sequence[PageSpec]:
        """Return the pages, in the order of the navigation."""
        settings, clock, api = self._context.settings, self._context.clock, self._context.api
        previews = Previews(self._model.beats.planning, clock)
        reader = UserReader(self._acting, most_lines=settings.console_log_lines, most_bytes=settings.console_log_bytes)
        watcher = BusWatcher(self._bus, api, clock, settings.namespace)
        traffic = TrafficReader(self._bus, clock)
        return (
            FLEET,
            TOPOLOGY,
            NODES,
            bus.page(watcher, traffic, settings.namespace, usual()),
            doctor.page(self.examiner, self._may_examine),
            WORKLOAD,
            timeline.page(RecordReader(self._bus, clock)),
            ActionPage(self._as_user, previews).spec(),
            pod.page(reader, traffic),
            NODE_PAGE,
        )

    async def _routes(self) -> Sequence[BaseRoute]:
        """Return the routes of forms, and those to sign in."""
        context = self._context
        door = Door(self._sign_in, self._sights, self._site.pages)
        actor = Actor(self._as_user, context.api, context.clock, context.entropy)
        found = [*ActionRoutes(door, actor).routes(), *sign_in_pages.router(self._sign_in, door.render).routes]
        if self._sign_in.has("key"):
            key = local_key.LocalKey(Path(context.settings.console_key_file))
            found.append(local_key.route(key, self._sign_in.sessions, await local_key.own_identity(context.api)))
        return found

    def _as_user(self, identity: Identity) -> UserClient:
        return UserClient(self._acting.client(identity))

    async def _may_examine(self, identity: Identity) -> bool:
        return await self._sights.may(identity, self._right)


@asynccontextmanager
async def _acting(context: Context, sign_in: SignIn) -> AsyncGenerator[Acting]:
    """Yield the way to act as users. Tokens of users need connections without credentials of our own."""
    if not sign_in.has("token"):
        yield Acting(context.api, context.api)
        return
    bearer = KubeClient(without_credentials(await load_config(context.settings)), user_agent="flotilla-console")
    try:
        yield Acting(context.api, bearer)
    finally:
        await bearer.close()


def _action_rights(resource: Resource) -> Collection[tuple[str, Resource]]:
    """Return verb and resource of the rights for the actions on a resource."""
    kind = KINDS.get((resource.group, resource.plural))
    return () if kind is None else [(right.verb, right.resource) for right in rights_of(kind)]


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    return Service(NAME, run, access=ACCESS, as_users=AS_USERS, permissions=bus_permissions(NAME))


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())
