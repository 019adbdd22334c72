"""All objects of `flotilla install`, in the order in which they are applied (install.md §1).

The webhook configurations come last: from then on the apiserver calls the webhook. Certificates are not here: the
webhook writes its own into Secret, configurations and CRDs. Policies of the apiserver are for leases of services,
and for `metadata.managedFields` of new pods.
"""

from collections.abc import Sequence

import msgspec

from flotilla_common.api import crds
from flotilla_common.api.documents import Json
from flotilla_common.api.keys import REVISION_LABEL
from flotilla_common.api.resources import LEASE
from flotilla_common.api.webhooks import (
    CONVERT_PATH,
    MUTATING_CONFIGURATION,
    SERVICE,
    VALIDATING_CONFIGURATION,
    mutating_entries,
    path_of,
    validating_entries,
)
from flotilla_common.gates import Gates
from flotilla_insight.installation import endpoint, rbac

OWN_LEASES = "flotilla-leases-of-their-own"
NO_MANAGED_FIELDS = "flotilla-pods-without-managed-fields"

_USER = "request.userInfo.username"
_ACCOUNTS = f"system:serviceaccount:{rbac.NAMESPACE}:{rbac.account('')}"
_LEASE = "(request.operation == 'DELETE' ? oldObject : object).metadata.name"
_OWN = f"{_LEASE}.startsWith({_USER}.split(':')[3] + '-')"
_OF_ALL = f"{_USER} == '{_ACCOUNTS}{rbac.COMPACT}'"
"""Exempts the one process that runs all services and has all of their leases."""

_TRACKED = "has(object.metadata.managedFields)"
_APPLIED = "object.metadata.managedFields.exists(entry, entry.operation == 'Apply')"
_OURS = (
    "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(owner, "
    "has(owner.controller) && owner.controller && owner.apiVersion.startsWith('apps.kruise.io/'))"
)


def manifests(gates: Gates, webhook_url: str = "", *, keep_managed_fields: bool = False) -> list[Json]:
    """Return all objects.

    With `webhook_url` (https://host:port) the apiserver calls that instead of the Service. With `keep_managed_fields`
    there is no policy that removes those of new pods.
    """
    return [
        *_namespaces(),
        *definitions(webhook_url),
        *rbac.objects(gates),
        *own_leases(),
        _service(),
        *([] if keep_managed_fields else no_managed_fields()),
        _configuration(MUTATING_CONFIGURATION, mutating_entries(), webhook_url),
        _configuration(VALIDATING_CONFIGURATION, validating_entries(gates), webhook_url),
    ]


def definitions(webhook_url: str = "") -> list[Json]:
    """Return the CRDs."""
    found = crds.manifests()
    for definition in found if webhook_url else ():
        conversion = definition["spec"]["conversion"]
        if conversion["strategy"] == "Webhook":
            conversion["webhook"]["clientConfig"] = {"url": webhook_url + CONVERT_PATH}
    return found


def as_yaml(documents: Sequence[Json]) -> str:
    """Encode objects as one stream of YAML documents."""
    return "---\n".join(msgspec.yaml.encode(document).decode() for document in documents)


def _namespaces() -> list[Json]:
    # The label keeps the webhook out of its own namespace: its pods must start while it is down.
    own = {"name": rbac.NAMESPACE, "labels": {"control-plane": "openkruise"}}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": own},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": rbac.SECRETS_NAMESPACE}},
    ]


def _service() -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": rbac.NAMESPACE},
        "spec": {
            "selector": {"control-plane": "controller-manager"},
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 9876}],
        },
    }


def _configuration(name: str, entries: list[Json], webhook_url: str) -> Json:
    kind = "MutatingWebhookConfiguration" if name == MUTATING_CONFIGURATION else "ValidatingWebhookConfiguration"
    webhooks = entries
    if webhook_url:
        webhooks = [entry | {"clientConfig": {"url": webhook_url + path_of(entry)}} for entry in entries]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "annotations": {endpoint.TEMPLATE: endpoint.as_template(webhooks)}},
        "webhooks": webhooks,
    }


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
    here = {"matchLabels": {"kubernetes.io/metadata.name": rbac.NAMESPACE}}
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
