"""Who creates an object that makes the pod webhook necessary is answered once the apiserver uses the rule (ADR 15).

A dry run of an object that only this rule lets through shows it: the pod webhook, wherever it runs, marks its answer.
Of several apiservers the one that answers us is asked; the others follow within moments.
"""

from collections.abc import Awaitable, Callable

import msgspec
import structlog

from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.documents import Json, member
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.resources import POD_TEMPLATE
from flotilla_common.api.webhooks import probe_name
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api
from flotilla_webhook.need import Need
from flotilla_webhook.pods import SEEN, PodAdmission
from flotilla_webhook.registration import RegistrationError
from flotilla_webhook.wire import Handler

PATIENCE_SECONDS = 5.0
"""How long an admission waits. An apiserver takes a changed configuration up within a tenth of a second."""

_BETWEEN_SECONDS = 0.1
_log = structlog.get_logger()


class Arming(msgspec.Struct, frozen=True, kw_only=True):
    """Brings the rule into use."""

    api: Api
    clock: Clock
    need: Need
    pods: PodAdmission
    register: Callable[[], Awaitable[object]]
    """Brings the webhook configuration into step with the need. Raises what stands in the way of it."""

    def before(self, handler: Handler) -> Handler:
        """The handler; what it allows to be created arms the rule first. A dry run changes nothing."""

        async def answer(request: Request) -> Answer:
            answer = await handler(request)
            if request.operation != "CREATE" or request.dry_run or not answer.allowed:
                return answer
            if await self.arm(request.namespace):
                return answer
            warning = f"pods of namespace {request.namespace} may not go back to their nodes for some seconds"
            return msgspec.structs.replace(answer, warnings=[*answer.warnings, warning])

        return answer

    async def arm(self, namespace: str) -> bool:
        """True once pods of the namespace are asked about; False if that takes too long."""
        self.need.expect(namespace)
        end = self.clock.monotonic() + PATIENCE_SECONDS
        why = ""
        while self.clock.monotonic() < end:
            try:
                if await self._is_used(namespace):
                    return True
                await self.register()
            except (ApiError, Unreachable, RegistrationError) as failure:  # or another replica wrote it first
                why = str(failure)
            await self.clock.sleep(_BETWEEN_SECONDS)
        _log.warning("the pod webhook is not in use yet", namespace=namespace, why=why)
        return False

    async def _is_used(self, namespace: str) -> bool:
        rules = await self.pods.rules({})
        template: Json = {
            "apiVersion": POD_TEMPLATE.api_version,
            "kind": POD_TEMPLATE.kind,
            "metadata": {"name": probe_name(rules), "namespace": namespace},
            "template": {"spec": {"containers": [{"name": "probe", "image": "probe"}]}},
        }
        body = await self.api.create(POD_TEMPLATE, namespace, msgspec.json.encode(template), dry_run=True)
        return SEEN in member(msgspec.json.decode(body), "metadata", "annotations")
