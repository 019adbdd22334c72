"""Runs one pull task: attempts within limits, and the text of the failure (nodeagent.md §3.3, §3.4).

Pull secrets are requested when an image needs them, and cached in memory for some minutes. The jobs service hands out
only secrets that this node's NodeImage refers to, sealed to a key of this process.
"""

import asyncio
from collections.abc import Sequence

import msgspec
import structlog

from flotilla_common.api.images import ImageName, reference_of
from flotilla_common.api.kinds.nodeimage.types import SandboxConfig, SecretReference, TagPullPolicy
from flotilla_common.node.reports import PullSecret, SecretsRequest
from flotilla_common.node.sealing import Opener
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.credentials.documents import BadSecret, of_secret
from flotilla_nodeagent.credentials.keyring import Keyring, LoginSource
from flotilla_nodeagent.cri.errors import CriError, Unavailable
from flotilla_nodeagent.cri.runtime import Runtime
from flotilla_nodeagent.cri.types import Image, Login
from flotilla_nodeagent.reporting import ReportNotAccepted, ReportRejected

KEEP_SECONDS = (300.0, 600.0)
"""Range of the random time for which a secret is cached, so that nodes do not ask all at once."""

MISSING_SECONDS = 10.0
"""Time for which a missing secret is not requested again: it may be about to be copied."""

_Key = tuple[str, str]

TIMEOUT_SECONDS, RETRIES = 600, 3
"""Defaults for a pull policy without these limits."""

FIRST_PAUSE, MOST_PAUSE = 1.0, 30.0
"""Seconds between attempts, doubling."""

AWAY_PAUSE = 2.0
"""Seconds between attempts while the runtime restarts. They count only once a whole attempt's time has passed."""

MARK = {"apps.kruise.io/pulling-image-by": "kruise-daemon"}
"""Annotations of every request: one without any sandbox config makes some runtimes crash."""

PAST_DEADLINE = "pulling exceeds the activeDeadlineSeconds"


class _Kept(msgspec.Struct, frozen=True):
    secret: PullSecret | None
    until: float


class Secrets:
    """The pull secrets of one node."""

    def __init__(self, context: AgentContext) -> None:
        self._context = context
        self._opener = Opener()
        self._kept: dict[_Key, _Kept] = {}
        self._log = structlog.get_logger(part="secrets")

    async def get(self, references: Sequence[SecretReference]) -> list[PullSecret]:
        """Return those of the referenced secrets that exist, in their order. Raises BadSecret when decryption fails."""
        now = self._context.clock.monotonic()
        self._kept = {key: kept for key, kept in self._kept.items() if kept.until > now}
        missing = [reference for reference in references if (reference.namespace, reference.name) not in self._kept]
        if missing:
            await self._ask(missing)
        cached = (self._kept.get((reference.namespace, reference.name)) for reference in references)
        return [kept.secret for kept in cached if kept is not None and kept.secret is not None]

    async def _ask(self, missing: list[SecretReference]) -> None:
        """Request secrets. The image is pulled without those that are not handed out: public images need none."""
        request = SecretsRequest(public_key=self._opener.public_key, references=missing)
        try:
            answer = await self._context.reporter.secrets(request)
            secrets = self._opener.open(answer.sealed) if answer.sealed else []
        except (ReportNotAccepted, ReportRejected) as error:
            self._log.warning("no pull secrets", why=str(error))
            return
        except (ValueError, msgspec.DecodeError) as error:
            raise BadSecret(f"pull secrets {error}") from error
        now = self._context.clock.monotonic()
        received = {(secret.namespace, secret.name): secret for secret in secrets}
        for reference in missing:
            key = reference.namespace, reference.name
            keep = self._context.entropy.uniform(*KEEP_SECONDS) if key in received else MISSING_SECONDS
            self._kept[key] = _Kept(received.get(key), now + keep)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """An image to pull, and the limits."""

    image: str
    tag: str
    version: int
    if_not_present: bool
    policy: TagPullPolicy
    sandbox: SandboxConfig
    secrets: tuple[SecretReference, ...]

    @property
    def reference(self) -> str:
        """The image reference for the runtime."""
        return reference_of(self.image, self.tag)


class _Trouble(msgspec.Struct, frozen=True):
    """The reason of a failed attempt."""

    text: str
    away: bool = False  # the runtime was not there: the attempt does not count


class PullFailed(Exception):
    """All attempts failed; the text is that of the last one."""


