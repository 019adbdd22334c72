"""The names of an OpenKruise installation (install.md §1), and the marks that a take-over leaves on it."""

from flotilla_cli.install.kinds import Place
from flotilla_cli.install.rbac import NAMESPACE
from flotilla_common.api.documents import Json, member, text
from flotilla_common.api.resources import LEASE, MUTATING, VALIDATING, Resource
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION

DEPLOYMENT = Resource("apps", "v1", "deployments", "Deployment")
DAEMON_SET = Resource("apps", "v1", "daemonsets", "DaemonSet")
CLUSTER_ROLE = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)

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


def is_theirs(workload: Json) -> bool:
    """Whether a Deployment or DaemonSet of OpenKruise's name is not one that Flotilla's chart put in its place."""
    account = text(member(workload, "spec", "template", "spec").get("serviceAccountName"))
    return not account.startswith("flotilla-")
