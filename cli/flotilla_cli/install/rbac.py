"""Who may do what: one ServiceAccount per service, with exactly the verbs that it uses (DESIGN §1).

Names that scripts know from the reference are kept where the thing exists (install.md §1): `kruise-manager-role` is the
one that users extend with their own workload kinds; it comes without rules, and later installations leave its rules
alone.
"""

from collections.abc import Iterable, Sequence

from flotilla_cli.install.kind_roles import converted, view_role
from flotilla_common.api.documents import Json
from flotilla_common.api.webhooks import MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION

NAMESPACE = "kruise-system"
SERVICES = ("watcher", "cloneset", "jobs", "webhook")
AGENT = "nodeagent"
SECRETS_NAMESPACE = "kruise-daemon-config"
"""Where copies of pull secrets lie (imagepull.md §6)."""

_GROUP = "rbac.authorization.k8s.io"
_READ = ("get", "list", "watch")
_JOBS = ("containerrecreaterequests", "imagelistpulljobs", "imagepulljobs", "nodeimages")
_CERTIFICATES = "kruise-webhook-certs"


def account(service: str) -> str:
    """The ServiceAccount of a service."""
    return f"flotilla-{service}"


def objects() -> list[Json]:
    """All accounts, roles and bindings."""
    return [*_accounts(), _agents_account(), *_cluster_wide(), *_own_namespace(), view_role()]


def _accounts() -> list[Json]:
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account(service), "namespace": NAMESPACE}}
        for service in SERVICES
    ]


def _agents_account() -> Json:
    """Of the node agents: an identity for the bus, without any right to the apiserver (nobody binds a role to it)."""
    meta = {"name": account(AGENT), "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, "automountServiceAccountToken": False}


def _cluster_wide() -> Iterable[Json]:
    rules_of = {"watcher": _watcher(), "cloneset": _cloneset(), "jobs": _jobs(), "webhook": _webhook()}
    for service, rules in rules_of.items():
        yield _role(f"flotilla-{service}", rules)
        yield _binding(f"flotilla-{service}", f"flotilla-{service}", [service])
    yield _role("kruise-manager-role", None)
    yield _binding("kruise-manager-rolebinding", "kruise-manager-role", SERVICES)


def _own_namespace() -> Iterable[Json]:
    leases = [_rule("coordination.k8s.io", ["leases"], "create", "delete", "get", "list", "patch", "update", "watch")]
    yield _role("kruise-leader-election-role", leases, NAMESPACE)
    yield _binding("kruise-leader-election-rolebinding", "kruise-leader-election-role", SERVICES, NAMESPACE)
    webhook = [
        _rule("", ["secrets"], "create", *_READ),  # a watch cannot be granted for one name
        _rule("", ["secrets"], "update", names=[_CERTIFICATES]),
        _rule("", ["configmaps"], *_READ),
    ]
    yield _role("kruise-webhook-role", webhook, NAMESPACE)
    yield _binding("kruise-webhook-rolebinding", "kruise-webhook-role", ["webhook"], NAMESPACE)
    copies = [_rule("", ["secrets"], "create", "delete", *_READ, "patch")]
    yield _role("kruise-daemon-secret-role", copies, SECRETS_NAMESPACE)
    yield _binding("kruise-daemon-secret-rolebinding", "kruise-daemon-secret-role", ["jobs"], SECRETS_NAMESPACE)


def _watcher() -> list[Json]:
    return [
        _rule("", ["namespaces", "nodes", "persistentvolumeclaims", "pods"], *_READ),
        _rule("apps", ["controllerrevisions"], *_READ),
        _rule("apps.kruise.io", ["clonesets", *_JOBS], *_READ),
        _rule("authentication.k8s.io", ["tokenreviews"], "create"),  # who a node agent is
    ]


def _cloneset() -> list[Json]:
    return [
        _rule("", ["pods"], "create", "delete", *_READ, "patch"),
        _rule("", ["pods/status"], "patch"),
        _rule("", ["pods/resize"], "patch"),
        _rule("", ["persistentvolumeclaims"], "create", "delete", *_READ, "patch"),
        _rule("", ["nodes"], *_READ),
        _rule("", ["events"], "create", "patch"),
        _rule("apps", ["controllerrevisions"], "create", "delete", *_READ, "patch", "update"),
        _rule("apps.kruise.io", ["clonesets"], *_READ, "patch"),
        _rule("apps.kruise.io", ["clonesets/status"], "patch"),
        _rule("apps.kruise.io", ["clonesets/finalizers"], "update"),  # to own objects with blockOwnerDeletion
        _rule("apps.kruise.io", ["imagepulljobs"], "create", "delete", *_READ),  # images pulled ahead of updates
    ]


def _jobs() -> list[Json]:
    return [
        _rule("", ["nodes", "pods"], *_READ),
        _rule("", ["pods/status"], "patch"),  # pods that are kept not ready, what agents tell of containers
        _rule("", ["secrets"], "get"),  # pull secrets, by the names that jobs give; never a list of them
        _rule("", ["events"], "create", "patch"),
        _rule("apps.kruise.io", ["imagepulljobs", "nodeimages"], "create", "delete", *_READ, "patch"),
        _rule("apps.kruise.io", ["containerrecreaterequests", "imagelistpulljobs"], "delete", *_READ, "patch"),
        _rule("apps.kruise.io", [f"{plural}/status" for plural in _JOBS], "patch"),
        _rule("apps.kruise.io", ["imagelistpulljobs/finalizers"], "update"),  # to own jobs with blockOwnerDeletion
    ]


def _webhook() -> list[Json]:
    configurations = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
    named = [MUTATING_CONFIGURATION, VALIDATING_CONFIGURATION]
    return [
        _rule("*", ["*"], "list"),  # deletion protection of CRDs and namespaces: is anything left inside?
        _rule("", ["nodes", "pods"], "get"),  # the containers that a ContainerRecreateRequest means, pods to delete
        _rule("", ["podtemplates"], "create"),  # dry runs: the apiserver itself judges pod templates
        _rule("admissionregistration.k8s.io", configurations, *_READ),
        _rule("admissionregistration.k8s.io", configurations, "update", names=named),
        _rule("apiextensions.k8s.io", ["customresourcedefinitions"], *_READ),
        _rule("apiextensions.k8s.io", ["customresourcedefinitions"], "patch", names=converted()),
    ]


def _rule(group: str, resources: Sequence[str], *verbs: str, names: Sequence[str] = ()) -> Json:
    rule: Json = {"apiGroups": [group], "resources": list(resources), "verbs": sorted(verbs)}
    return rule | ({"resourceNames": list(names)} if names else {})


def _role(name: str, rules: list[Json] | None, namespace: str = "") -> Json:
    role = _object("Role" if namespace else "ClusterRole", name, namespace)
    return role if rules is None else role | {"rules": rules}


def _binding(name: str, role: str, services: Sequence[str], namespace: str = "") -> Json:
    reference = {"apiGroup": _GROUP, "kind": "Role" if namespace else "ClusterRole", "name": role}
    subjects = [{"kind": "ServiceAccount", "name": account(one), "namespace": NAMESPACE} for one in services]
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    return _object(kind, name, namespace) | {"roleRef": reference, "subjects": subjects}


def _object(kind: str, name: str, namespace: str) -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": metadata}
