"""Reads from the cluster what a migration depends on."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from flotilla_cli.adopt import backup
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.meta import ObjectMeta, metadata_of
from flotilla_common.api.resources import CONFIG_MAP, CRD, LEASE, POD, SECRET, Resource
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, pages
from flotilla_insight.installation.crds import is_served, resource_of
from flotilla_insight.installation.manifests import manifests
from flotilla_insight.installation.objects import OPTIONAL, Place, get, place_of
from flotilla_insight.installation.rbac import NAMESPACE
from flotilla_insight.openkruise import CONFIGURATIONS, DAEMON, GROUPS, LEADER, MANAGER, STANDSTILL, held_by

_CHARTS_PODS = "app.kubernetes.io/part-of=flotilla"


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a cluster."""

    now: datetime
    objects: Mapping[Place, Json] = {}  # objects of an installation, OpenKruise's or ours
    before: Mapping[Place, Json] = {}  # backups of an earlier run
    counts: Mapping[str, int] = {}  # objects of kinds that Flotilla does not serve, by the name of their CRD
    leases: Sequence[Json] = ()  # all of the system namespace
    pods: Sequence[str] = ()  # of Flotilla's chart
    ending: Sequence[str] = ()  # the terminating ones among them
    releases: Sequence[Json] = ()  # metadata of helm's records of the release of OpenKruise
    policies: bool = True  # the apiserver serves ValidatingAdmissionPolicies

    @property
    def definitions(self) -> dict[Place, Json]:
        """Return the CRDs of OpenKruise's groups."""
        return {place: live for place, live in self.objects.items() if place.resource == CRD}

    @property
    def services(self) -> list[str]:
        """Return the held leases of Flotilla's services."""
        leases = {text(member(lease, "metadata").get("name")): lease for lease in self.leases}
        return [name for name, lease in leases.items() if name.startswith("flotilla-") and held_by(lease, self.now)]

    def original(self, place: Place) -> Json:
        """Return the object as it was under OpenKruise."""
        return self.before.get(place) or self.objects[place]


def own_places() -> list[Place]:
    """Return the places of the objects of Flotilla's installation."""
    return [place_of(document) for document in manifests(Gates.parse(""))]


def policy_places() -> list[Place]:
    """Return the places of the migration's policy and of its binding."""
    kinds = [kind for kind in OPTIONAL if kind.kind.startswith("Validating")]
    return [Place(kind, "", STANDSTILL) for kind in sorted(kinds, key=lambda k: k.kind)]


async def discover(api: Api, now: datetime) -> Found:
    """Read everything. Raises ApiError, Unreachable."""
    definitions = [Place(CRD, "", name) for name in await _names(api, CRD) if name.partition(".")[2] in GROUPS]
    wanted = [MANAGER, DAEMON, LEADER, *CONFIGURATIONS, *own_places(), *policy_places(), *definitions]
    objects = {place: live for place in dict.fromkeys(wanted) if (live := await get(api, place)) is not None}
    maps = await api.list(CONFIG_MAP, NAMESPACE, label_selector=backup.LABEL)
    kept = dict(backup.read(msgspec.json.decode(raw)) for raw in maps.items)
    counts = {
        place.name: len(await _names(api, resource_of(live)))
        for place, live in objects.items()
        if place.resource == CRD and not is_served(live)
    }
    pods = await _metadata(api, POD, NAMESPACE, label_selector=_CHARTS_PODS)
    return Found(
        now=now,
        objects=objects,
        before=kept,
        counts=counts,
        leases=[msgspec.json.decode(raw) for raw in (await api.list(LEASE, NAMESPACE)).items],
        pods=[meta.name for meta in pods],
        ending=[meta.name for meta in pods if meta.deletion_timestamp],
        releases=await _releases(api, kept.get(MANAGER) or objects.get(MANAGER)),
        policies=await _serves_policies(api),
    )


async def each(api: Api, resource: Resource) -> list[Place]:
    """Return the places of all objects of a resource; only metadata is read."""
    return [Place(resource, meta.namespace, meta.name) for meta in await _metadata(api, resource)]


async def _metadata(api: Api, resource: Resource, namespace: str = "", label_selector: str = "") -> list[ObjectMeta]:
    listed = pages(api, resource, namespace, label_selector=label_selector, metadata_only=True)
    return [metadata_of(raw) async for page in listed for raw in page.items]


async def _names(api: Api, resource: Resource) -> list[str]:
    return [place.name for place in await each(api, resource)]


async def _releases(api: Api, manager: Json | None) -> list[Json]:
    """Return the metadata of the manager's release records; their content has the chart's values and is not read."""
    annotations = member(manager or {}, "metadata", "annotations")
    name = text(annotations.get("meta.helm.sh/release-name"))
    namespace = text(annotations.get("meta.helm.sh/release-namespace")) or NAMESPACE
    if not name:
        return []
    page = await api.list(SECRET, namespace, label_selector=f"name={name},owner", metadata_only=True)
    return [member(msgspec.json.decode(raw), "metadata") for raw in page.items]


async def _serves_policies(api: Api) -> bool:
    policies = next(kind for kind in OPTIONAL if kind.kind == "ValidatingAdmissionPolicy")
    return await found_or_none(api.list(policies, limit=1)) is not None
