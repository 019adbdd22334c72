"""Runs the server: its certificate and registration first, then HTTPS, and its readiness (webhooks.md §4)."""

import asyncio
import gc
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from flotilla_common.api.keys import CONFIGURATION
from flotilla_common.api.resources import CONFIG_MAP, CRD, MUTATING, SECRET, VALIDATING, Resource
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from flotilla_common.health import bind
from flotilla_common.service import Context
from flotilla_common.settings import Settings
from flotilla_webhook.metrics import Metrics
from flotilla_webhook.server import certificates, tls
from flotilla_webhook.server.http_server import build
from flotilla_webhook.server.registration import GROUPS, Registration
from flotilla_webhook.server.reviews import Handler, convert
from flotilla_webhook.server.rotation import CertificateRotator, ChangeNotifier
from flotilla_webhook.server.stores import store_of

CA_FILE = "ca-cert.pem"

_PROBE_SECONDS = 10.0


class WebhookServer:
    """The server of the webhook, with a bound port. Raises PortTaken."""

    def __init__(
        self, context: Context, registration: Registration, handlers: Mapping[str, Handler], metrics: Metrics
    ) -> None:
        settings = context.settings
        self._context = context
        self._certificate = tls.Certificate(settings.webhook_client_ca)
        self.rotator = CertificateRotator(
            store=store_of(context),
            directory=Path(settings.webhook_cert_dir),
            host=host_of(settings),
            renew_before=timedelta(days=settings.certs_renew_before),
            registration=registration,
            use=certificate_user(self._certificate, metrics, context.vitals),
            clock=context.clock,
        )
        context.vitals["checksCallers"] = lambda: bool(settings.webhook_client_ca)
        callers = {name.strip() for name in settings.webhook_client_names.split(",")} - {""}
        self._app = build(handlers, convert, metrics, context.clock, callers=callers)
        self._socket = bind(settings.webhook_port, "webhook")

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Serve until cancelled, with tasks in the group. Raises RuntimeError if it is not ready in time."""
        context, rotator = self._context, self.rotator
        group.create_task(rotator.run())
        for notifier in _notifiers(context, rotator):
            group.create_task(notifier.run())
        await self._in_time(rotator.certified)
        context.health.ready("webhook-ready", ok=False, why="not serving yet")
        # It stops before the tasks of the group: requests until then rely on the watches.
        async with tls.serving(self._app, self._certificate, self._socket, context.clock) as ended:
            group.create_task(self._report())
            await self._in_time(rotator.initialised)
            gc.freeze()  # the application's objects are permanent: collecting them would delay calls
            context.started()
            await ended

    async def _in_time(self, event: asyncio.Event) -> None:
        seconds = self._context.settings.webhook_initialize_timeout
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError as late:
            raise RuntimeError(f"webhook not initialised within {seconds:g} s: {self.rotator.failure}") from late

    async def _report(self) -> None:
        """Report readiness: everything has been right once, and the server answers over TLS."""
        context, port = self._context, self._socket.getsockname()[1]
        ca_file = Path(context.settings.webhook_cert_dir) / CA_FILE
        while True:
            why = "" if self.rotator.initialised.is_set() else self.rotator.failure
            why = why or self._reload_problem() or await tls.probe(port, ca_file)
            context.health.ready("webhook-ready", not why, why)
            await context.clock.sleep(_PROBE_SECONDS if not why else 1.0)

    def _reload_problem(self) -> str:
        """Load new authorities of clients; return why that fails, or ""."""
        try:
            self._certificate.reload_authorities()
        except OSError as fault:
            return f"the authority of the apiserver's client certificate: {fault}"
        return ""


def certificate_user(
    certificate: tls.Certificate, metrics: Metrics, vitals: dict[str, Callable[[], object]]
) -> Callable[[Path], None]:
    """Return a function that loads the certificate of a directory and reports when it ends."""

    def use(directory: Path) -> None:
        certificate.use(directory)
        end = certificates.end((directory / "tls.crt").read_bytes())
        metrics.certificate_end.set(end.timestamp())
        vitals["certificateEnd"] = lambda: end

    return use


def host_of(settings: Settings) -> str:
    """Return the host name that the certificate must be for."""
    service = f"{settings.webhook_service}.{settings.namespace}.svc"
    return settings.webhook_host or urlsplit(settings.webhook_url).hostname or service


def _notifiers(context: Context, rotator: CertificateRotator) -> list[ChangeNotifier]:
    """Return watches that request passes: of configurations, CRDs, the ConfigMap with the white lists, the Secret."""

    def on(resource: Resource, interesting: Callable[[str], bool], namespace: str = "", only: str = "") -> None:
        notify = rotator.request_pass
        found.append(ChangeNotifier(context.api, context.clock, resource, notify, interesting, namespace, only))

    found: list[ChangeNotifier] = []
    secret, own = context.settings.webhook_secret, context.settings.namespace
    on(MUTATING, lambda name: name == MUTATING_CONFIGURATION)
    on(VALIDATING, lambda name: name == VALIDATING_CONFIGURATION)
    on(CRD, lambda name: name.partition(".")[2] in GROUPS)
    on(CONFIG_MAP, lambda name: name == CONFIGURATION, own, only=CONFIGURATION)
    on(SECRET, lambda name: name == secret, own, only=secret)
    return found
