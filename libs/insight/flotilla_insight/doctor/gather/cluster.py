"""Reads the installation's objects, and others near them, from the apiserver, and probes the webhook through it.

Only the apiserver can tell whether it reaches the webhook. The probes are dry runs of creates. The entries allow the
webhook 30 s; the probes wait for less.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.resources import CRD, LEASE, MUTATING, POD, VALIDATING, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.shards import SERVICE_LABEL
from flotilla_common.kube.interface import Api, ApiError, pages
from flotilla_insight.doctor.facts import Backend, Leases, NotKnown, Probe, Rights, Server
from flotilla_insight.installation.crds import is_served, resource_of
from flotilla_insight.installation.endpoint import services_behind
from flotilla_insight.installation.objects import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    OPTIONAL,
    ROLE,
    ROLE_BINDING,
    SERVICE,
    Place,
    get,
    name_of,
    namespace_of,
)
from flotilla_insight.installation.rbac import SECRETS_NAMESPACE
from flotilla_insight.openkruise import DAEMON, DAEMON_SET, DEPLOYMENT, GROUPS, LEADER, MANAGER

CHARTS = "app.kubernetes.io/part-of=flotilla"

_STATEFUL_SET = Resource("apps", "v1", "statefulsets", "StatefulSet")
_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
_REVIEW = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

_PROBED_NAMESPACE = "default"
"""A namespace that always exists."""

INVALID, VALID, OLD = "invalid", "valid", "v1alpha1"
"""An object to reject, one to default, and one to convert."""

WAIT_SECONDS = 6.0
AGAIN_SECONDS = 1.0
"""Seconds before a failed probe is repeated: a webhook that is being replaced answers again within moments."""


async def server(api: Api, clock: Clock) -> Server:
    """Return the apiserver's version and clock.

    The clock is the creation time of a review of our own user, which is stored nowhere.
    """
    version = msgspec.json.decode(await api.raw("GET", "/version"), type=Json)
    before = clock.now()
    review = await api.raw("POST", _REVIEWS, _REVIEW, {"Content-Type": "application/json"})
    middle = before + (clock.now() - before) / 2
    made = msgspec.json.decode(review, type=Json)["metadata"]["creationTimestamp"]
    at = msgspec.convert(made, type=type(middle), strict=False)
    # The stamp has whole seconds: half of one is right on average.
    return Server(text(version.get("gitVersion")), (at - middle).total_seconds() + 0.5)


async def definitions(api: Api) -> Mapping[str, Json]:
    """Return the CRDs of OpenKruise's groups, by name."""
    return {name_of(one): one for one in await listed(api, CRD) if member(one, "spec").get("group") in GROUPS}


async def hooks(api: Api) -> Sequence[Json]:
    """Return all webhook configurations."""
    return await _of_kinds(api, [(MUTATING, ""), (VALIDATING, "")])


async def backends(api: Api, configurations: Sequence[Json]) -> Mapping[tuple[str, str], Backend]:
    """Return the Services that entries of webhook configurations name."""
    named = set[tuple[str, str]]().union(*map(services_behind, configurations))
    return {place: await _backend(api, *place) for place in sorted(named)}


async def _backend(api: Api, namespace: str, name: str) -> Backend:
    if await get(api, Place(SERVICE, namespace, name)) is None:
        return Backend(exists=False)
    slices = await listed(api, _SLICES, namespace, f"kubernetes.io/service-name={name}")
    endpoints = [one for found in slices for one in mappings(found.get("endpoints"))]
    return Backend(True, sum(member(one, "conditions").get("ready") is not False for one in endpoints))


async def rights(api: Api, namespace: str) -> Rights:
    """Return roles and bindings: all cluster-wide ones, and those of Flotilla's namespaces."""
    in_namespaces = [(kind, where) for where in (namespace, SECRETS_NAMESPACE) for kind in (ROLE, ROLE_BINDING)]
    places = [(CLUSTER_ROLE, ""), (CLUSTER_ROLE_BINDING, ""), *in_namespaces]
    found = await _of_kinds(api, places)
    return Rights([one for one in found if "roleRef" not in one], [one for one in found if "roleRef" in one])


async def policies(api: Api) -> frozenset[str]:
    """Return the names of all admission policies, of the versions that the apiserver serves."""
    found = [await found_or_none(listed(api, kind)) or () for kind in OPTIONAL]
    return frozenset(name_of(one) for policies in found for one in policies)


