"""The webhook entries of the two configuration objects (webhooks.md §2, §3).

Scope follows need: an entry stands here only while something makes it necessary, and the one in the path of pods is
narrowed as far as the apiserver can. Every member is written out, so that a stored entry can be compared with a wanted
one.
"""

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from flotilla_common.api.documents import Json, mappings, member, sequence, text
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.gates import Gates

NAMESPACE = "kruise-system"
SERVICE = "kruise-webhook-service"
MUTATING_CONFIGURATION = "kruise-mutating-webhook-configuration"
VALIDATING_CONFIGURATION = "kruise-validating-webhook-configuration"
DELETE_PROTECTION = "policy.kruise.io/delete-protection"
COUNTED_LABEL = "policy.kruise.io/aggregate-to-crd-protection"
"""`true` on a ClusterRole: the webhook may do what it allows, to count what is left of a protected CRD."""
CONVERT_PATH = "/convert"
POD_ENTRY, POD_PATH = "mpod.kb.io", "/mutate-pod"
PROBE = "flotilla-pod-rule-"
"""What the names of objects begin with that are created, as a dry run, to see which pod rules are in use."""
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""The label of every namespace with its name."""

_TIMEOUT_SECONDS = 30
_NOT_KUBE_SYSTEM = {"key": NAMESPACE_NAME, "operator": "NotIn", "values": ["kube-system"]}
# The system's own namespace carries this label: its pods must start while the webhook is down.
_NOT_OURS = {"key": "control-plane", "operator": "NotIn", "values": ["openkruise"]}


class PodRule(msgspec.Struct, frozen=True):
    """Which pods one step of the pod webhook has to see."""

    name: str  # of the condition, in lower case
    expression: str  # CEL, over `object`
    namespaces: frozenset[str] | None = None  # None: all but the system's
    probed: bool = False  # somebody waits until the apiserver uses the rule


LACKS_READINESS_GATE = PodRule(
    "lacks-kruise-pod-ready",
    "!has(object.spec.readinessGates) || !object.spec.readinessGates.exists(g, g.conditionType == 'KruisePodReady')",
)
"""Pods that have the gate already are kept off the wire."""


def mutating_entries(gates: Gates) -> list[Json]:
    """The mutating entries that the gates call for, without caBundle, reached through the Service."""
    entries = _kind_entries("mutate")
    if gates.on("KruisePodReadinessGate"):
        entries.insert(0, pod_entry((LACKS_READINESS_GATE,)))
    return entries


def validating_entries(gates: Gates) -> list[Json]:
    """The validating entries that the gates call for, without caBundle, reached through the Service."""
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
    """The entry with its CA (base64), called at `url` (https://host:port) instead of the Service if one is given."""
    client: Json = {"url": url + path_of(entry)} if url else member(entry, "clientConfig")
    return entry | {"clientConfig": client | {"caBundle": ca_bundle}}


def path_of(entry: Json) -> str:
    """The HTTP path that the entry calls; empty if it names none."""
    client = member(entry, "clientConfig")
    if url := text(client.get("url")):
        return "/" + url.partition("://")[2].partition("/")[2]
    return text(member(client, "service").get("path"))


def paths(kind: Kind, verb: str) -> tuple[str, ...]:
    """The paths of a kind's webhook. The first is the one that its entry calls."""
    group, admission = kind.resource.group.replace(".", "-"), kind.rules().admission
    plain, old = f"/{verb}-{group}-{kind.singular}", f"/{verb}-{group}-v1alpha1-{kind.singular}"
    if admission.calls_old_path:
        return (old,)
    return (plain, old) if admission.old_paths else (plain,)


def _kind_entries(verb: str) -> list[Json]:
    """The entries of all kinds that have a webhook for the verb, `mutate` or `validate`."""
    found: list[Json] = []
    for kind in catalogue.KINDS:
        admission, resource = kind.rules().admission, kind.resource
        if verb in admission.handlers:
            rule = _rule(resource.group, kind.versions, resource.plural, *admission.operations(verb))
            entry = _entry(f"{verb[0]}{admission.name or kind.singular}.kb.io", paths(kind, verb)[0], rule)
            found.append(
                entry | {"sideEffects": "NoneOnDryRun"} if admission.arms_pods and verb == "validate" else entry
            )
    return found


def pod_entry(rules: Sequence[PodRule]) -> Json:
    """The entry in the path of pods: it asks about those that some step has to see. Where steps need different
    namespaces, pods of all these are asked about; each step judges for itself again."""
    within = [rule.namespaces for rule in rules if rule.namespaces is not None]
    selector: list[Json] = [_NOT_OURS, _NOT_KUBE_SYSTEM]
    if len(within) == len(rules):
        selector.append({"key": NAMESPACE_NAME, "operator": "In", "values": sorted(frozenset[str]().union(*within))})
    name = rules[0].name if len(rules) == 1 else "seen-by-some-step"
    condition = " || ".join(f"({rule.expression})" for rule in rules) if rules[1:] else rules[0].expression
    asked = [_rule("", ("v1",), "pods", "CREATE")]
    if any(rule.probed for rule in rules):
        asked.append(_rule("", ("v1",), "podtemplates", "CREATE"))
        probe = f"has(object.metadata.name) && object.metadata.name == '{probe_name(rules)}'"
        condition = f"request.resource.resource == 'podtemplates' ? {probe} : ({condition})"
    return _entry(POD_ENTRY, POD_PATH, *asked) | {
        "namespaceSelector": {"matchExpressions": selector},
        "matchConditions": [{"name": name, "expression": condition}],
    }


def probe_name(rules: Sequence[PodRule]) -> str:
    """The name of the object that the entry of these rules lets through, so that somebody can see that the apiserver
    uses them. It says which rules; that a namespace is among theirs shows by itself."""
    said = "\n".join(f"{rule.name} {rule.expression}" for rule in rules)
    return f"{PROBE}{sha256(said.encode()).hexdigest()[:10]}"


def namespaces_of(entry: Json) -> frozenset[str]:
    """The namespaces that a pod entry asks about; none if it names none."""
    selector = mappings(member(entry, "namespaceSelector").get("matchExpressions"))
    named = [one.get("values") for one in selector if (one.get("key"), one.get("operator")) == (NAMESPACE_NAME, "In")]
    return frozenset(text(name) for values in named for name in sequence(values))


def _protection(name: str, path: str, group: str, resource: str, versions: tuple[str, ...] = ("v1",)) -> Json:
    """Only labelled objects are asked about, and an outage of the webhook never blocks a deletion."""
    return _entry(name, path, _rule(group, versions, resource, "DELETE")) | {
        "failurePolicy": "Ignore",
        "namespaceSelector": {"matchExpressions": [_NOT_KUBE_SYSTEM]},
        "objectSelector": {"matchExpressions": [{"key": DELETE_PROTECTION, "operator": "Exists"}]},
    }


def _rule(group: str, versions: tuple[str, ...], resource: str, *operations: str) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "resources": [resource],
        "operations": list(operations),
        "scope": "*",
    }


def _entry(name: str, path: str, *rules: Json) -> Json:
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
