"""The webhooks of our kinds: every path that follows from the catalogue, with the kind's own admission behind it."""

from functools import partial

from flotilla_common.api.admission.review import Answer, Refused, Request, error
from flotilla_common.api.admission.tools import Handler as KindHandler
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.webhooks import paths
from flotilla_webhook.wire import Handler


def kind_handlers(tools: Tools) -> dict[str, Handler]:
    """By path. Without its gates a kind is refused by the last of its webhooks."""
    found: dict[str, Handler] = {}
    for kind in catalogue.KINDS:
        handlers = kind.rules().admission.handlers
        for verb, handler in handlers.items():
            gates = kind.gates if verb == list(handlers)[-1] else ()
            found |= dict.fromkeys(paths(kind, verb), partial(_answer, kind, handler, gates, tools))
    return found


async def _answer(kind: Kind, handler: KindHandler, gates: tuple[str, ...], tools: Tools, request: Request) -> Answer:
    for gate in gates:
        if not tools.gates.on(gate):
            return error(403, f"feature-gate {gate} is not enabled")
    version = (request.object or {}).get("apiVersion")
    if request.object is not None and version not in kind.api_versions:
        return error(400, f"unsupported version {version}")
    try:
        return await handler(request, tools)
    except Refused as refusal:
        return refusal.answer
