"""The webhook service: its handlers, its certificate, and its registration with the apiserver.

It publishes changes to the bus (`audit`), but needs neither the bus nor a mirror: it answers from the request, keeps
data for pods by its own watches (`cache`), and reads from the apiserver directly for rules that need more. So it serves
while NATS is down. It is in the path of pods only while some object requires that.
"""

import asyncio
import gc
from collections.abc import Callable
from contextlib import AsyncExitStack, aclosing
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from structlog.contextvars import bind_contextvars

from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.resources import CONFIG_MAP, CRD, MUTATING, SECRET, VALIDATING, Resource
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from flotilla_common.bus.permissions import webhook_permissions
from flotilla_common.clock import Clock
from flotilla_common.control.events import Recorder
from flotilla_common.control.journal import Journal
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api
from flotilla_common.service import Context, Service, run_alone
from flotilla_common.settings import Settings
from flotilla_webhook import certificates, tls
from flotilla_webhook.access import access
from flotilla_webhook.activation import Activation
from flotilla_webhook.audit import Audit
from flotilla_webhook.budget_records import COMPONENT, BudgetRecords
from flotilla_webhook.chain import chain_of
from flotilla_webhook.conversion import convert
from flotilla_webhook.live_counts import LiveCounts
from flotilla_webhook.metrics import Metrics, process_metrics
from flotilla_webhook.protection import Protection, recorder
from flotilla_webhook.registration import GROUPS, Endpoint, Registration
from flotilla_webhook.rotation import CertificateRotator, Follower
from flotilla_webhook.server import build
from flotilla_webhook.stores import ExternalStore, FileStore, SecretStore, Store
from flotilla_webhook.tools import LiveTools, kind_handlers
from flotilla_webhook.wire import Handler

CA_FILE = "ca-cert.pem"

_PROBE_SECONDS = 10.0


async def run(context: Context) -> None:
    """Serve admission and conversion until cancelled; fail if certificate or registration is not ready in time."""
    bind_contextvars(service=context.service, replica=context.replica)
    settings, clock = context.settings, context.clock
    metrics = process_metrics()
    journal = Journal(context.bus, clock, context.service, context.replica, context.tracer)
    events = Recorder(context.api, clock, context.entropy, COMPONENT)
    records = BudgetRecords(journal, events, metrics, recorder(settings.protection_log_path))
    chain = chain_of(context.api, context.bus, clock, context.entropy, settings, context.gates, records)
    pods, active_rules = chain.pods, chain.pods.active_rules
    handlers = handlers_of(context.api, clock, settings, context.gates, metrics)
    handlers |= pods.handlers() | chain.checks.handlers()
    handlers |= Audit(journal, clock, settings.namespace).around(handlers)
    registration = Registration(
        context.api,
        Endpoint(settings.namespace, settings.webhook_service, _url(settings)),
        handlers,
        {MUTATING: pods.entries, VALIDATING: chain.checks.entries},
        external=context.gates.on("EnableExternalCerts"),
    )
    activation = Activation(api=context.api, clock=clock, active_rules=active_rules, register=registration.sync_pods)
    checks = Activation(
        api=context.api, clock=clock, active_rules=chain.checks.active_rules, register=registration.sync_checks
    )
    handlers |= chain.with_activation(activation, checks, handlers)
    certificate = tls.Certificate(settings.webhook_client_ca)
    directory = Path(settings.webhook_cert_dir)
    rotator = CertificateRotator(
        store=_store(context),
        directory=directory,
        host=_host(settings),
        renew_before=timedelta(days=settings.certs_renew_before),
        registration=registration,
        use=_using(certificate, metrics, context.vitals),
        clock=clock,
    )
    context.vitals["checksCallers"] = lambda: bool(settings.webhook_client_ca)
    callers = {name.strip() for name in settings.webhook_client_names.split(",")} - {""}
    app = build(handlers, convert, metrics, clock, callers=callers)
    sock = tls.listen(settings.webhook_port)
    async with aclosing(chain), asyncio.TaskGroup() as group, AsyncExitStack() as stack:
        await chain.serve()
        group.create_task(rotator.run())
        group.create_task(events.run())
        group.create_task(active_rules.expire(rotator.need))
        group.create_task(chain.checks.active_rules.expire(rotator.need))
        for cache in chain.caches:
            cache.listen(rotator.need)
            group.create_task(cache.follow(context.api, clock))
        for follower in _followers(context, rotator):
            group.create_task(follower.run())
        await _in_time(settings, rotator, rotator.certified)
        context.health.ready("webhook-ready", ok=False, why="not serving yet")
        # It stops before all else: requests until then rely on the watches.
        server = await stack.enter_async_context(tls.serving(app, certificate, sock, clock))
        group.create_task(_report(context, rotator, certificate, sock.getsockname()[1]))
        await _in_time(settings, rotator, rotator.initialised)
        gc.freeze()  # the application's objects are permanent: collecting them would delay calls
        context.started()
        await server


