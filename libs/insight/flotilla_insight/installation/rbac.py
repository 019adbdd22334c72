"""RBAC: one ServiceAccount per service, with exactly the verbs that it declares (architecture.md §1).

Names that scripts use with the reference are kept (install.md §1): users extend `kruise-manager-role` for their own
workload kinds; it has no rules at first, and later installations leave its rules alone. `flotilla-crd-protection`
aggregates all roles with its label: by them the webhook counts the remaining objects of others' CRDs (docs/adr/0012).

Rights of users (install.md §1, §9): a user who may view a namespace may view our objects in it, except kinds that hold
Secrets. Two roles per kind, for editors and viewers, have no binding: administrators bind them to users.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.kind import Kind
from flotilla_common.api.resources import SECRET
from flotilla_common.api.webhooks import COUNTED_LABEL
from flotilla_common.control.spec import LEASES, OWN_NAMESPACE
from flotilla_common.control.watches import AccessRule
from flotilla_common.gates import Gates
from flotilla_common.service import Service
from flotilla_insight.services import ON_DEMAND, load_all

NAMESPACE = "kruise-system"
AGENT = "nodeagent"
COMPACT = "compact"
"""Replaces all services if one process runs them (the chart's profile of that name)."""
SECRETS_NAMESPACE = "kruise-daemon-config"
"""Namespace of the copies of pull secrets (imagepull.md §6)."""

DISTRIBUTION = "flotilla-sidecar-secrets"
"""Role and binding of the right to distribute Secrets (resourcedistribution.md)."""
DISTRIBUTION_GATE = "ResourceDistributionGate"
_DISTRIBUTING = "sidecar"

CRD_PROTECTION = "flotilla-crd-protection"
"""Role and binding of what the webhook may list beyond its declared rights."""

CONSOLE_IMPERSONATION = "flotilla-console-impersonation"
"""Role and binding of the users as whom the console may act; administrators name them."""

_AS_USER = "impersonate-on:user-info"

VIEW = ("get", "list", "watch")
EDIT = ("create", "delete", "get", "list", "patch", "update", "watch")

_GROUP = "rbac.authorization.k8s.io"
_NAMESPACES = {OWN_NAMESPACE: NAMESPACE, "daemon_config_namespace": SECRETS_NAMESPACE}
"""Namespaces by the setting that names them."""

_KNOWN_ROLES = {("webhook", NAMESPACE): "kruise-webhook", ("jobs", SECRETS_NAMESPACE): "kruise-daemon-secret"}
"""Roles of one service in one namespace that the reference has, too: the prefix of their names."""


def account(service: str) -> str:
    """Return the ServiceAccount of a service."""
    return f"flotilla-{service}"


def services() -> Sequence[str]:
    """Return the services that have rights."""
    return tuple(_access())


def _writers() -> Sequence[str]:
    """Return the services that work on objects: the rules that users add to the role are for them."""
    return [name for name in _access() if name not in ON_DEMAND]


def impersonation(service: Service) -> list[Json]:
    """Return the rules for the requests of a service as other users, for clusters with constrained impersonation.

    From Kubernetes 1.36 on the apiserver asks for them besides the right to impersonate the user. They give no right to
    an object: each request needs the user's own right, too.
    """
    verbs = {one: tuple(f"{_AS_USER}:{verb}" for verb in one.verbs) for one in service.as_users}
    return _rules(msgspec.structs.replace(one, verbs=allowed) for one, allowed in verbs.items())


def objects(gates: Gates | None = None) -> list[Json]:
    """Return all accounts, roles and bindings, without those of disabled gates (None: all gates are on)."""
    distributing = [] if gates is not None and not gates.on(DISTRIBUTION_GATE) else _distributing()
    return [
        *_accounts(),
        *_cluster_wide(),
        *distributing,
        *_in_namespaces(),
        *user_roles(),
    ]


def user_roles() -> list[Json]:
    """Return the roles for users of our kinds."""
    return [view_role(), *(role for kind in catalogue.KINDS for role in _roles_of(kind))]


def view_role() -> Json:
    """Return the part for the built-in role `view`, which shows no Secrets, and so no kind that holds them."""
    resources = sorted((kind.resource.group, kind.resource.plural) for kind in catalogue.KINDS if not kind.confidential)
    rules = [
        rule(group, [plural for _, plural in found], VIEW)
        for group, found in groupby(resources, key=lambda resource: resource[0])
    ]
    made = role("aggregate-kruise-view", rules)
    made["metadata"]["labels"] = {f"{_GROUP}/aggregate-to-view": "true"}
    return made


def _roles_of(kind: Kind) -> Iterator[Json]:
    """Yield the editors' and the viewers' role of one kind."""
    group, plural = kind.resource.group, kind.resource.plural
    for who, verbs, scaling in (("editor", EDIT, ("get", "patch", "update")), ("viewer", VIEW, ("get",))):
        rules = [rule(group, [plural], verbs), rule(group, [f"{plural}/status"], ("get",))]
        if kind.scale:
            rules.append(rule(group, [f"{plural}/scale"], scaling))
        yield role(f"kruise-{kind.singular}-{who}-role", rules)


def _access() -> dict[str, tuple[AccessRule, ...]]:
    return {service.name: service.access for service in load_all() if service.access}


def _accounts() -> list[Json]:
    """Return the services' accounts, and the node agents': an identity for the bus, without rights at the apiserver."""
    return [*map(service_account, services()), service_account(AGENT) | {"automountServiceAccountToken": False}]


def service_account(service: str) -> Json:
    """Return the ServiceAccount of a service, as an object."""
    metadata = {"name": account(service), "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}


def _cluster_wide() -> Iterable[Json]:
    for service, access in _access().items():
        everywhere = (one for one in access if not one.namespace and not _of_secrets(service, one))
        yield role(account(service), _rules(everywhere))
        yield binding(account(service), account(service), [service])
    yield role("kruise-manager-role", None)
    yield binding("kruise-manager-rolebinding", "kruise-manager-role", _writers())
    selector = {"matchLabels": {COUNTED_LABEL: "true"}}
    yield role(CRD_PROTECTION, None) | {"aggregationRule": {"clusterRoleSelectors": [selector]}}
    yield binding(CRD_PROTECTION, CRD_PROTECTION, ["webhook"])


def _distributing() -> list[Json]:
    """Return the right to the Secrets of all namespaces as a role of its own, which an installation may omit."""
    rules = _rules(one for one in _access()[_DISTRIBUTING] if _of_secrets(_DISTRIBUTING, one))
    return [role(DISTRIBUTION, rules), binding(DISTRIBUTION, DISTRIBUTION, [_DISTRIBUTING])]


def _of_secrets(service: str, access: AccessRule) -> bool:
    return service == _DISTRIBUTING and access.resource == SECRET and not access.namespace


def _in_namespaces() -> Iterable[Json]:
    electing = [service for service, access in _access().items() if LEASES in access]
    yield role("kruise-leader-election-role", _rules([LEASES]), NAMESPACE)
    yield binding("kruise-leader-election-rolebinding", "kruise-leader-election-role", electing, NAMESPACE)
    for service, access in _access().items():
        for setting, namespace in _NAMESPACES.items():
            rules = _rules(one for one in access if one.namespace == setting and one != LEASES)
            if rules:
                name = _KNOWN_ROLES.get((service, namespace), account(service))
                yield role(f"{name}-role", rules, namespace)
                yield binding(f"{name}-rolebinding", f"{name}-role", [service], namespace)


def _rules(access: Iterable[AccessRule]) -> list[Json]:
    """Return one rule for each group, set of verbs and set of names, so that a role reads like a table."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for one in access:
        resource = f"{one.resource.plural}/{one.subresource}" if one.subresource else one.resource.plural
        verbs[one.resource.group, resource, one.names].update(one.verbs)
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = defaultdict(list)
    for (group, resource, names), allowed in sorted(verbs.items()):
        alike[group, tuple(sorted(allowed)), names].append(resource)
    return [rule(group, resources, allowed, names) for (group, allowed, names), resources in alike.items()]


def rule(group: str, resources: list[str], verbs: Sequence[str], names: Sequence[str] = ()) -> Json:
    """Return one rule of a role."""
    made: Json = {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}
    return made | ({"resourceNames": list(names)} if names else {})


def role(name: str, rules: list[Json] | None, namespace: str = "") -> Json:
    """Return a role, cluster-wide without a namespace; `rules` None: others add them."""
    made = _object("Role" if namespace else "ClusterRole", name, namespace)
    return made if rules is None else made | {"rules": rules}


def binding(name: str, bound: str, services: Sequence[str], namespace: str = "") -> Json:
    """Return the binding of a role, `bound`, to the accounts of services."""
    reference = {"apiGroup": _GROUP, "kind": "Role" if namespace else "ClusterRole", "name": bound}
    subjects = [{"kind": "ServiceAccount", "name": account(one), "namespace": NAMESPACE} for one in services]
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    return _object(kind, name, namespace) | {"roleRef": reference, "subjects": subjects}


def _object(kind: str, name: str, namespace: str) -> Json:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": metadata}
