"""The rights of identities, as the apiserver decides them by SubjectAccessReviews.

A failed review grants nothing: it is an error that pages show. Only a right that was granted shortly before holds on
for some time, so that a restart of the apiserver does not empty every page.
"""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import msgspec

from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_console.access.expiring import Expiring
from flotilla_console.access.identity import Identity

PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
SELF_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
"""Reviews of the rights of their own author, which all users may create."""

READING = frozenset({"get", "list", "watch"})
"""The verbs of read-only identities, also if the apiserver allows them more."""

JSON = {"Content-Type": "application/json"}

REVIEW_SECONDS = 5.0
"""Timeout of a review: a page waits for it."""

FAILURE_SECONDS = 2.0
"""The time after a failed review until the question is asked again."""

MOST_ANSWERS = 20_000
"""Answers in the cache: 40 identities with 500 questions each, in less than 10 MiB."""


@dataclass(frozen=True, slots=True)
class Question:
    """A right to ask for: a verb on a resource. An empty namespace means all namespaces, an empty name all objects."""

    verb: str
    group: str
    plural: str
    namespace: str = ""
    subresource: str = ""
    name: str = ""

    def everywhere(self) -> "Question":
        """Return the question for all namespaces and objects, whose yes includes this one's."""
        return replace(self, namespace="", name="")


@dataclass(frozen=True)
class Allowed:
    """Questions and their answers. Equal ones are equal keys: their readers see the same."""

    granted: frozenset[Question]
    refused: frozenset[Question]
    error: str = ""
    """The reason why some answers are missing or old, for the page's banner."""

    def may(self, verb: str, group: str, plural: str, namespace: str = "", subresource: str = "") -> bool:
        """Report whether this is allowed: in the namespace, or everywhere. A question that was not asked is refused."""
        asked = Question(verb, group, plural, namespace, subresource)
        return asked in self.granted or asked.everywhere() in self.granted

    @property
    def key(self) -> frozenset[Question]:
        """Return what readers with equal rights have in common, to share encoded pages between them.

        A right in a namespace is left out beside the one for all: the key stays the same when namespaces come and go.
        """
        return frozenset(one for one in self.granted if one == one.everywhere() or one.everywhere() not in self.granted)


class _Status(msgspec.Struct):
    allowed: bool = False
    denied: bool = False


class _Review(msgspec.Struct):
    status: _Status


@dataclass(frozen=True, slots=True)
class _Answer:
    allowed: bool
    error: str = ""


_Key = tuple[bytes, Question]
_decode = msgspec.json.Decoder(_Review).decode


class Rights:
    """Asks the apiserver, a bounded number of reviews at a time, and caches answers for some seconds."""

    def __init__(
        self, api: Api, clock: Clock, *, seconds: float = 10.0, grace: float = 60.0, at_once: int = 16
    ) -> None:
        self._api = api
        self._clock = clock
        self._seconds = seconds
        self._grace = max(grace, seconds)
        self._slots = asyncio.Semaphore(at_once)
        self._answers: Expiring[_Key, bool] = Expiring(MOST_ANSWERS)
        self._failures: Expiring[_Key, str] = Expiring(MOST_ANSWERS)
        self._under_way: dict[_Key, asyncio.Task[_Answer]] = {}

    async def allowed(self, identity: Identity, questions: Collection[Question]) -> Mapping[Question, bool]:
        """Return the answer to each question."""
        table = await self.table(identity, questions)
        return {question: question in table.granted for question in questions}

    async def table(self, identity: Identity, questions: Collection[Question]) -> Allowed:
        """Return the answers as a table. Namespaces are asked about only if there is no right for all of them."""
        asked = frozenset(questions)
        wide = await self._all(identity, {one.everywhere() for one in asked})
        narrow = await self._all(identity, {one for one in asked if not wide[one.everywhere()].allowed} - wide.keys())
        answers = wide | narrow
        granted = {one for one, answer in answers.items() if answer.allowed}
        granted |= {one for one in asked if one.everywhere() in granted}
        errors = sorted({answer.error for answer in answers.values() if answer.error})
        return Allowed(frozenset(granted), asked - granted, errors[0] if errors else "")

    async def _all(self, identity: Identity, questions: Collection[Question]) -> dict[Question, _Answer]:
        subject = subject_of(identity)
        answers: dict[Question, _Answer] = {}
        asked: dict[Question, asyncio.Task[_Answer]] = {}
        for question in questions:
            writes = identity.read_only and question.verb not in READING
            known = _Answer(False) if writes else self._known((subject, question))
            if known is None:
                asked[question] = self._asking((subject, question), identity)
            else:
                answers[question] = known
        # Others may wait for the same answers when this request is cancelled.
        found = await asyncio.gather(*map(asyncio.shield, asked.values()))
        return answers | dict(zip(asked, found, strict=True))

    def _known(self, key: _Key) -> _Answer | None:
        """Return the answer, or the failure to get one, of a short time ago."""
        now = self._clock.monotonic()
        allowed = self._answers.get(key, now, self._seconds)
        if allowed is not None:
            return _Answer(allowed)
        failure = self._failures.get(key, now, FAILURE_SECONDS)
        return None if failure is None else self._without_review(key, failure)

    def _asking(self, key: _Key, identity: Identity) -> asyncio.Task[_Answer]:
        """Return the task that asks this, which may be under way."""
        task = self._under_way.get(key)
        if task is None:
            task = asyncio.create_task(self._ask(key, identity))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return task

    async def _ask(self, key: _Key, identity: Identity) -> _Answer:
        try:
            async with self._slots, asyncio.timeout(REVIEW_SECONDS):
                allowed = await self._review(identity, key[1])
        except (ApiError, Unreachable, TimeoutError) as error:
            cause = str(error) or f"no answer within {REVIEW_SECONDS:.0f} s"
            failure = f"The apiserver does not say which rights {identity.user} has: {cause}"
            self._failures.put(key, failure, self._clock.monotonic())
            return self._without_review(key, failure)
        self._answers.put(key, allowed, self._clock.monotonic())
        return _Answer(allowed)

    def _without_review(self, key: _Key, failure: str) -> _Answer:
        """Return the last answer if it was a yes of a short time ago, else a no."""
        return _Answer(self._answers.get(key, self._clock.monotonic(), self._grace) is True, failure)

    async def _review(self, identity: Identity, question: Question) -> bool:
        body = msgspec.json.encode(review_of(identity, question))
        path = SELF_PATH if identity.own else PATH
        try:
            status = _decode(await self._api.raw("POST", path, body, JSON)).status
        except msgspec.MsgspecError as error:
            raise Unreachable(f"SubjectAccessReview: the answer is not a review: {error}") from error
        return status.allowed and not status.denied


def review_of(identity: Identity, question: Question) -> Mapping[str, object]:
    """Return the review of the question: of the program's own user a SelfSubjectAccessReview."""
    attributes = {
        "verb": question.verb,
        "group": question.group,
        "resource": question.plural,
        "namespace": question.namespace,
        "subresource": question.subresource,
        "name": question.name,
    }
    spec = {"resourceAttributes": {name: value for name, value in attributes.items() if value}}
    if identity.own:
        return {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
    subject = {"user": identity.user, "groups": identity.groups, "uid": identity.uid, "extra": identity.extra}
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": subject | spec}


def subject_of(identity: Identity) -> bytes:
    """Return what the apiserver decides by, as one value: Python computes its hash only once."""
    extra = sorted((name, tuple(values)) for name, values in identity.extra.items())
    return msgspec.json.encode((identity.user, identity.groups, identity.uid, extra, identity.own))
