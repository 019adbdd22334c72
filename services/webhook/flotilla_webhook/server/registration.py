"""Maintains the webhook's registration: both webhook configurations, and the CRDs' conversion.

See webhooks.md §3.4 and §6. Objects are written only when they differ from the required state, always on the version
that was read, so that replicas agree instead of overwriting each other.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec

from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.podrules import CHECK_PATH, RULES
from flotilla_common.api.resources import CRD, MUTATING, VALIDATING, Resource
from flotilla_common.api.webhooks import (
    CONVERT_PATH,
    MUTATING_CONFIGURATION,
    POD_PATH,
    VALIDATING_CONFIGURATION,
    bound,
    path_of,
)
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.interface import Api, pages
from flotilla_common.settings import Settings

CONFIGURATIONS = {MUTATING: MUTATING_CONFIGURATION, VALIDATING: VALIDATING_CONFIGURATION}
GROUPS = frozenset({"apps.kruise.io", "policy.kruise.io"})
_TEMPLATE = "template"  # the annotation with the entries as they were installed
_REVIEW_VERSIONS = ["v1", "v1beta1"]


PodEntries = Callable[[str], Awaitable[tuple[list[Json], str]]]
"""Returns the required entries in the path of pods, and their rules for the annotation, given the stored rules."""


class RegistrationError(Exception):
    """The configuration cannot be brought into the required state."""


class Endpoint(msgspec.Struct, frozen=True):
    """The address of the webhook: `url` (https://host:port) if set, else the Service."""

    namespace: str
    service: str
    url: str = ""

    @classmethod
    def of(cls, settings: Settings) -> "Endpoint":
        """Return the address by the settings: a URL where the apiserver calls from outside the cluster."""
        url = settings.webhook_url.rstrip("/")
        if settings.webhook_host:
            url = f"https://{settings.webhook_host}:{settings.webhook_port}"
        return cls(settings.namespace, settings.webhook_service, url)

    def conversion(self, ca_bundle: str) -> Json:
        """Return the client configuration of CRD conversion."""
        if self.url:
            return {"url": self.url + CONVERT_PATH, "caBundle": ca_bundle}
        service = {"namespace": self.namespace, "name": self.service, "path": CONVERT_PATH, "port": 443}
        return {"service": service, "caBundle": ca_bundle}


class Registration:
    """The required registration, and the writes to it."""

    def __init__(
        self,
        api: Api,
        endpoint: Endpoint,
        paths: Iterable[str],
        pod_entries: Mapping[Resource, PodEntries],
        *,
        external: bool = False,
    ) -> None:
        """Prepare the writes; `pod_entries` are by configuration, `external` caBundles are managed elsewhere."""
        self.api = api
        self.endpoint = endpoint
        self.paths = frozenset(paths)
        self.pod_entries = pod_entries
        self.external = external
        self._writing = asyncio.Lock()  # passes and admissions of this replica do not conflict
        self._ca_bundle = ""  # of the last sync

    async def sync(self, ca: bytes) -> list[str]:
        """Update everything to the CA; return what was written. Raises ApiError, Unreachable, RegistrationError."""
        ca_bundle = self._ca_bundle = base64.b64encode(ca).decode()
        written: list[str] = []
        for resource, name in CONFIGURATIONS.items():
            written += await self._sync_configuration(resource, name, ca_bundle)
        async for page in pages(self.api, CRD, limit=100):
            for raw in page.items:
                written += await self._sync_definition(raw, ca_bundle)
        return written

    async def sync_pods(self) -> list[str]:
        """Update the entries in the path of new pods to the required rules. Raises as `sync` does."""
        return await self._sync_entries(MUTATING)

    async def sync_checks(self) -> list[str]:
        """Update the entries in the path of pods that go or are updated. Raises as `sync` does."""
        return await self._sync_entries(VALIDATING)

    async def _sync_entries(self, resource: Resource) -> list[str]:
        if not self._ca_bundle:
            raise RegistrationError("there is no certificate yet")
        return await self._sync_configuration(resource, CONFIGURATIONS[resource], self._ca_bundle)

    async def _sync_configuration(self, resource: Resource, name: str, ca_bundle: str) -> list[str]:
        async with self._writing:
            return await self._sync_locked(resource, name, ca_bundle)

    async def _sync_locked(self, resource: Resource, name: str, ca_bundle: str) -> list[str]:
        stored = msgspec.json.decode(await self.api.get(resource, "", name), type=Json)
        held, pods = await self._with_pods(stored, self.pod_entries[resource], ca_bundle)
        if self.external:
            wanted = held | {"webhooks": [*pods, *_without_pods(mappings(stored.get("webhooks")))]}
        else:
            wanted = self.configuration(held, pods, ca_bundle)
        written: list[str] = []
        if wanted != stored:
            await self.api.replace(resource, "", name, msgspec.json.encode(wanted))
            written.append(name)
        if self.external:
            self._check_configuration(name, wanted, ca_bundle)
        return written

    def configuration(self, stored: Json, pods: list[Json], ca_bundle: str) -> Json:
        """Return the required configuration object, built from the stored one and its template."""
        # The entries in the path of pods exist only while they are needed, so they are ours and not the installer's.
        annotations = member(stored, "metadata", "annotations")
        template = text(annotations.get(_TEMPLATE)) or msgspec.json.encode(stored.get("webhooks") or []).decode()
        entries = [entry for entry in _without_pods(_entries(template)) if path_of(entry) in self.paths]
        metadata = member(stored, "metadata") | {"annotations": annotations | {_TEMPLATE: template}}
        with_endpoint = [self._bound(entry, ca_bundle) for entry in entries]
        return stored | {"metadata": metadata, "webhooks": [*pods, *with_endpoint]}

    async def _with_pods(self, stored: Json, pod_entries: PodEntries, ca_bundle: str) -> tuple[Json, list[Json]]:
        """Return the configuration with the rules of pods in its annotation, and the entries for these rules."""
        annotations = dict(member(stored, "metadata", "annotations"))
        entries, rules = await pod_entries(text(annotations.pop(RULES, "")))
        if rules:
            annotations[RULES] = rules
        held = stored
        if annotations != member(stored, "metadata", "annotations"):
            held = stored | {"metadata": member(stored, "metadata") | {"annotations": annotations}}
        return held, [self._bound(entry, ca_bundle) for entry in entries]

    def _bound(self, entry: Json, ca_bundle: str) -> Json:
        client = member(entry, "clientConfig")
        if "service" in client:
            here = {"namespace": self.endpoint.namespace, "name": self.endpoint.service}
            entry = entry | {"clientConfig": client | {"service": mapping(client["service"]) | here}}
        return bound(entry, ca_bundle, self.endpoint.url)

    def _check_configuration(self, name: str, stored: Json, ca_bundle: str) -> None:
        for entry in mappings(stored.get("webhooks")):
            if path_of(entry) in self.paths and member(entry, "clientConfig").get("caBundle") != ca_bundle:
                raise RegistrationError(f"{entry.get('name')} of {name} does not have the caBundle of the Secret yet")

    async def _sync_definition(self, raw: bytes, ca_bundle: str) -> list[str]:
        definition = msgspec.json.decode(raw, type=Json)
        spec = member(definition, "spec")
        conversion = member(spec, "conversion")
        if spec.get("group") not in GROUPS or conversion.get("strategy") != "Webhook":
            return []
        name = text(member(definition, "metadata").get("name"))
        client = self.endpoint.conversion(ca_bundle)
        stored = member(conversion, "webhook", "clientConfig")
        if self.external:
            if stored.get("caBundle") != ca_bundle:
                raise RegistrationError(f"the conversion of {name} does not have the caBundle of the Secret yet")
            return []
        webhook = {"clientConfig": client, "conversionReviewVersions": _REVIEW_VERSIONS}
        if conversion == {"strategy": "Webhook", "webhook": webhook}:
            return []
        await self.api.patch(CRD, "", name, _conversion_patch(definition, client, webhook), PatchType.MERGE)
        return [name]


def _conversion_patch(definition: Json, client: Json, webhook: Json) -> bytes:
    """Return a merge patch that also removes the other way of reaching the webhook."""
    both: Json = {"service": None, "url": None} | client
    return msgspec.json.encode(
        {
            "metadata": {"resourceVersion": member(definition, "metadata").get("resourceVersion")},
            "spec": {"conversion": {"webhook": webhook | {"clientConfig": both}}},
        }
    )


def _without_pods(entries: Iterable[Json]) -> list[Json]:
    return [entry for entry in entries if path_of(entry) not in (POD_PATH, CHECK_PATH)]


def _entries(template: str) -> list[Json]:
    try:
        return msgspec.json.decode(template, type=list[Json])
    except msgspec.MsgspecError as fault:
        raise RegistrationError(f"annotation {_TEMPLATE} is not a list of webhook entries: {fault}") from fault