async def leases(api: Api, home: Callable[[], Awaitable[str]], over: asyncio.Event) -> Leases:
    """Return Flotilla's leases now, and again when the look is `over`.

    Those of all namespaces show a second installation; who may not list them gets those of the `home` namespace.
    """
    namespace = ""
    try:
        first = await listed(api, LEASE, selector=SERVICE_LABEL)
    except ApiError as error:
        if error.code != 403:
            raise
        namespace = await home()
        first = await listed(api, LEASE, namespace, SERVICE_LABEL)
    await over.wait()
    return Leases(first, await listed(api, LEASE, namespace, SERVICE_LABEL))


async def leader(api: Api) -> Json:
    """Return OpenKruise's lease; empty if it does not exist."""
    return await get(api, LEADER) or {}


async def workloads(api: Api) -> Sequence[Json]:
    """Return the chart's workloads in any namespace, and OpenKruise's own."""
    ours = await _of_kinds(api, [(kind, "") for kind in (DEPLOYMENT, DAEMON_SET, _STATEFUL_SET)], CHARTS)
    known = {(text(one.get("kind")), namespace_of(one), name_of(one)) for one in ours}
    for place in (MANAGER, DAEMON):
        live = await get(api, place)
        if live is not None and (place.resource.kind, place.namespace, place.name) not in known:
            ours.append(live)
    return ours


async def listed(api: Api, resource: Resource, namespace: str = "", selector: str = "") -> list[Json]:
    """Return all objects of a resource. Raises ApiError, Unreachable."""
    listed = pages(api, resource, namespace, label_selector=selector)
    return [msgspec.json.decode(raw, type=Json) async for page in listed for raw in page.items]


async def _of_kinds(api: Api, places: Sequence[tuple[Resource, str]], selector: str = "") -> list[Json]:
    """Return all objects of resources, each in a namespace or everywhere, with their kind, which a LIST omits."""
    found = await asyncio.gather(*(listed(api, kind, where, selector) for kind, where in places))
    return [one | {"kind": kind.kind} for (kind, _), part in zip(places, found, strict=True) for one in part]


async def pods(api: Api) -> Sequence[Json]:
    """Return the pods of the chart."""
    return await listed(api, POD, selector=CHARTS)


async def foreign(api: Api, known: Mapping[str, Json]) -> Mapping[str, int]:
    """Return the numbers of objects, up to 100, of OpenKruise's kinds that Flotilla does not serve.

    Objects that cannot be converted any more count as none.
    """
    counts: dict[str, int] = {}
    for name, definition in known.items():
        if not is_served(definition):
            try:
                counts[name] = len((await api.list(resource_of(definition), limit=100)).items)
            except ApiError as error:
                if error.code == 403:
                    raise
    return counts


async def probes(api: Api, clock: Clock) -> Sequence[Probe]:
    """Return the apiserver's response to each. Raises NotKnown if the user may not create them."""
    labels = {"app": "flotilla-doctor"}
    wanted = {
        INVALID: _clone_set("v1beta1", labels, {"app": "somebody-else"}),
        VALID: _clone_set("v1beta1", labels, labels),
        OLD: _clone_set("v1alpha1", labels, labels),
    }
    return await asyncio.gather(*(_probe(api, clock, name, document) for name, document in wanted.items()))


async def _probe(api: Api, clock: Clock, name: str, document: Json) -> Probe:
    probe = await _try(api, name, document)
    if probe.code in (0, 500, 503):
        await clock.sleep(AGAIN_SECONDS)
        return await _try(api, name, document)
    return probe


async def _try(api: Api, name: str, document: Json) -> Probe:
    version = document["apiVersion"].partition("/")[2]
    resource: Resource = msgspec.structs.replace(CLONE_SET, version=version)
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            reply = await api.create(resource, _PROBED_NAMESPACE, msgspec.json.encode(document), dry_run=True)
    except TimeoutError:
        return Probe(name, 0, f"no answer within {WAIT_SECONDS:g} s")
    except ApiError as error:
        if error.code == 403 and "admission webhook" not in error.message:
            raise NotKnown(f"not allowed: {error.message}") from error
        return Probe(name, error.code, error.message)
    return Probe(name, 201, body=msgspec.json.decode(reply, type=Json))


def _clone_set(version: str, selector: Json, labels: Json) -> Json:
    template: Json = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "none"}]}}
    return {
        "apiVersion": f"{CLONE_SET.group}/{version}",
        "kind": CLONE_SET.kind,
        "metadata": {"name": "flotilla-doctor-looks", "namespace": _PROBED_NAMESPACE},
        "spec": {"selector": {"matchLabels": selector}, "template": template},
    }