class Puller:
    """Carries out tasks with the node's runtime. `node_logins` are sources of logins for all images of the node."""

    def __init__(self, context: AgentContext, node_logins: Sequence[LoginSource]) -> None:
        self._runtime = context.runtimes.primary
        self._secrets = Secrets(context)
        self._node_logins = node_logins
        self._clock = context.clock

    async def pull(self, task: Task) -> None:
        """Pull the image; return when it is on the node.

        Raises PullFailed when all attempts failed, or the deadline has passed.
        """
        policy, started = task.policy, self._clock.monotonic()
        limit = TIMEOUT_SECONDS if policy.timeout_seconds is None else policy.timeout_seconds
        tries = 1 + (RETRIES if policy.backoff_limit is None or policy.backoff_limit < 0 else policy.backoff_limit)
        pause = FIRST_PAUSE
        while True:
            trouble = await self._within(self._limit(policy, limit, started), task)
            if trouble is None:
                return
            if trouble.away and self._clock.monotonic() - started < limit:
                await self._clock.sleep(AWAY_PAUSE)
                continue
            tries -= 1
            await self._clock.sleep(pause)  # after the last attempt too, as users of the reference see it
            pause = min(pause * 2, MOST_PAUSE)
            if not tries:
                raise PullFailed(trouble.text)

    def _limit(self, policy: TagPullPolicy, limit: float, started: float) -> float:
        """Return the seconds for the next attempt. Raises PullFailed after the deadline."""
        if policy.active_deadline_seconds is None:
            return limit
        left = started + policy.active_deadline_seconds - self._clock.monotonic()
        if left <= 0:
            raise PullFailed(PAST_DEADLINE)
        return min(limit, left)

    async def image_id(self, task: Task) -> str:
        """Return `<name>@<id>` of the pulled image, "" if the runtime does not list it."""
        try:
            image = find(await self._runtime().images(), task.image, task.tag)
        except CriError:
            return ""
        return f"{task.image}@{image.id}" if image is not None else ""

    async def _within(self, seconds: float, task: Task) -> _Trouble | None:
        """Make one attempt; return its failure, or None."""
        attempt = asyncio.ensure_future(self._attempt(task))
        limit = asyncio.ensure_future(self._clock.sleep(seconds))
        try:
            await asyncio.wait((attempt, limit), return_when=asyncio.FIRST_COMPLETED)
            if attempt.done():
                return attempt.result()
            return _Trouble(f"pulling image {task.reference} is canceled")
        finally:
            attempt.cancel()
            limit.cancel()
            await asyncio.gather(attempt, limit, return_exceptions=True)

    async def _attempt(self, task: Task) -> _Trouble | None:
        try:
            runtime = self._runtime()
            if task.if_not_present and find(await runtime.images(), task.image, task.tag) is not None:
                return None
            keyring = Keyring(entry for secret in await self._secrets.get(task.secrets) for entry in of_secret(secret))
        except (CriError, BadSecret) as error:
            return _Trouble(str(error), away=isinstance(error, Unavailable))
        return await self._with_logins(runtime, task, keyring)

    async def _with_logins(self, runtime: Runtime, task: Task, secrets: Keyring) -> _Trouble | None:
        """Try the logins of the secrets, then those of the node, until the registry accepts one.

        The node's sources are read only if the secrets fail. With any login, there is no anonymous attempt.
        """
        repository = _repository(task.image)
        failed: dict[Login, str] = {}
        for source in (None, *self._node_logins):
            logins = secrets.logins(repository) if source is None else await source.logins(repository)
            for login in logins:
                if login in failed:
                    continue
                trouble = await self._try(runtime, task, login)
                if trouble is None or trouble.away:
                    return trouble
                failed[login] = trouble.text
        if not failed:
            return await self._anonymously(runtime, task)
        texts = list(failed.values())
        return _Trouble(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")

    async def _anonymously(self, runtime: Runtime, task: Task) -> _Trouble | None:
        trouble = await self._try(runtime, task, None)
        if trouble is None or trouble.away:
            return trouble
        return _Trouble(f'Failed to pull image reference "{task.reference}": {trouble.text}')

    async def _try(self, runtime: Runtime, task: Task, login: Login | None) -> _Trouble | None:
        try:
            annotations = task.sandbox.annotations | MARK
            await runtime.pull(task.reference, login, labels=task.sandbox.labels, annotations=annotations)
        except CriError as error:
            return _Trouble(str(error), away=isinstance(error, Unavailable))
        return None


def find(images: list[Image], name: str, tag: str) -> Image | None:
    """Return the image by name and tag (or digest); names are compared in their normal form."""
    return next(
        (image for image in images for listed in (*image.tags, *image.digests) if _same(listed, name, tag)), None
    )


def _same(listed: str, name: str, tag: str) -> bool:
    try:
        parsed = ImageName.parse(listed.removeprefix("docker-pullable://"))
    except ValueError:
        return False  # `<none>:<none>` and the like
    return (parsed.name, parsed.tag) == (name, tag)


def _repository(image: str) -> str:
    """Return the full name that credentials are matched with; a name that cannot be parsed matches none."""
    try:
        return ImageName.parse(image).repository
    except ValueError:
        return image
