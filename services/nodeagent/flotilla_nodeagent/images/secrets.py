"""Requests pull secrets when an image needs them, and caches them in memory for some minutes.

The jobs service hands out only secrets that this node's NodeImage refers to, sealed to a key of this process.
"""

from collections.abc import Sequence

import msgspec
import structlog

from flotilla_common.api.kinds.nodeimage.types import SecretReference
from flotilla_common.node.reports import PullSecret, SecretsRequest
from flotilla_common.node.sealing import Opener
from flotilla_nodeagent.agent_context import AgentContext
from flotilla_nodeagent.channel.reporting import ReportNotAccepted, ReportRejected
from flotilla_nodeagent.credentials.documents import BadSecret

KEEP_SECONDS = (300.0, 600.0)
"""Range of the random time for which a secret is cached, so that nodes do not ask all at once."""

MISSING_SECONDS = 10.0
"""Time for which a missing secret is not requested again: it may be about to be copied."""

_Key = tuple[str, str]


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
        missing = [one for one in references if (one.namespace, one.name) not in self._kept]
        if missing:
            await self._ask(missing)
        found = (self._kept.get((one.namespace, one.name)) for one in references)
        return [kept.secret for kept in found if kept is not None and kept.secret is not None]

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
        got = {(one.namespace, one.name): one for one in secrets}
        for one in missing:
            key = one.namespace, one.name
            keep = self._context.entropy.uniform(*KEEP_SECONDS) if key in got else MISSING_SECONDS
            self._kept[key] = _Kept(got.get(key), now + keep)