def handlers_of(api: Api, clock: Clock, settings: Settings, gates: Gates, metrics: Metrics) -> dict[str, Handler]:
    """Return the handler of every admission path except those of pods."""
    protection = Protection(gates, LiveCounts(api), metrics, recorder(settings.protection_log_path))
    kinds = kind_handlers(LiveTools(api, clock, gates, protection, settings.namespace))
    return kinds | protection.handlers()


def _store(context: Context) -> Store:
    settings = context.settings
    if context.gates.on("EnableExternalCerts"):
        return ExternalStore(context.api, settings.namespace, settings.webhook_secret)
    if settings.webhook_cert_writer == "fs" or (settings.webhook_host and not settings.webhook_cert_writer):
        return FileStore(Path(settings.webhook_cert_dir))
    return SecretStore(context.api, settings.namespace, settings.webhook_secret)


def _using(
    certificate: tls.Certificate, metrics: Metrics, vitals: dict[str, Callable[[], object]]
) -> Callable[[Path], None]:
    """Return a function that loads the certificate of a directory and reports when it ends."""

    def use(directory: Path) -> None:
        certificate.use(directory)
        end = certificates.end((directory / "tls.crt").read_bytes())
        metrics.certificate_end.set(end.timestamp())
        vitals["certificateEnd"] = lambda: end

    return use


def _url(settings: Settings) -> str:
    """Return the URL at which the apiserver calls us from outside the cluster, "" inside."""
    if settings.webhook_host:
        return f"https://{settings.webhook_host}:{settings.webhook_port}"
    return settings.webhook_url.rstrip("/")


def _host(settings: Settings) -> str:
    """Return the host name that the certificate must be for."""
    service = f"{settings.webhook_service}.{settings.namespace}.svc"
    return settings.webhook_host or urlsplit(settings.webhook_url).hostname or service


def _followers(context: Context, rotator: CertificateRotator) -> list[Follower]:
    """Return watches that wake the rotator: configurations, CRDs, the ConfigMap with the white lists, the Secret."""

    def follow(resource: Resource, interesting: Callable[[str], bool], namespace: str = "", only: str = "") -> Follower:
        return Follower(context.api, context.clock, resource, rotator.wake, interesting, namespace, only)

    secret = context.settings.webhook_secret
    return [
        follow(MUTATING, lambda name: name == MUTATING_CONFIGURATION),
        follow(VALIDATING, lambda name: name == VALIDATING_CONFIGURATION),
        follow(CRD, lambda name: name.partition(".")[2] in GROUPS),
        follow(CONFIG_MAP, lambda name: name == CONFIGURATION, context.settings.namespace, only=CONFIGURATION),
        follow(SECRET, lambda name: name == secret, context.settings.namespace, only=secret),
    ]


async def _in_time(settings: Settings, rotator: CertificateRotator, event: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(settings.webhook_initialize_timeout):
            await event.wait()
    except TimeoutError as late:
        seconds = settings.webhook_initialize_timeout
        raise RuntimeError(f"webhook not initialised within {seconds:g} s: {rotator.failure}") from late


async def _report(context: Context, rotator: CertificateRotator, certificate: tls.Certificate, port: int) -> None:
    """Report readiness: everything has been right once, and the server answers over TLS."""
    ca_file = Path(context.settings.webhook_cert_dir) / CA_FILE
    while True:
        why = "" if rotator.initialised.is_set() else rotator.failure
        why = why or _reload_problem(certificate) or await tls.probe(port, ca_file)
        context.health.ready("webhook-ready", not why, why)
        await context.clock.sleep(_PROBE_SECONDS if not why else 1.0)


def _reload_problem(certificate: tls.Certificate) -> str:
    """Load new authorities of clients; return why that fails, or ""."""
    try:
        certificate.reload_authorities()
    except OSError as fault:
        return f"the authority of the apiserver's client certificate: {fault}"
    return ""


def service() -> Service:
    """Return the service, for `flotilla run` and for its own process."""
    return Service("webhook", run, access=access(), permissions=webhook_permissions(), called=True)


def main() -> int:
    """Run the service as its own process and return the exit code."""
    return run_alone(service())
