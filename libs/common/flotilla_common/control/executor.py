"""Executes plans: stages in order, chains side by side, every write fenced, limited, recorded (architecture.md §5).

The response of a successful write goes into the mirror before anything else happens, so the next plan sees it. A
refused write means that our view was wrong: the object is read at once. The outcome of a write without a response is
reported as unknown, and the controller reads the owner's objects before it plans again.
"""

import asyncio
from collections.abc import Iterator, Sequence

import msgspec

from flotilla_common.api.meta import Model, ObjectMeta, controller_of
from flotilla_common.api.resources import POD, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.events import Recorder
from flotilla_common.control.fence import Fence
from flotilla_common.control.journal import Journal, write_context
from flotilla_common.control.limiter import Limiter
from flotilla_common.control.plan import (
    Action,
    Chain,
    Create,
    Delete,
    Json,
    ObjectRef,
    Outcome,
    OutcomeKind,
    Patch,
    Plan,
    Stage,
)
from flotilla_common.control.writes import WriteFailure, write_failure_of
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_common.mirror.mirror import Mirror
from flotilla_common.tracing.context import carried

_BY_CODE = {
    401: OutcomeKind.DENIED,
    403: OutcomeKind.DENIED,
    404: OutcomeKind.NOT_FOUND,
    410: OutcomeKind.GONE,
    429: OutcomeKind.THROTTLED,
}


_NO_VERDICT = "failed calling webhook"
"""Part of the apiserver's error when a webhook with failurePolicy Fail does not respond."""


class Envelope(Model):
    """The part of a response that the executor reads."""

    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class Report:
    """The outcomes of a plan's writes."""

    def __init__(self) -> None:
        self.counts: dict[OutcomeKind, int] = {}
        self.failures: dict[str, str] = {}  # the first error text by phase
        self.refused: dict[str, WriteFailure] = {}  # the first by phase, also of writes without a phase
        self.unknown = False
        self.unconfirmed: list[tuple[Resource, str]] = []  # creates that may or may not have happened
        self.retry_after = 0.0  # the longest time in seconds that the apiserver asked us to wait

    @property
    def failed(self) -> bool:
        """Report whether a write failed, so that the object must be planned again."""
        return any(kind not in (OutcomeKind.OK, OutcomeKind.NOT_FOUND) for kind in self.counts)

    def add(self, action: Action, outcome: Outcome) -> None:
        """Count an outcome."""
        self.counts[outcome.kind] = self.counts.get(outcome.kind, 0) + 1
        if outcome.kind is OutcomeKind.UNKNOWN:
            self.unknown = True
            if isinstance(action, Create):
                self.unconfirmed.append((action.resource, action.name))
        self.retry_after = max(self.retry_after, outcome.retry_after)
        if is_failure(outcome):
            self.refused.setdefault(action.phase, write_failure_of(action, outcome))
            if action.phase:
                self.failures.setdefault(action.phase, outcome.message)


def is_failure(outcome: Outcome) -> bool:
    """Report whether users should see the outcome as a failure; conflicts and the like are normal."""
    kinds = OutcomeKind
    return outcome.kind in (kinds.ALREADY_EXISTS, kinds.INVALID, kinds.DENIED, kinds.UNKNOWN, kinds.THROTTLED)


def classify(error: ApiError) -> OutcomeKind:
    """Return the outcome of an error response.

    A 5xx may come after the commit, so its outcome is unknown, unless it comes from admission: webhooks are called
    before anything is written.
    """
    if error.code == 409:
        return OutcomeKind.ALREADY_EXISTS if error.reason == "AlreadyExists" else OutcomeKind.CONFLICT
    if error.code == 422 and _meets_namesake(error):
        return OutcomeKind.CONFLICT
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    if error.code >= 500:
        refused = "admission webhook" in error.message and "denied the request" in error.message
        return OutcomeKind.DENIED if refused or _NO_VERDICT in error.message else OutcomeKind.UNKNOWN
    return OutcomeKind.INVALID


class _Cause(msgspec.Struct, frozen=True):
    field: str = ""


class _Details(msgspec.Struct, frozen=True):
    causes: list[_Cause] = []


class _Status(msgspec.Struct, frozen=True):
    details: _Details = _Details()


def _meets_namesake(error: ApiError) -> bool:
    """Report whether a patch for one uid was refused as invalid because another object has the name by now."""
    try:
        causes = msgspec.json.decode(error.body, type=_Status).details.causes
    except msgspec.MsgspecError:
        return False
    return any(cause.field == "metadata.uid" for cause in causes)


