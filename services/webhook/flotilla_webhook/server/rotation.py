"""Keeps the certificate valid and the registration current while the service runs (webhooks.md §4).

A pass runs at every change of the objects concerned, and every minute. Passes that had to write are spaced out more and
more, so that two installations which disagree about the same objects do not fight at full speed; a pass for changed pod
rules does not wait.
"""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import structlog

from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import Resource
from flotilla_common.clock import Clock
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_webhook.server import certificates
from flotilla_webhook.server.certificates import Bundle
from flotilla_webhook.server.registration import Registration, RegistrationError
from flotilla_webhook.server.stores import Store, StoreError, files_of, write_files

INTERVAL = 60.0
"""Seconds between passes when nothing changes: finds expiry, and changes whose event was lost."""

TRUST_SECONDS = 1.0
"""Time for the apiserver to notice a changed caBundle. It watches its configurations, and needs far less."""

_RETRIES = 5  # of replicas that start together with an empty store, one wins and the others read its result
APART = 0.25
"""Seconds between passes without a write: a thousand simultaneous objects cause a few of them."""

_FIRST_DELAY, _LAST_DELAY = 0.25, 60.0

_log = structlog.get_logger()

_RETRY_SECONDS = 2.0


class CertificateRotator(msgspec.Struct, kw_only=True):
    """The pass over certificate and registration, and its loop."""

    store: Store
    directory: Path
    host: str
    renew_before: timedelta
    registration: Registration
    use: Callable[[Path], None]
    clock: Clock
    certified: asyncio.Event = msgspec.field(default_factory=asyncio.Event)  # a certificate is in use
    initialised: asyncio.Event = msgspec.field(default_factory=asyncio.Event)  # a pass has succeeded as a whole
    failure: str = "certificate and registration have not been checked yet"
    _served: Bundle | None = None
    _requested: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    _urgent: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    def request_pass(self) -> None:
        """Request a pass soon, after a change."""
        self._requested.set()

    def request_pass_now(self) -> None:
        """Request a pass at once: the pod rules have changed."""
        self._urgent.set()
        self._requested.set()

    async def run(self) -> None:
        """Run passes until cancelled."""
        delay, quiet_since = 0.0, self.clock.monotonic()
        while True:
            self._requested.clear()
            self._urgent.clear()
            if not await self._pass():
                await self.clock.sleep(APART)
            else:
                if self.clock.monotonic() - quiet_since > INTERVAL:
                    delay = 0.0
                quiet_since = self.clock.monotonic()
                delay = min(max(delay * 2, _FIRST_DELAY), _LAST_DELAY)
                await self._within(delay, self._urgent)
                if self._urgent.is_set():
                    await self.clock.sleep(APART)
            await self._within(INTERVAL, self._requested)

    async def _pass(self) -> bool:
        """Run one pass; return True if the next one should be delayed, because it wrote or failed."""
        try:
            written = await self.once()
        except (ApiError, Unreachable, StoreError, RegistrationError, OSError) as failure:
            self.failure = str(failure)
            _log.warning("webhook certificate or registration not ready yet", error=str(failure))
            self.request_pass()
            return True
        self.failure = ""
        self.initialised.set()
        if written:
            _log.info("webhook registration written", objects=written)
        return bool(written)

    async def once(self) -> list[str]:
        """Update certificate, files and registration; return the names of the written objects."""
        bundle = await self._bundle()
        written = await self._trust_both(bundle)
        if write_files(self.directory, files_of(bundle)) or self._served is None:
            self.use(self.directory)
            self.certified.set()
        self._served = bundle
        return written + await self.registration.sync(bundle.ca_cert)

    async def _trust_both(self, bundle: Bundle) -> list[str]:
        """Make the apiserver trust both CAs before a change, so that no call fails meanwhile."""
        if self._served is None or self._served.ca_cert == bundle.ca_cert or self.store.external:
            return []
        written = await self.registration.sync(bundle.ca_cert + self._served.ca_cert)
        await self.clock.sleep(TRUST_SECONDS)
        return written

    async def _bundle(self) -> Bundle:
        for _ in range(_RETRIES):
            stored = await self.store.load()
            now = self.clock.now()
            if stored is not None and self.store.external:
                return stored
            reason = certificates.problem(stored, self.host, now + self.renew_before) if stored else "there is none"
            if stored is not None and not reason:
                return stored
            fresh = await asyncio.to_thread(certificates.issue, self.host, now, stored)
            if await self.store.save(fresh):
                _log.info("webhook certificate issued", host=self.host, because=reason)
                return fresh
        raise StoreError("other replicas keep storing certificates that this one cannot use")

    async def _within(self, seconds: float, event: asyncio.Event) -> None:
        """Wait for the event, but no longer than `seconds`."""
        if event.is_set():
            return
        timer = asyncio.ensure_future(self.clock.sleep(seconds))
        woken = asyncio.ensure_future(event.wait())
        try:
            await asyncio.wait({timer, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()
            woken.cancel()


class ChangeNotifier(msgspec.Struct, frozen=True):
    """A watch that reports that something has changed, without its content.

    It calls `notify` whenever an object of the resource with an interesting name may have changed. With `only`, other
    names are not requested, and no right to them is needed.
    """

    api: Api
    clock: Clock
    resource: Resource
    notify: Callable[[], None]
    interesting: Callable[[str], bool]
    namespace: str = ""
    only: str = ""

    async def run(self) -> None:
        """Follow until cancelled, through ends, errors and lost history."""
        version, fields = "", f"metadata.name={self.only}" if self.only else ""
        while True:
            try:
                if not version:
                    page = await self.api.list(self.resource, self.namespace, field_selector=fields, limit=1)
                    version = page.resource_version
                    self.notify()  # covers changes while there was no watch
                events = self.api.watch(self.resource, version, namespace=self.namespace, field_selector=fields)
                async for event in events:
                    metadata = metadata_of(event.object)
                    version = metadata.resource_version
                    if event.type != "BOOKMARK" and self.interesting(metadata.name):
                        self.notify()
            except (ApiError, Unreachable) as failure:
                version = ""
                _log.info("watch interrupted", resource=self.resource.id, error=str(failure))
                await self.clock.sleep(_RETRY_SECONDS)
