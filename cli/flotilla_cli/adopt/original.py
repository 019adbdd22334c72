"""An OpenKruise installation: its names (install.md §1), the marks of a take-over on it, and whether it works."""

from datetime import datetime, timedelta

from flotilla_cli.install.kinds import CLUSTER_ROLE, Place
from flotilla_cli.install.rbac import NAMESPACE
from flotilla_common.api.documents import Json, mappings, member, sequence, text
from flotilla_common.api.resources import LEASE, MUTATING, VALIDATING, Resource
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION

DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
DAEMON_SET = Resource("apps", "v1", "daemonsets", "DaemonSet")

MANAGER = Place(DEPLOYMENT, NAMESPACE, "kruise-controller-manager")
DAEMON = Place(DAEMON_SET, NAMESPACE, "kruise-daemon")
LEADER = Place(LEASE, NAMESPACE, "kruise-manager")
ROLE = Place(CLUSTER_ROLE, "", "kruise-manager-role")
CONFIGURATIONS = (Place(MUTATING, "", MUTATING_CONFIGURATION), Place(VALIDATING, "", VALIDATING_CONFIGURATION))

GROUPS = ("apps.kruise.io", "policy.kruise.io")
"""Of its kinds."""

TAKEN = "flotilla.kruise.io/taken-over"
"""An annotation on what was changed; as a node label it is one that no node has, and keeps the daemon's pods away."""

HOLDER = "flotilla"
"""Who holds Lease kruise-manager while the cluster is Flotilla's."""


def namespaces(configuration: Json) -> set[str]:
    """Where the entries of a webhook configuration have their Service."""
    clients = [member(entry, "clientConfig", "service") for entry in mappings(configuration.get("webhooks"))]
    return {text(client["namespace"]) for client in clients if "namespace" in client}


def gates(manager: Json) -> str:
    """The feature gates that its Deployment names."""
    containers = mappings(member(manager, "spec", "template", "spec").get("containers"))
    words = [word for one in containers for key in ("command", "args") for word in map(text, sequence(one.get(key)))]
    flag = "--feature-gates="
    return next((word.removeprefix(flag) for word in words if word.startswith(flag)), "")


def is_theirs(workload: Json) -> bool:
    """Whether a Deployment or DaemonSet of OpenKruise's name is not one that Flotilla's chart put in its place."""
    account = text(member(workload, "spec", "template", "spec").get("serviceAccountName"))
    return not account.startswith("flotilla-")


def held_by(lease: Json, now: datetime) -> str:
    """Return who holds the lease and still renews it; empty when only Flotilla does."""
    spec = member(lease, "spec")
    holder, renewed = text(spec.get("holderIdentity")), text(spec.get("renewTime"))
    if holder in ("", HOLDER) or not renewed:
        return ""
    lasts = timedelta(seconds=spec.get("leaseDurationSeconds") or 0)
    return holder if datetime.fromisoformat(renewed) + lasts > now else ""


def at_work(lease: Json, manager: Json, now: datetime) -> str:
    """By what one sees that OpenKruise works; empty when it does not. Its lease may be free for a moment while one
    manager follows another, and its manager may run elsewhere than in its Deployment."""
    if holder := held_by(lease, now):
        return f"{holder} holds {LEADER}"
    replicas = member(manager, "spec").get("replicas", 1) if manager and is_theirs(manager) else 0
    return f"{MANAGER} has {replicas} replicas" if replicas else ""
