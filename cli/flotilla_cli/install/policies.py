"""Policies of the apiserver: for leases of services, and for `metadata.managedFields` of new pods."""

from flotilla_cli.install.rbac import COMPACT, NAMESPACE, account
from flotilla_common.api.documents import Json
from flotilla_common.api.keys import REVISION_LABEL
from flotilla_common.api.resources import LEASE

OWN_LEASES = "flotilla-leases-of-their-own"
NO_MANAGED_FIELDS = "flotilla-pods-without-managed-fields"

_USER = "request.userInfo.username"
_ACCOUNTS = f"system:serviceaccount:{NAMESPACE}:{account('')}"
_LEASE = "(request.operation == 'DELETE' ? oldObject : object).metadata.name"
_OWN = f"{_LEASE}.startsWith({_USER}.split(':')[3] + '-')"
_OF_ALL = f"{_USER} == '{_ACCOUNTS}{COMPACT}'"
"""Exempts the one process that runs all services and has all of their leases."""

_TRACKED = "has(object.metadata.managedFields)"
_APPLIED = "object.metadata.managedFields.exists(entry, entry.operation == 'Apply')"
_OURS = (
    "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, "
    "has(owner.controller) && owner.controller && owner.apiVersion.startsWith('apps.kruise.io/'))"
)


def own_leases() -> list[Json]:
    """Return the policy, with binding, that lets each service write only its own leases.

    The holder of a lease writes the objects of its shard. With another service's leases one could stop its work, or
    have two holders at once. Roles cannot restrict this: a right to create cannot be restricted by name, and the leases
    of replicas are named after these. A policy can, because lease names begin with the service (`control/shards.py`).
    """
    written = {
        "apiGroups": [LEASE.group],
        "apiVersions": ["*"],
        "resources": [LEASE.plural],
        "operations": ["CREATE", "UPDATE", "DELETE"],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}
    spec: Json = {
        "matchConstraints": {"namespaceSelector": here, "resourceRules": [written]},
        "matchConditions": [{"name": "by-a-service", "expression": f"{_USER}.startsWith('{_ACCOUNTS}')"}],
        "validations": [{"expression": f"{_OWN} || {_OF_ALL}", "message": "a service may write its own leases only"}],
        "failurePolicy": "Fail",
    }
    return validating(OWN_LEASES, spec)


def no_managed_fields() -> list[Json]:
    """Return the policy, with binding, that creates pods without `metadata.managedFields` (docs/adr/0008).

    Kubernetes serves such policies from 1.36 on. The record of field owners is most of what a small patch of a pod
    costs the apiserver, and it is kept from the first write of an object on, or not at all. Only admission can leave it
    out of a new pod, and a policy does so inside the apiserver, without a webhook in the path of pods. A pod created
    with server-side apply keeps it.
    """
    # All pods with revisions, also of built-in workloads: the expressions are evaluated for no others.
    revised = {"matchExpressions": [{"key": REVISION_LABEL, "operator": "Exists"}]}
    created = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    conditions = [
        {"name": "of-our-workloads", "expression": _OURS},
        {"name": "not-applied", "expression": f"{_TRACKED} && !{_APPLIED}"},
    ]
    remove = "[JSONPatch{op: 'remove', path: '/metadata/managedFields'}]"
    spec: Json = {
        "matchConstraints": {"objectSelector": revised, "resourceRules": [created]},
        "matchConditions": conditions,
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": remove}}],
        "failurePolicy": "Ignore",  # a pod with managedFields only costs more
        "reinvocationPolicy": "Never",
    }
    return _policy("MutatingAdmissionPolicy", NO_MANAGED_FIELDS, spec, {})


def validating(name: str, spec: Json) -> list[Json]:
    """Return a policy that rejects writes, and its binding."""
    return _policy("ValidatingAdmissionPolicy", name, spec, {"validationActions": ["Deny"]})


def _policy(kind: str, name: str, spec: Json, bound: Json) -> list[Json]:
    known = {"apiVersion": "admissionregistration.k8s.io/v1"}
    metadata = {"name": name}
    return [
        {**known, "kind": kind, "metadata": metadata, "spec": spec},
        {**known, "kind": f"{kind}Binding", "metadata": metadata, "spec": {"policyName": name, **bound}},
    ]
