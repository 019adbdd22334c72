"""What the bus may do at the apiserver: keep its own keys (`bus_keys`), and nothing else."""

from collections.abc import Sequence

from flotilla_cli.install import bus_keys
from flotilla_cli.install.rbac import NAMESPACE
from flotilla_common.api.documents import Json

_GROUP = "rbac.authorization.k8s.io"


def objects() -> list[Json]:
    """The account of the bus, its role and its binding. A right to create knows no names; the others do."""
    meta = {"name": bus_keys.NAME, "namespace": NAMESPACE}
    account: Json = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}
    rules = [
        _rule("secrets", ["create"]),
        _rule("secrets", ["get", "update"], bus_keys.names()),
        _rule("configmaps", ["create"]),
        _rule("configmaps", ["get", "update"], [bus_keys.AUTHORITY]),
        _rule("serviceaccounts", ["get"], [bus_keys.NAME]),
    ]
    role: Json = {"apiVersion": f"{_GROUP}/v1", "kind": "Role", "metadata": meta, "rules": rules}
    binding: Json = {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": bus_keys.NAME},
        "subjects": [{"kind": "ServiceAccount"} | meta],
    }
    return [account | {"automountServiceAccountToken": False}, role, binding]


def _rule(resource: str, verbs: list[str], names: Sequence[str] = ()) -> Json:
    return {"apiGroups": [""], "resources": [resource], "verbs": verbs} | (
        {"resourceNames": list(names)} if names else {}
    )
