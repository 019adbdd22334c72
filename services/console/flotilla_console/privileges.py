"""Privileges of the console at the apiserver and on the bus. docs/console.md explains each.

Its own account reads what its pages show, asks the apiserver who may see what, and records who did what. Everything
else it does as the user: with their token, or by impersonation.
"""

import msgspec

from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.containerrecreaterequest.types import RECREATE_REQUEST
from flotilla_common.api.resources import (
    BUILT_IN_STATEFUL_SET,
    CRD,
    DEPLOYMENT,
    EVENT,
    LEASE,
    MUTATING,
    NAMESPACE,
    POD,
    TOKEN_REVIEW,
    VALIDATING,
    Resource,
)
from flotilla_common.bus import subjects
from flotilla_common.bus.permissions import Permissions, observer_permissions
from flotilla_common.control.spec import EVENTS, OWN_NAMESPACE, READ, read_rules
from flotilla_common.control.watches import AccessRule
from flotilla_console.model.kinds import KINDS
from flotilla_console.model.resources import RESOURCES
from flotilla_console.story.bus_look import PUBLISH

ACCESS_REVIEW = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)
ENDPOINTS = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")

ACCESS: tuple[AccessRule, ...] = (
    *read_rules(RESOURCES),
    *read_rules((CRD, MUTATING, VALIDATING, NAMESPACE)),
    AccessRule(LEASE, READ, namespace=OWN_NAMESPACE),
    AccessRule(ENDPOINTS, READ, namespace=OWN_NAMESPACE),
    AccessRule(ACCESS_REVIEW, ("create",)),
    AccessRule(TOKEN_REVIEW, ("create",)),
    EVENTS,
)
"""The rights of its own account."""

_LOOK = ("get", "list")
_SCALED = (*(kind.resource for kind in catalogue.KINDS if kind.scale), DEPLOYMENT, BUILT_IN_STATEFUL_SET)

AS_USERS: tuple[AccessRule, ...] = (
    *(AccessRule(resource, _LOOK) for resource in RESOURCES),
    *(AccessRule(kind.resource, ("patch",)) for kind in KINDS.values()),
    *(AccessRule(resource, ("get", "patch"), subresource="scale") for resource in _SCALED),
    AccessRule(POD, ("delete", "patch")),
    AccessRule(POD, ("get",), subresource="log"),
    AccessRule(EVENT, _LOOK),
    AccessRule(RECREATE_REQUEST, ("create",)),
)
"""The requests that it makes as a user: previews, actions, logs and events."""


_STORAGE = "$JS.API.INFO"
"""The subject of the request for the use of storage, for the checks of `flotilla doctor`."""


def bus_permissions(service: str) -> Permissions:
    """Return the permissions on the bus: reads, heartbeats, and sessions that were signed out."""
    seen, ended = observer_permissions(service), subjects.ended_session(service, "*")
    return msgspec.structs.replace(seen, publish=tuple(dict.fromkeys((*seen.publish, *PUBLISH, _STORAGE, ended))))
