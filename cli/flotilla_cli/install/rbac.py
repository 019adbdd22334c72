"""Who may do what: one ServiceAccount per service, with exactly the verbs that it declares (DESIGN §1).

Names that scripts know from the reference are kept where the thing exists (install.md §1): `kruise-manager-role` is the
one that users extend with their own workload kinds; it comes without rules, and later installations leave its rules
alone. `flotilla-crd-protection` collects the rules of all roles with its label: by them the webhook counts what is left
of other people's CRDs (docs/adr/0012).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from flotilla_cli.install import kind_roles
from flotilla_cli.services import load_all
from flotilla_common.access import LEASES, OWN_NAMESPACE
from flotilla_common.api.documents import Json
from flotilla_common.api.resources import SECRET
from flotilla_common.api.webhooks import COUNTED_LABEL
from flotilla_common.control.watches import Access
from flotilla_common.gates import Gates

NAMESPACE = "kruise-system"
AGENT = "nodeagent"
COMPACT = "compact"
"""Stands for all services where one process runs them (the chart's profile of that name)."""
SECRETS_NAMESPACE = "kruise-daemon-config"
"""Where copies of pull secrets lie (imagepull.md §6)."""

DISTRIBUTION = "flotilla-sidecar-secrets"
"""The role, and its binding, by which Secrets are distributed (resourcedistribution.md)."""
DISTRIBUTION_GATE = "ResourceDistributionGate"
_DISTRIBUTING = "sidecar"

CRD_PROTECTION = "flotilla-crd-protection"
"""What the webhook may list beyond what it declares, and its binding."""

_GROUP = "rbac.authorization.k8s.io"
_NAMESPACES = {OWN_NAMESPACE: NAMESPACE, "daemon_config_namespace": SECRETS_NAMESPACE}
"""By the setting that names them."""

_KNOWN_ROLES = {("webhook", NAMESPACE): "kruise-webhook", ("jobs", SECRETS_NAMESPACE): "kruise-daemon-secret"}
"""Roles of one service in one namespace that the reference has, too: the beginning of their names."""


def account(service: str) -> str:
    """The ServiceAccount of a service."""
    return f"flotilla-{service}"


def services() -> Sequence[str]:
    """The services that have rights."""
    return tuple(_access())


def objects(gates: Gates | None = None) -> list[Json]:
    """All accounts, roles and bindings; of what a gate switches off, none (without gates all are on)."""
    distributing = [] if gates is not None and not gates.on(DISTRIBUTION_GATE) else _distributing()
    return [
        *_accounts(),
        _agents_account(),
        *_cluster_wide(),
        *distributing,
        *_in_namespaces(),
        *kind_roles.objects(),
    ]


def _access() -> dict[str, tuple[Access, ...]]:
    return {service.name: service.access for service in load_all() if service.access}


def _accounts() -> list[Json]:
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account(service), "namespace": NAMESPACE}}
        for service in services()
    ]


def _agents_account() -> Json:
    """Of the node agents: an identity for the bus, without any right to the apiserver (nobody binds a role to it)."""
    meta = {"name": account(AGENT), "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta, "automountServiceAccountToken": False}


def _cluster_wide() -> Iterable[Json]:
    for service, access in _access().items():
        everywhere = (one for one in access if not one.namespace and not _of_secrets(service, one))
        yield _role(account(service), _rules(everywhere))
        yield _binding(account(service), account(service), [service])
    yield _role("kruise-manager-role", None)
    yield _binding("kruise-manager-rolebinding", "kruise-manager-role", services())
    selector = {"matchLabels": {COUNTED_LABEL: "true"}}
    yield _role(CRD_PROTECTION, None) | {"aggregationRule": {"clusterRoleSelectors": [selector]}}
    yield _binding(CRD_PROTECTION, CRD_PROTECTION, ["webhook"])


def _distributing() -> list[Json]:
    """Return the right to the Secrets of all namespaces, by itself: an installation may leave it out."""
    rules = _rules(one for one in _access()[_DISTRIBUTING] if _of_secrets(_DISTRIBUTING, one))
    return [_role(DISTRIBUTION, rules), _binding(DISTRIBUTION, DISTRIBUTION, [_DISTRIBUTING])]


def _of_secrets(service: str, access: Access) -> bool:
    return service == _DISTRIBUTING and access.resource == SECRET and not access.namespace


def _in_namespaces() -> Iterable[Json]:
    electing = [service for service, access in _access().items() if LEASES in access]
    yield _role("kruise-leader-election-role", _rules([LEASES]), NAMESPACE)
    yield _binding("kruise-leader-election-rolebinding", "kruise-leader-election-role", electing, NAMESPACE)
    for service, access in _access().items():
        for setting, namespace in _NAMESPACES.items():
            rules = _rules(one for one in access if one.namespace == setting and one != LEASES)
            if rules:
                name = _KNOWN_ROLES.get((service, namespace), account(service))
                yield _role(f"{name}-role", rules, namespace)
                yield _binding(f"{name}-rolebinding", f"{name}-role", [service], namespace)


def _rules(access: Iterable[Access]) -> list[Json]:
    """One rule for each group, set of verbs and set of names, so that a role reads like a table."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for one in access:
        resource = f"{one.resource.plural}/{one.subresource}" if one.subresource else one.resource.plural
        verbs[one.resource.group, resource, one.names].update(one.verbs)
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource, names), allowed in sorted(verbs.items()):
        alike[group, tuple(sorted(allowed)), names].append(resource)
    return [
        {"apiGroups": [group], "resources": resources, "verbs": list(allowed)}
        | ({"resourceNames": list(names)} if names else {})
        for (group, allowed, names), resources in alike.items()
    ]


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
