"""The sights of identities: the part of the model that each may see and change, as the apiserver decides it."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_console.access.expiring import Expiring
from flotilla_console.access.identity import Identity
from flotilla_console.access.rights import Question, Rights, subject_of
from flotilla_console.model.model import Model
from flotilla_console.model.sight import Sight, Wanted, questions

MOST_SIGHTS = 100
"""Sights that are kept: as many groups of users with equal rights share their views."""

MOST_IDENTITIES = 1000

SECONDS = 2.0
"""The time for which the sight of an identity is used again: there may be thousands of rights to put together."""

ActionRights = Callable[[Resource], Collection[tuple[str, Resource]]]
"""Returns verb and resource of the rights that the actions on objects of a resource need."""


@dataclass(frozen=True)
class _Last:
    sight: Sight
    places: int


class Sights:
    """The sights of all identities: those who may see and do the same share one, and with it their views."""

    def __init__(
        self, model: Model, rights: Rights, clock: Clock, *, actions: ActionRights, further: Collection[Wanted] = ()
    ) -> None:
        """Prepare. `further`: rights that pages need beside those to see and change the objects of the model."""
        self._model, self._rights, self._actions, self._further = model, rights, actions, further
        self._clock = clock
        self._last: Expiring[bytes, _Last] = Expiring(MOST_IDENTITIES)
        self._sights: dict[tuple[frozenset[Question], str], Sight] = {}

    async def sight_of(self, identity: Identity) -> Sight:
        """Return what an identity may see now: the same object for all who may see the same."""
        who, now, places = subject_of(identity), self._clock.monotonic(), self._model.places_version
        last = self._last.get(who, now, SECONDS)
        if last is not None and last.places == places:
            return last.sight
        sight = await self._asked(identity)
        self._last.put(who, _Last(sight, places), now)
        return sight

    async def _asked(self, identity: Identity) -> Sight:
        allowed = await self._rights.table(identity, set(self._questions()))
        key = allowed.key, allowed.error
        if (sight := self._sights.pop(key, None)) is None:
            while len(self._sights) >= MOST_SIGHTS:
                del self._sights[next(iter(self._sights))]  # the one whose last use is longest ago
            sight = Sight(self._model, allowed, allowed.error)
        self._sights[key] = sight
        return sight

    async def may(self, identity: Identity, wanted: Wanted) -> bool:
        """Report whether an identity has one right."""
        question = _question(wanted)
        return (await self._rights.allowed(identity, [question]))[question]

    def _questions(self) -> Iterator[Question]:
        yield from map(_question, questions(self._model))
        yield from map(_question, self._further)
        for held in self._model.places():
            for verb, resource in self._actions(held.resource):
                yield Question(verb, resource.group, resource.plural, held.namespace)


def _question(wanted: Wanted) -> Question:
    return Question(wanted.verb, wanted.group, wanted.plural, wanted.namespace, wanted.subresource)
