"""The webhook service: its handlers, its certificate, and its registration with the apiserver.

It publishes changes to the bus (`audit`), but needs neither the bus nor a mirror: it answers from the request, keeps
data for pods by its own watches (`cache`), and reads from the apiserver directly for rules that need more. So it serves
while NATS is down. It is in the path of pods only while some object requires that.
"""

import asyncio
from contextlib import aclosing

from structlog.contextvars import bind_contextvars

from flotilla_common.bus.permissions import webhook_permissions
from flotilla_common.control.events import Recorder
from flotilla_common.control.journal import Journal
from flotilla_common.service import Context, Service, run_alone
from flotilla_webhook.access import access
from flotilla_webhook.audit import Audit
from flotilla_webhook.budgets.reports import COMPONENT, BudgetRecords
from flotilla_webhook.chain import chain_of
from flotilla_webhook.kinds import handlers_of
from flotilla_webhook.metrics import process_metrics
from flotilla_webhook.protection import protection_log
from flotilla_webhook.server.registration import Endpoint, Registration
from flotilla_webhook.server.serving import WebhookServer


async def run(context: Context) -> None:
    """Serve admission and conversion until cancelled; fail if certificate or registration is not ready in time."""
    bind_contextvars(service=context.service, replica=context.replica)
    api, bus, clock, entropy = context.api, context.bus, context.clock, context.entropy
    settings, gates, metrics = context.settings, context.gates, process_metrics()
    journal = Journal(bus, clock, context.service, context.replica, context.tracer)
    events = Recorder(api, clock, entropy, COMPONENT)
    records = BudgetRecords(journal, events, metrics, protection_log(settings.protection_log_path))

    chain = chain_of(api, bus, clock, entropy, settings, gates, records)
    handlers = handlers_of(api, clock, settings, gates, metrics) | chain.handlers()
    handlers |= Audit(journal, clock, settings.namespace).around(handlers)
    external = gates.on("EnableExternalCerts")
    registration = Registration(api, Endpoint.of(settings), handlers, chain.entries(), external=external)
    handlers |= chain.with_activation(api, clock, registration, handlers)

    server = WebhookServer(context, registration, handlers, metrics)
    async with aclosing(chain), asyncio.TaskGroup() as group:
        await chain.serve()
        group.create_task(events.run())
        for task in chain.tasks(api, clock, server.rotator.request_pass_now):
            group.create_task(task)
        await server.run(group)


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    return Service("webhook", run, access=access(), permissions=webhook_permissions(), called=True)


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())