class Executor:
    """A sender of the writes of one service."""

    def __init__(
        self, *, api: Api, store: Mirror, clock: Clock, limiter: Limiter, recorder: Recorder, journal: Journal
    ) -> None:
        self._api = api
        self._store = store
        self.clock = clock
        self._limiter = limiter
        self._recorder = recorder
        self._journal = journal

    @property
    def answer_seconds(self) -> float:
        """The apiserver's current latency of writes, in seconds."""
        return self._limiter.answer_seconds

    async def run(self, subject: ObjectRef, plan: Plan, fence: Fence, trace: str) -> Report:
        """Execute the stages, without the status; return when every sent write has a response or timed out."""
        report = Report()
        for event in plan.events:
            self._recorder.record(subject, event)
        run = _Run(self, subject, fence, trace, report)
        for stages in _concurrent(plan.stages):
            complete = await asyncio.gather(*map(run.stage, stages))
            if any(stage.stop_on_failure and not done for stage, done in zip(stages, complete, strict=True)):
                break
        return report

    async def single(self, subject: ObjectRef, action: Action, fence: Fence, trace: str) -> Outcome:
        """Execute a single action, such as a status write."""
        outcome = await _Run(self, subject, fence, trace, Report()).action(action, "")
        self.record_events(subject, action, outcome)
        return outcome

    async def send(self, action: Action, previous: str, fence: Fence) -> Outcome:
        """Send one request, and store its response in the mirror; `previous` is the version after the last write.

        The fence is checked last: the replica may have been suspended while the write waited for its slot. From then on
        it bounds the request.
        """
        async with self._limiter.slot(low_priority=isinstance(action, Create) and action.resource == POD):
            if not fence.may_send():
                return Outcome(kind=OutcomeKind.FENCED, message="this replica's lease may have expired")
            started = self.clock.monotonic()
            try:
                async with fence.bounded():
                    body = await self._request(action, previous)
            except ApiError as error:
                kind = classify(error)
                if kind is OutcomeKind.THROTTLED:
                    self._limiter.throttled(error.retry_after)
                return Outcome(kind=kind, message=error.message, retry_after=error.retry_after)
            except Unreachable as error:
                return Outcome(kind=OutcomeKind.UNKNOWN, message=str(error))
            self._limiter.answered(self.clock.monotonic() - started)
        try:
            return Outcome(kind=OutcomeKind.OK, version=self._learn(action, body))
        except msgspec.MsgspecError as error:  # from a proxy in between: the apiserver does not send this
            return Outcome(kind=OutcomeKind.UNKNOWN, message=f"the response is not a Kubernetes object: {error}")

    async def reread(self, action: Action, outcome: Outcome) -> Outcome:
        """Read the object after a refused write. A create that meets our own earlier create is a success."""
        if outcome.kind in (OutcomeKind.CONFLICT, OutcomeKind.NOT_FOUND, OutcomeKind.GONE, OutcomeKind.ALREADY_EXISTS):
            try:
                found = await self._store.read(action.resource, action.namespace, action.name)
            except (ApiError, Unreachable) as error:
                return Outcome(kind=OutcomeKind.UNKNOWN, message=f"{outcome.message}; then: {error}")
            outcome = msgspec.structs.replace(outcome, version=_meta_of(found).resource_version)
            if outcome.kind is OutcomeKind.ALREADY_EXISTS and isinstance(action, Create):
                return _already_ours(action, _meta_of(found), outcome)
        return outcome

    def publish(self, subject: ObjectRef, action: Action, outcome: Outcome, latency: float, trace: str) -> None:
        """Publish the outcome on the bus."""
        self._journal.act(subject, action, outcome, latency=latency, trace=trace)

    def record_events(self, subject: ObjectRef, action: Action, outcome: Outcome) -> None:
        """Record the events for users."""
        if outcome.ok and action.on_success is not None:
            self._recorder.record(subject, action.on_success)
        elif is_failure(outcome) and not _silent(action, outcome):
            for event in action.failures:
                self._recorder.record(subject, event, outcome.message)

    async def _request(self, action: Action, previous: str) -> bytes:
        match action:
            case Create():
                return await self._api.create(action.resource, action.namespace, msgspec.json.encode(action.body))
            case Patch():
                return await self._api.patch(
                    action.resource,
                    action.namespace,
                    action.name,
                    msgspec.json.encode(_conditional(action, previous)),
                    action.patch_type.value,
                    subresource=action.subresource,
                )
            case Delete():
                return await self._api.delete(
                    action.resource,
                    action.namespace,
                    action.name,
                    uid=action.uid,
                    resource_version=action.resource_version,
                )

    def _learn(self, action: Action, body: bytes) -> str:
        """Store the response in the mirror; return the version after the write."""
        if isinstance(action, Delete):
            reply = msgspec.json.decode(body, type=Envelope)
            if reply.kind == "Status" or reply.metadata.deletion_timestamp is None:
                self._store.deleted(action.resource, action.namespace, action.name, action.uid)
                return reply.metadata.resource_version
        version = _meta_of(self._store.written(action.resource, body)).resource_version
        # without it there is no table for the object, or it cannot be decoded
        return version or msgspec.json.decode(body, type=Envelope).metadata.resource_version


