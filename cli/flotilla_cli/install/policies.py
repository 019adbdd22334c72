"""A policy of the apiserver: pods of our workloads are created without `metadata.managedFields` (docs/adr/0008).

The record of who set which field is most of what a small patch of a pod costs the apiserver, and it is kept from the
first write of an object on, or not at all. Only admission can leave it out of a new pod, and a policy does so inside
the apiserver, without a webhook in the path of pods. A pod that somebody makes with server-side apply keeps it.
"""

from flotilla_common.api.documents import Json
from flotilla_common.api.keys import REVISION_LABEL

NAME = "flotilla-pods-without-managed-fields"

_TRACKED = "has(object.metadata.managedFields)"
_APPLIED = "object.metadata.managedFields.exists(entry, entry.operation == 'Apply')"
_OURS = (
    "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, "
    "has(owner.controller) && owner.controller && owner.apiVersion.startsWith('apps.kruise.io/'))"
)


def objects() -> list[Json]:
    """The policy and its binding, which Kubernetes serves from 1.36 on."""
    return [_policy(), _object("MutatingAdmissionPolicyBinding") | {"spec": {"policyName": NAME}}]


def _policy() -> Json:
    # All pods with revisions, built-in workloads' too: the expressions are asked about no others.
    revised = {"matchExpressions": [{"key": REVISION_LABEL, "operator": "Exists"}]}
    created = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    conditions = [
        {"name": "of-our-workloads", "expression": _OURS},
        {"name": "not-applied", "expression": f"{_TRACKED} && !{_APPLIED}"},
    ]
    remove = "[JSONPatch{op: 'remove', path: '/metadata/managedFields'}]"
    return _object("MutatingAdmissionPolicy") | {
        "spec": {
            "matchConstraints": {"objectSelector": revised, "resourceRules": [created]},
            "matchConditions": conditions,
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": remove}}],
            "failurePolicy": "Ignore",  # a pod with managedFields is only dearer
            "reinvocationPolicy": "Never",
        }
    }


def _object(kind: str) -> Json:
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}}
