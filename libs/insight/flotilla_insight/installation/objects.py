"""Objects of an installation: their resources and places, how they are read, and awaited until they are gone.

The apiserver empties a namespace, and deletes the objects of a CRD's kind, after the request that removes it. Meanwhile
it serves the old object, accepts patches, and deletes them with it; so nothing may be built on such an object.
"""

from collections.abc import Callable

import msgspec

from flotilla_common.api.documents import Json, mappings, member, text
from flotilla_common.api.errors import found_or_none
from flotilla_common.api.resources import CRD, MUTATING, NAMESPACE, VALIDATING, Resource
from flotilla_common.clock import Clock
from flotilla_common.control.plan import PatchType
from flotilla_common.kube.interface import Api

_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
SERVICE = Resource("", "v1", "services", "Service")
OPTIONAL = frozenset(
    Resource(_ADMISSION, "v1", f"{word.lower()}admission{plural}", f"{word}Admission{kind}", namespaced=False)
    for word in ("Mutating", "Validating")
    for plural, kind in (("policies", "Policy"), ("policybindings", "PolicyBinding"))
)
"""Kinds that older apiservers do not serve, that may be switched off, and that an installation can do without."""

ACCOUNT = Resource("", "v1", "serviceaccounts", "ServiceAccount")
CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING = (
    Resource(_RBAC, "v1", f"{kind.lower()}s", kind, namespaced=not kind.startswith("Cluster"))
    for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
)

_ALL = (
    NAMESPACE,
    CRD,
    MUTATING,
    VALIDATING,
    SERVICE,
    *OPTIONAL,
    ACCOUNT,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    ROLE,
    ROLE_BINDING,
)
_BY_KIND = {resource.kind: resource for resource in _ALL}

GONE_SECONDS = 120.0
"""Limit for a CRD with its objects, or a namespace with its content, to be gone.

A namespace takes ten seconds, on a busy apiserver more; finalizers may block it forever.
"""

REPORT_SECONDS = 2.0
"""Seconds of waiting after which the user is informed."""

NUDGE_SECONDS = 5.0
"""Seconds between touches of a CRD that is not going.

The apiserver retries a failed removal with growing delays; after any change of the CRD it retries at once.
"""

_TOUCHED = "flotilla.kruise.io/removal-nudged"

_SAY_NOTHING = frozenset({"NamesAccepted", "Established"})
"""Conditions of every CRD, which do not explain a delay."""

ReportWait = Callable[[str], None]
"""Receives a line about a longer wait."""


class Place(msgspec.Struct, frozen=True):
    """The place of an object. The namespace is empty for cluster-scoped ones."""

    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f" in {self.namespace}" if self.namespace else ""
        return f"{self.resource.kind} {self.name}{where}"


def place_of(document: Json) -> Place:
    """Return the place of an installation's object."""
    return Place(resource_of(document), namespace_of(document), name_of(document))


def resource_of(document: Json) -> Resource:
    """Return the resource of an installation's object."""
    return _BY_KIND[document["kind"]]


def namespace_of(document: Json) -> str:
    """Return the object's namespace; empty for cluster-scoped ones."""
    return text(member(document, "metadata").get("namespace"))


def name_of(document: Json) -> str:
    """Return the object's name."""
    return text(member(document, "metadata").get("name"))


def title(document: Json) -> str:
    """Return the object's name as in kubectl: `clusterrole.rbac.authorization.k8s.io/flotilla-watcher`."""
    resource = resource_of(document)
    group = f".{resource.group}" if resource.group else ""
    return f"{resource.kind.lower()}{group}/{name_of(document)}"


async def get(api: Api, place: Place) -> Json | None:
    """Return the object as it is on the cluster, or None. Raises ApiError, Unreachable."""
    raw = await found_or_none(api.get(place.resource, place.namespace, place.name))
    return None if raw is None else msgspec.json.decode(raw, type=Json)


def is_leaving(live: Json) -> bool:
    """Report whether the object is being removed."""
    return "deletionTimestamp" in member(live, "metadata")


def is_true(live: Json, condition: str) -> bool:
    """Report whether the object's condition of this type is True."""
    conditions = mappings(member(live, "status").get("conditions"))
    return any(one.get("type") == condition and one.get("status") == "True" for one in conditions)


async def gone(api: Api, clock: Clock, document: Json, report: ReportWait) -> str:
    """Wait until the object is gone. Return why it is not; empty if it is. Raises ApiError, Unreachable."""
    began, reported = clock.monotonic(), False
    nudge_at = began + NUDGE_SECONDS
    while (live := await get(api, place_of(document))) is not None:
        waited = clock.monotonic() - began
        if waited > GONE_SECONDS:
            return holds_up(live)
        if waited > REPORT_SECONDS and not reported:
            reported = True
            report(f"waiting until {title(document)} is gone: {holds_up(live)}")
        if document["kind"] == CRD.kind and clock.monotonic() >= nudge_at:
            nudge_at = clock.monotonic() + NUDGE_SECONDS
            await _nudge(api, clock, name_of(document))
        await clock.sleep(0.1)
    return ""


async def _nudge(api: Api, clock: Clock, name: str) -> None:
    touched = {"metadata": {"annotations": {_TOUCHED: clock.now().isoformat()}}}
    await found_or_none(api.patch(CRD, "", name, msgspec.json.encode(touched), PatchType.MERGE))


def holds_up(live: Json) -> str:
    """Return the conditions' messages about a namespace or a CRD that is being removed."""
    says = [
        str(one.get("message"))
        for one in mappings(member(live, "status").get("conditions"))
        if one.get("status") == "True" and one.get("type") not in _SAY_NOTHING and one.get("message")
    ]
    return "; ".join(says) or "the apiserver reports no reason"
