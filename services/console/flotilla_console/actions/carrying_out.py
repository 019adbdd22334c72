"""Carries actions out: writes as the user, and an Event by the console that names them."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
import structlog

from flotilla_common.api.documents import Json, mapping, member, text
from flotilla_common.api.resources import EVENT
from flotilla_common.clock import Clock, Entropy
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_console.access.identity import Identity
from flotilla_console.actions import pods
from flotilla_console.actions.catalogue import Action, PodAction
from flotilla_console.actions.client import AsUser, Client
from flotilla_console.actions.edits import Context, Edited, patch_of
from flotilla_console.actions.event import event_of
from flotilla_console.actions.fields import Fields
from flotilla_console.actions.kinds import ActionKind
from flotilla_console.actions.outcomes import STALE, Outcome, refused
from flotilla_console.actions.revisions import past_of

WRITE_SECONDS = 15.0
"""Deadline of one write."""

TRIES = 4
"""Attempts of a patch while only the status of the object changes in between."""

UID, GENERATION = "uid", "generation"
"""Fields that say which object the form was made for, and which version of its spec."""

_log = structlog.get_logger()


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The object of an action."""

    kind: ActionKind
    namespace: str
    name: str


class Stale(Exception):
    """The object is not the one that the form was made for."""


async def read(api: Client, target: Target) -> Json:
    """Return the object. Raises ApiError, Unreachable."""
    raw = await api.get(target.kind.resource, target.namespace, target.name)
    return mapping(msgspec.json.decode(raw))


async def context_of(api: Client, target: Target, action: Action) -> Context:
    """Return all that an action depends on. Raises ApiError, Unreachable; nothing was changed then."""
    try:
        document = await read(api, target)
        past = await past_of(api, target.kind, document) if action.reads_past else ()
    except Unreachable as error:
        raise Unreachable(str(error), sent=False) from error
    return Context(kind=target.kind, document=document, past=past)


def stamp_of(document: Json) -> Mapping[str, str]:
    """Return the fields that a form carries, which notice a change of the spec; the status changes all the time."""
    metadata = member(document, "metadata")
    generation = metadata.get("generation")
    return {UID: text(metadata.get("uid")), GENERATION: str(generation) if isinstance(generation, int) else ""}


class Actor:
    """Carries out the actions of users."""

    def __init__(self, as_user: AsUser, own: Api, clock: Clock, entropy: Entropy) -> None:
        """Prepare. `own`: the console's own client, for Events."""
        self._as_user = as_user
        self._own = own
        self._clock = clock
        self._entropy = entropy

    async def carry_out(
        self, identity: Identity, target: Target, action: Action, fields: Fields, own_pods: Mapping[str, str]
    ) -> Sequence[Outcome]:
        """Return the outcomes, one for each pod if the action is about pods. Raises InvalidField.

        `own_pods`: the uids of the workload's pods by name.
        """
        api = self._as_user(identity)
        if action.on_pods is not None:
            return await self._pods(api, identity, target, action.on_pods, fields, own_pods)
        try:
            return [await self._edit(api, identity, target, action, fields)]
        except Stale:
            return [Outcome(409, "warn", STALE)]
        except (ApiError, Unreachable, TimeoutError) as error:
            return [refused(error)]

    async def _edit(self, api: Client, identity: Identity, target: Target, action: Action, fields: Fields) -> Outcome:
        assert action.edit is not None
        for _ in range(TRIES):
            context = await context_of(api, target, action)
            stamp = stamp_of(context.document)
            if any(fields.get(name) != value for name, value in stamp.items()):
                raise Stale
            edited = action.edit(context, fields)
            patch = patch_of(context.document, edited.document)
            if not patch:
                return Outcome(200, "idle", "Nothing had to change.")
            if await self._patched(api, target, patch):
                return await self._done(identity, target, context.document, edited)
        raise Stale

    async def _patched(self, api: Client, target: Target, patch: Json) -> bool:
        """Send the patch; False if the object has another version now. Raises ApiError, Unreachable, TimeoutError."""
        body = msgspec.json.encode(patch)
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await api.patch(target.kind.resource, target.namespace, target.name, body, PatchType.MERGE)
        except ApiError as error:
            if error.code == 409:
                return False
            raise
        return True

    async def _done(self, identity: Identity, target: Target, document: Json, edited: Edited) -> Outcome:
        missing = await self._record(identity, target, document, edited.words)
        return Outcome(200, "ok", f"Done: {identity.user} {edited.words}.{missing}", done=True)

    async def _pods(
        self,
        api: Client,
        identity: Identity,
        target: Target,
        action: PodAction,
        fields: Fields,
        own_pods: Mapping[str, str],
    ) -> Sequence[Outcome]:
        chosen = pods.chosen(fields)
        pods.of_workload(chosen, own_pods)
        write = action.write(target.kind)
        outcomes: list[Outcome] = []
        changed: list[str] = []
        for pod in chosen:
            try:
                async with asyncio.timeout(WRITE_SECONDS):
                    await write(api, target.namespace, pod)
            except pods.Replaced as error:
                outcomes.append(Outcome(409, "warn", f"{pod.name}: {error}"))
            except (ApiError, Unreachable, TimeoutError) as error:
                outcome = refused(error)
                outcomes.append(msgspec.structs.replace(outcome, text=f"{pod.name}: {outcome.text}"))
            else:
                outcomes.append(Outcome(200, "ok", f"{pod.name}: done", done=True))
                changed.append(pod.name)
        if changed:
            words = f"{action.done(target.kind)} pod{'s'[: len(changed) > 1]} {', '.join(changed)}"
            document: Json = {
                "metadata": {"namespace": target.namespace, "name": target.name, UID: fields.get(UID, "")}
            }
            if missing := await self._record(identity, target, document, words):
                outcomes.append(Outcome(200, "warn", missing.strip()))
        return outcomes

    async def _record(self, identity: Identity, target: Target, document: Json, words: str) -> str:
        """Write the Event; return a remark if that failed, because the change was made all the same."""
        now = self._clock.now()
        event = event_of(target.kind.resource, document, f"{identity.user} {words}", now, self._entropy.token())
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._own.create(EVENT, event["metadata"]["namespace"], msgspec.json.encode(event))
        except (ApiError, Unreachable, TimeoutError) as error:
            _log.warning("cannot write the event of an action", user=identity.user, action=words, error=str(error))
            return " The Event about it could not be written."
        return ""
