"""A policy of the apiserver: each service writes its own leases, and no other's.

Who holds a lease writes. With another service's leases one could have its work done by nobody, or by two at once. Roles
cannot say whose a lease is: a right to create knows no names, and the leases by which replicas show that they are there
are named after replicas. A policy can, because leases are named after their service (`control/shards.py`).
"""

from flotilla_cli.install.rbac import COMPACT, NAMESPACE, account
from flotilla_common.api.documents import Json
from flotilla_common.api.resources import LEASE

NAME = "flotilla-leases-of-their-own"

_USER = "request.userInfo.username"
_ACCOUNTS = f"system:serviceaccount:{NAMESPACE}:{account('')}"
_LEASE = "(request.operation == 'DELETE' ? oldObject : object).metadata.name"
_OWN = f"{_LEASE}.startsWith({_USER}.split(':')[3] + '-')"
_OF_ALL = f"{_USER} == '{_ACCOUNTS}{COMPACT}'"
"""One process that runs all services has the leases of all."""


def objects() -> list[Json]:
    """The policy and its binding."""
    binding = _object("ValidatingAdmissionPolicyBinding")
    return [_policy(), binding | {"spec": {"policyName": NAME, "validationActions": ["Deny"]}}]


def _policy() -> Json:
    written = {
        "apiGroups": [LEASE.group],
        "apiVersions": ["*"],
        "resources": [LEASE.plural],
        "operations": ["CREATE", "UPDATE", "DELETE"],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}
    return _object("ValidatingAdmissionPolicy") | {
        "spec": {
            "matchConstraints": {"namespaceSelector": here, "resourceRules": [written]},
            "matchConditions": [{"name": "by-a-service", "expression": f"{_USER}.startsWith('{_ACCOUNTS}')"}],
            "validations": [
                {"expression": f"{_OWN} || {_OF_ALL}", "message": "a service may write its own leases only"}
            ],
            "failurePolicy": "Fail",
        }
    }


def _object(kind: str) -> Json:
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}}
