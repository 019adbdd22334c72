"""OpenKruise as its chart installs it (install.md §1, §8, §9): a release of helm, with stand-ins for programs.

    write(folder, configurations)
    helm.run("install", "kruise", str(folder), "-n", "default")

The webhook entries are a value, `admission`: with them no object can be written that OpenKruise has not admitted, so
tests create their objects first and turn them on by an upgrade, as a second revision.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from tests.testkit.documents import Json

SYSTEM, SECRETS = "kruise-system", "kruise-daemon-config"
RELEASE, RELEASE_NAMESPACE = "kruise", "default"
_RBAC = "rbac.authorization.k8s.io"
_EVERY = ["create", "delete", "get", "list", "patch", "update", "watch"]


def write(folder: Path, definitions: Iterable[Json], configurations: Iterable[Json]) -> Path:
    """Write the chart into the folder, and return it."""
    templates = folder / "templates"
    templates.mkdir(parents=True)
    meta = {"apiVersion": "v2", "name": "kruise", "version": "1.9.0", "appVersion": "1.9.0"}
    (folder / "Chart.yaml").write_bytes(msgspec.yaml.encode(meta))
    (folder / "values.yaml").write_text("admission: true\n", encoding="utf-8")
    (templates / "crds.yaml").write_text(_yaml(definitions), encoding="utf-8")
    (templates / "manager.yaml").write_text(_yaml(_objects()), encoding="utf-8")
    entries = f"{{{{- if .Values.admission }}}}\n{_yaml(configurations)}{{{{- end }}}}\n"
    (templates / "webhooks.yaml").write_text(entries, encoding="utf-8")
    return folder


def _yaml(documents: Iterable[Json]) -> str:
    return "---\n".join(msgspec.yaml.encode(document).decode() for document in documents)


def _objects() -> Iterator[Json]:
    yield _object("v1", "Namespace", SYSTEM, "") | {
        "metadata": {"name": SYSTEM, "labels": {"control-plane": "openkruise"}}
    }
    yield _object("v1", "Namespace", SECRETS, "")
    for name in ("manager", "daemon"):
        yield _object("v1", "ServiceAccount", f"kruise-{name}")
    yield _object("v1", "Secret", "kruise-webhook-certs")
    yield _object("v1", "Service", "kruise-webhook-service") | {"spec": _SERVICE}
    yield from _rights()
    manager, daemon = {"control-plane": "controller-manager"}, {"control-plane": "daemon"}
    yield _workload("Deployment", "kruise-controller-manager", "kruise-manager", manager, {"replicas": 2})
    yield _workload("DaemonSet", "kruise-daemon", "kruise-daemon", daemon, {})


_SERVICE = {
    "ports": [{"port": 443, "targetPort": 9876}],
    "selector": {"control-plane": "controller-manager"},
}


def _rights() -> Iterator[Json]:
    kinds = {"apiGroups": ["apps.kruise.io", "policy.kruise.io"], "resources": ["*"], "verbs": _EVERY}
    pods = {"apiGroups": [""], "resources": ["pods", "pods/status", "events"], "verbs": _EVERY}
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}
    games = {"apiGroups": ["example.com"], "resources": ["games"], "verbs": ["get", "list", "watch"]}
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": _EVERY}
    secrets = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]}
    view = {"apiGroups": ["apps.kruise.io"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
    yield from _bound("ClusterRole", "kruise-manager-role", [everything, pods, kinds, games], "manager")
    yield from _bound("ClusterRole", "kruise-daemon-role", [pods, view], "daemon")
    yield _object(f"{_RBAC}/v1", "ClusterRole", "aggregate-kruise-view", "") | {"rules": [view]}
    yield from _bound("Role", "kruise-leader-election-role", [leases], "manager", SYSTEM)
    yield from _bound("Role", "kruise-daemon-secret-role", [secrets], "daemon", SECRETS)


def _bound(kind: str, name: str, rules: Sequence[Json], account: str, namespace: str = "") -> Iterator[Json]:
    """Yield a role and its binding."""
    binding = f"{name}binding"
    yield _object(f"{_RBAC}/v1", kind, name, namespace) | {"rules": list(rules)}
    yield _object(f"{_RBAC}/v1", f"{kind}Binding", binding, namespace) | {
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": f"kruise-{account}", "namespace": SYSTEM}],
    }


def _workload(kind: str, name: str, account: str, labels: Json, more: Json) -> Json:
    container = {"name": "manager", "image": "busybox:1.36", "command": ["sleep", "infinity"]}
    pod: Json = {"serviceAccountName": account, "terminationGracePeriodSeconds": 0, "containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return _object("apps/v1", kind, name) | {"spec": {"selector": {"matchLabels": labels}, "template": template} | more}


def _object(version: str, kind: str, name: str, namespace: str = SYSTEM) -> Json:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
    }
