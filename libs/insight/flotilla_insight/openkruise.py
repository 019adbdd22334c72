"""An OpenKruise installation: its names (install.md §1), the marks of a migration on it, and whether it is active.

While Flotilla has the cluster, a policy of the apiserver keeps OpenKruise stopped (docs/adr/0013). It rejects what
would start OpenKruise again: another holder of Lease kruise-manager, replicas of its manager, its daemon on nodes.
"""

from datetime import datetime, timedelta

from flotilla_common.api.documents import Json, JsonValue, is_object, mappings, member, sequence, text
from flotilla_common.api.resources import LEASE, MUTATING, VALIDATING, Resource
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION
from flotilla_insight.installation.manifests import validating
from flotilla_insight.installation.objects import CLUSTER_ROLE, Place
from flotilla_insight.installation.rbac import NAMESPACE

DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
DAEMON_SET = Resource("apps", "v1", "daemonsets", "DaemonSet")

MANAGER = Place(DEPLOYMENT, NAMESPACE, "kruise-controller-manager")
DAEMON = Place(DAEMON_SET, NAMESPACE, "kruise-daemon")
LEADER = Place(LEASE, NAMESPACE, "kruise-manager")
ROLE = Place(CLUSTER_ROLE, "", "kruise-manager-role")
CONFIGURATIONS = (Place(MUTATING, "", MUTATING_CONFIGURATION), Place(VALIDATING, "", VALIDATING_CONFIGURATION))

GROUPS = ("apps.kruise.io", "policy.kruise.io")
"""API groups of its kinds."""

TAKEN = "flotilla.kruise.io/taken-over"
"""Annotation on changed objects; as a node selector it matches no node, and keeps the daemon's pods away."""

HOLDER = "flotilla"
"""Holder of Lease kruise-manager while Flotilla has the cluster."""

STANDSTILL = "flotilla-openkruise-stands-still"

_ADVICE = "this cluster was taken over by Flotilla; flotilla adopt --undo restores it"
_NOWHERE = f"'{TAKEN}' in object.spec.template.spec.?nodeSelector.orValue({{}})"
_WHOLE = "request.?subResource.orValue('') == ''"
_OUR_ACCOUNT = "object.spec.template.spec.?serviceAccountName.orValue('').startsWith('flotilla-')"


def namespaces(configuration: Json) -> set[str]:
    """Return the namespaces of the Services in a webhook configuration."""
    clients = [member(entry, "clientConfig", "service") for entry in mappings(configuration.get("webhooks"))]
    return {text(client["namespace"]) for client in clients if "namespace" in client}


def gates(manager: Json) -> str:
    """Return the feature gates in the manager's Deployment."""
    containers = mappings(member(manager, "spec", "template", "spec").get("containers"))
    words = [word for one in containers for key in ("command", "args") for word in map(text, sequence(one.get(key)))]
    flag = "--feature-gates="
    return next((word.removeprefix(flag) for word in words if word.startswith(flag)), "")


def is_theirs(workload: Json) -> bool:
    """Report whether a workload with OpenKruise's name is OpenKruise's, and not that of Flotilla's chart."""
    account = text(member(workload, "spec", "template", "spec").get("serviceAccountName"))
    return not account.startswith("flotilla-")


def held_by(lease: Json, now: datetime) -> str:
    """Return the holder of the lease that still renews it; empty if none does, or Flotilla."""
    spec = member(lease, "spec")
    holder, renewed = text(spec.get("holderIdentity")), text(spec.get("renewTime"))
    if holder in ("", HOLDER) or not renewed:
        return ""
    lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return holder if datetime.fromisoformat(renewed) + lasts > now else ""


def at_work(lease: Json, manager: Json, now: datetime) -> str:
    """Return the evidence that OpenKruise is active; empty if it is not.

    Its lease may be free for a moment between two managers, and its manager may run outside its Deployment.
    """
    if holder := held_by(lease, now):
        return f"{holder} holds {LEADER}"
    replicas = member(manager, "spec").get("replicas", 1) if manager and is_theirs(manager) else 0
    return f"{MANAGER} has {replicas} replicas" if replicas else ""


def standstill() -> list[Json]:
    """Return the policy that keeps OpenKruise stopped, and its binding."""
    names = ((LEADER, ""), (MANAGER, ""), (MANAGER, "/scale"), (DAEMON, ""))
    rules = [
        {
            "apiGroups": [place.resource.group],
            "apiVersions": ["*"],
            "resources": [f"{place.resource.plural}{subresource}"],
            "resourceNames": [place.name],
            "operations": ["CREATE", "UPDATE"],
        }
        for place, subresource in names
    ]
    here = {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}
    checks = [
        _only("leases", f"object.spec.?holderIdentity.orValue('') in ['', '{HOLDER}']", "no other holder may take it"),
        _only(
            "deployments",
            f"object.spec.?replicas.orValue(1) == 0 || {_WHOLE} && {_OUR_ACCOUNT}",
            "its manager stays at 0",
        ),
        _only("daemonsets", f"{_NOWHERE} || {_OUR_ACCOUNT}", "its daemon stays off the nodes"),
    ]
    constraints = {"namespaceSelector": here, "resourceRules": rules}
    return validating(STANDSTILL, {"matchConstraints": constraints, "validations": checks, "failurePolicy": "Fail"})


def covers(live: JsonValue, wanted: JsonValue) -> bool:
    """Report whether the live document contains all of the wanted one; the apiserver adds defaults."""
    if is_object(live) and is_object(wanted):
        return all(key in live and covers(live[key], value) for key, value in wanted.items())
    if isinstance(live, list) and isinstance(wanted, list):
        return len(live) == len(wanted) and all(map(covers, live, wanted))
    return live == wanted


def _only(plural: str, expression: str, message: str) -> Json:
    return {
        "expression": f"request.resource.resource != '{plural}' || {expression}",
        "message": f"{message}: {_ADVICE}",
    }