def _concurrent(stages: Sequence[Stage]) -> Iterator[list[Stage]]:
    """Yield the stages in order, together with those that begin with them."""
    together: list[Stage] = []
    for stage in stages:
        together.append(stage)
        if not stage.beside_next:
            yield together
            together = []
    if together:
        yield together


class _Run:
    """The execution of one plan."""

    def __init__(self, executor: Executor, subject: ObjectRef, fence: Fence, trace: str, report: Report) -> None:
        self._executor = executor
        self._subject = subject
        self._fence = fence
        self._trace = trace
        self._report = report

    async def stage(self, stage: Stage) -> bool:
        """Run one stage; return whether every chain succeeded."""
        if not stage.slow_start:
            return await self._side_by_side(stage.chains)
        size, start = stage.slow_start, 0
        while start < len(stage.chains):
            if not await self._side_by_side(stage.chains[start : start + size]):
                return False
            start += size
            size *= 2
        return True

    async def _side_by_side(self, chains: Sequence[Chain]) -> bool:
        """Run the chains concurrently, and record events in the order of the plan, not of the responses."""
        done: list[list[tuple[Action, Outcome]]] = [[] for _ in chains]
        try:
            if len(chains) == 1:
                return await self._chain(chains[0], done[0])
            return all(await asyncio.gather(*(self._chain(chain, done[at]) for at, chain in enumerate(chains))))
        finally:
            for action, outcome in (one for outcomes in done for one in outcomes):
                self._executor.record_events(self._subject, action, outcome)

    async def _chain(self, chain: Chain, done: list[tuple[Action, Outcome]]) -> bool:
        previous = ""
        for action in chain:
            outcome = await self.action(action, previous)
            done.append((action, outcome))
            previous = outcome.version
            if not outcome.ok and not (isinstance(action, Delete) and outcome.kind is OutcomeKind.NOT_FOUND):
                return False
        return True

    async def action(self, action: Action, previous: str) -> Outcome:
        """Send one action; `previous` is the version after the chain's last write."""
        clock = self._executor.clock
        started = clock.monotonic()
        with carried(write_context(self._subject, self._trace, action)):
            outcome = await self._executor.send(action, previous, self._fence)
            if not outcome.ok:
                outcome = await self._executor.reread(action, outcome)
        self._report.add(action, outcome)
        self._executor.publish(self._subject, action, outcome, clock.monotonic() - started, self._trace)
        return outcome


def _conditional(action: Patch, previous: str) -> Json:
    """Return the patch with its preconditions in metadata: uid and resourceVersion."""
    version = previous if action.after_previous else action.resource_version
    conditions: Json = {}
    if action.uid:
        conditions["uid"] = action.uid
    if version:
        conditions["resourceVersion"] = version
    if not conditions:
        return action.body
    metadata: Json = action.body.get("metadata", {})
    return {**action.body, "metadata": {**metadata, **conditions}}


def _silent(action: Action, outcome: Outcome) -> bool:
    """Report whether the outcome makes no event: the name of a create is taken, and its kind records no event then."""
    taken = outcome.kind is OutcomeKind.ALREADY_EXISTS
    return taken and isinstance(action, Create) and not action.tells_if_taken


def _meta_of(found: object | None) -> ObjectMeta:
    """Return the metadata of an object that was read, empty without an object."""
    meta = getattr(found, "metadata", None)
    return meta if isinstance(meta, ObjectMeta) else ObjectMeta()


def _already_ours(action: Create, meta: ObjectMeta, outcome: Outcome) -> Outcome:
    """Return success if AlreadyExists comes from our own earlier create whose response was lost."""
    wanted: list[Json] = action.body.get("metadata", {}).get("ownerReferences", [])
    uids = {reference.get("uid") for reference in wanted if reference.get("controller")}
    owner = controller_of(meta)
    if meta.deletion_timestamp is None and owner is not None and owner.uid in uids:
        return Outcome(kind=OutcomeKind.OK, message="it existed already", version=meta.resource_version)
    return outcome
