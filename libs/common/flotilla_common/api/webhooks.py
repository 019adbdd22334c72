"""Builds the webhook entries of the two configuration objects (webhooks.md §2, §3).

Scope follows need: only labelled objects are sent before their deletion, and the entries for pods are made from rules
(`podrules`). Every member is set, so that a stored entry can be compared with a wanted one.
"""

from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.gates import Gates

NAMESPACE = "kruise-system"
SERVICE = "kruise-webhook-service"
MUTATING_CONFIGURATION = "kruise-mutating-webhook-configuration"
VALIDATING_CONFIGURATION = "kruise-validating-webhook-configuration"
DELETE_PROTECTION = "policy.kruise.io/delete-protection"
COUNTED_LABEL = "policy.kruise.io/aggregate-to-crd-protection"
"""The label of ClusterRoles that, if `true`, let the webhook count the objects of a protected CRD."""
CONVERT_PATH = "/convert"
POD_ENTRY, POD_PATH = "mpod.kb.io", "/mutate-pod"
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label that every namespace has with its name."""

_TIMEOUT_SECONDS = 30
NOT_KUBE_SYSTEM = {"key": NAMESPACE_NAME, "operator": "NotIn", "values": ["kube-system"]}
# The system's own namespace carries this label: its pods must start while the webhook is down.
NOT_OURS = {"key": "control-plane", "operator": "NotIn", "values": ["openkruise"]}


def mutating_entries() -> list[Json]:
    """Return the mutating entries, without caBundle, reached through the Service."""
    return _kind_entries("mutate")


def validating_entries(gates: Gates) -> list[Json]:
    """Return the validating entries that the gates require, without caBundle, reached through the Service."""
    entries = _kind_entries("validate")
    entries += [
        _protection("vbuiltindeployment.kb.io", "/validate-apps-deployment", "apps", "deployments"),
        _protection("vbuiltinreplicaset.kb.io", "/validate-apps-replicaset", "apps", "replicasets"),
        _protection("vbuiltinstatefulset.kb.io", "/validate-apps-statefulset", "apps", "statefulsets"),
        _protection(
            "vcustomresourcedefinition.kb.io",
            "/validate-customresourcedefinition",
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            ("v1", "v1beta1"),
        ),
        _protection("vnamespace.kb.io", "/validate-namespace", "", "namespaces"),
    ]
    if gates.on("ResourcesDeletionProtection"):
        entries += [
            _protection("vingress.kb.io", "/validate-ingress", "networking.k8s.io", "ingresses", ("v1", "v1beta1")),
            _protection("vservice.kb.io", "/validate-service", "", "services"),
        ]
    return entries


def bound(entry: Json, ca_bundle: str, url: str = "") -> Json:
    """Return the entry with its CA (base64), called at `url` (https://host:port) if given, else through the Service."""
    client: Json = {"url": url + path_of(entry)} if url else member(entry, "clientConfig")
    return entry | {"clientConfig": client | {"caBundle": ca_bundle}}


def path_of(entry: Json) -> str:
    """Return the HTTP path that the entry calls, or an empty text."""
    client = member(entry, "clientConfig")
    if url := text(client.get("url")):
        return "/" + url.partition("://")[2].partition("/")[2]
    return text(member(client, "service").get("path"))


def paths(kind: Kind, verb: str) -> tuple[str, ...]:
    """Return the paths of a kind's webhook. The entry calls the first one."""
    group, admission = kind.resource.group.replace(".", "-"), kind.rules().admission
    plain, old = f"/{verb}-{group}-{kind.singular}", f"/{verb}-{group}-v1alpha1-{kind.singular}"
    if admission.calls_old_path:
        return (old,)
    return (plain, old) if admission.old_paths else (plain,)


def _kind_entries(verb: str) -> list[Json]:
    """Return the entries of all kinds that have a webhook for the verb, `mutate` or `validate`."""
    found: list[Json] = []
    for kind in catalogue.KINDS:
        admission, resource = kind.rules().admission, kind.resource
        if verb in admission.handlers:
            rule = rule_of(resource.group, kind.versions, resource.plural, *admission.operations(verb))
            entry = entry_of(f"{verb[0]}{admission.name or kind.singular}.kb.io", paths(kind, verb)[0], rule)
            found.append(
                entry | {"sideEffects": "NoneOnDryRun"} if admission.arms_pods and verb == "validate" else entry
            )
    return found


def _protection(name: str, path: str, group: str, resource: str, versions: tuple[str, ...] = ("v1",)) -> Json:
    """Return an entry for deletions of labelled objects, which a webhook outage never blocks."""
    return entry_of(name, path, rule_of(group, versions, resource, "DELETE")) | {
        "failurePolicy": "Ignore",
        "namespaceSelector": {"matchExpressions": [NOT_KUBE_SYSTEM]},
        "objectSelector": {"matchExpressions": [{"key": DELETE_PROTECTION, "operator": "Exists"}]},
    }


def rule_of(group: str, versions: tuple[str, ...], resource: str, *operations: str) -> Json:
    """Return a rule of an entry: these operations on a resource."""
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "resources": [resource],
        "operations": list(operations),
        "scope": "*",
    }


def entry_of(name: str, path: str, *rules: Json) -> Json:
    """Return an entry with every member set, for all objects of its rules."""
    entry: Json = {
        "name": name,
        "clientConfig": {"service": {"path": path, "port": 443, "namespace": NAMESPACE, "name": SERVICE}},
        "rules": list(rules),
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "sideEffects": "None",
        "timeoutSeconds": _TIMEOUT_SECONDS,
        "admissionReviewVersions": ["v1", "v1beta1"],
    }
    return entry | ({"reinvocationPolicy": "Never"} if name.startswith("m") else {})
