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
"""One process that runs all services has the leases of all."""

_TRACKED = "has(object.metadata.managedFields)"
_APPLIED = "object.metadata.managedFields.exists(entry, entry.operation == 'Apply')"
_OURS = (
    "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, "
    "has(owner.controller) && owner.controller && owner.apiVersion.startsWith('apps.kruise.io/'))"
)


def own_leases() -> list[Json]:
    """Each service writes its own leases, and no other's: the policy and its binding.

    Who holds a lease writes. With another service's leases one could have its work done by nobody, or by two at once.
    Roles cannot say whose a lease is: a right to create knows no names, and the leases by which replicas show that they
    are there are named after replicas. A policy can, because leases are named after their service
    (`control/shards.py`).
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
    """Pods of our workloads are created without `metadata.managedFields` (docs/adr/0008): the policy and its binding,
    which Kubernetes serves from 1.36 on.

    The record of who set which field is most of what a small patch of a pod costs the apiserver, and it is kept from
    the first write of an object on, or not at all. Only admission can leave it out of a new pod, and a policy does so
    inside the apiserver, without a webhook in the path of pods. A pod that somebody makes with server-side apply keeps
    it.
    """
    # All pods with revisions, built-in workloads' too: the expressions are asked about no others.
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
        "failurePolicy": "Ignore",  # a pod with managedFields is only dearer
        "reinvocationPolicy": "Never",
    }
    return _policy("MutatingAdmissionPolicy", NO_MANAGED_FIELDS, spec, {})


def validating(name: str, spec: Json) -> list[Json]:
    """A policy that refuses writes, and its binding."""
    return _policy("ValidatingAdmissionPolicy", name, spec, {"validationActions": ["Deny"]})


def _policy(kind: str, name: str, spec: Json, bound: Json) -> list[Json]:
    known = {"apiVersion": "admissionregistration.k8s.io/v1"}
    metadata = {"name": name}
    return [
        {**known, "kind": kind, "metadata": metadata, "spec": spec},
        {**known, "kind": f"{kind}Binding", "metadata": metadata, "spec": {"policyName": name, **bound}},
    ]
