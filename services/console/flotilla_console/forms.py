"""The route that carries actions out: `POST` to the path of the action's page."""

from collections.abc import Sequence
from typing import Protocol

import structlog
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from flotilla_common.kube.interface import ApiError, Unreachable
from flotilla_console.access.identity import Identity
from flotilla_console.actions.carrying_out import Actor
from flotilla_console.actions.fields import Fields, InvalidField
from flotilla_console.actions.outcomes import Outcome, refused
from flotilla_console.model.sight import Sight
from flotilla_console.page import Page
from flotilla_console.pages.action import PATH, Place, outcome_page, place_of, pods_by_name

_log = structlog.get_logger()


class Door(Protocol):
    """The checks that a posted form passes, and the answers to it."""

    async def user_of(self, request: Request) -> Identity | Response:
        """Return who sends the request, or the answer that sends them to sign in. Raises ApiError, Unreachable."""
        ...

    async def form_of(self, request: Request, identity: Identity) -> Fields:
        """Return the fields of a form that this user has sent from a page of ours. Raises HTTPException."""
        ...

    async def sight_of(self, identity: Identity) -> Sight:
        """Return what the user may see. Raises ApiError, Unreachable."""
        ...

    def show(self, request: Request, identity: Identity, page: Page, status: int) -> Response:
        """Answer with a page."""
        ...

    def not_found(self, request: Request, identity: Identity) -> Response:
        """Answer that the page does not exist, or may not be seen."""
        ...


class ActionRoutes:
    """The route of all actions."""

    def __init__(self, door: Door, actor: Actor) -> None:
        self._door = door
        self._actor = actor

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""
        return [Route(PATH, self.post, methods=["POST"])]

    async def post(self, request: Request) -> Response:
        """Carry an action out, and answer with its outcome."""
        identity = await self._door.user_of(request)
        if isinstance(identity, Response):
            return identity
        fields = await self._door.form_of(request, identity)
        place = place_of(request.path_params)
        if place is None:
            return self._door.not_found(request, identity)
        try:
            own_pods = pods_by_name(await self._door.sight_of(identity), place.target)
        except (ApiError, Unreachable) as error:
            return self._answer(request, identity, place, [_not_begun(error)])
        if own_pods is None:
            return self._door.not_found(request, identity)
        try:
            outcomes = await self._actor.carry_out(identity, place.target, place.action, fields, own_pods)
        except InvalidField as error:
            outcomes = [Outcome(400, "warn", str(error))]
        _log.info(
            "action",
            user=identity.user,
            action=place.action.verb,
            object=f"{place.target.namespace}/{place.target.name}",
            done=sum(one.done for one in outcomes),
            of=len(outcomes),
        )
        return self._answer(request, identity, place, outcomes)

    def _answer(self, request: Request, identity: Identity, place: Place, outcomes: Sequence[Outcome]) -> Response:
        status = max(one.status for one in outcomes)
        return self._door.show(request, identity, outcome_page(place, outcomes), status)


def _not_begun(error: ApiError | Unreachable) -> Outcome:
    """Return the outcome of a failure before anything was written."""
    return refused(Unreachable(str(error), sent=False))
