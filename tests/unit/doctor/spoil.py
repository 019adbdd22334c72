"""Ways to spoil one fact of an otherwise healthy installation."""

from datetime import timedelta
from typing import Any

import msgspec

from flotilla_common.api.documents import Json
from flotilla_common.api.podrules import RULES, PodRule, check_entries, encoded
from flotilla_insight.doctor.facts import Backend, Certificate, Fact, Leases
from flotilla_insight.installation import rbac
from flotilla_insight.installation.endpoint import TEMPLATE
from tests.unit.doctor import build
from tests.unit.doctor.build import NOW, well, workload

CLONE_SETS = "clonesets.apps.kruise.io"
PODS = "kube_core_pods"
UNREACHED = build.UNREACHED
CHART = [workload("Deployment", f"flotilla-{one}", one) for one in build.SERVICES]


def changed_definition(**spec: Any) -> Fact[dict[str, Json]]:
    live = build.definition()
    return Fact(build.all_definitions(**{CLONE_SETS: live | {"spec": live["spec"] | spec}}))


def without(facts: Fact[Any], name: str) -> Fact[Any]:
    return Fact({key: value for key, value in facts.get().items() if key != name})


def others(service: str) -> list[Any]:
    return [one for one in well().heartbeats.get() if one.beat.service != service]


def instead(one: Any) -> Fact[Any]:
    return Fact([*others(one.beat.service), one])


def beside(*more: Any) -> Fact[Any]:
    return Fact([*well().heartbeats.get(), *more])


def with_stream(name: str, made: Any) -> Fact[Any]:
    return Fact(dict(well().streams.get()) | {name: made})


def with_leases(*more: Json, first: tuple[Json, ...] = ()) -> Fact[Leases]:
    usual = well().leases.get()
    names = {one["metadata"]["name"] for one in more}
    kept = [one for one in usual.last if one["metadata"]["name"] not in names]
    return Fact(Leases([*usual.first, *first], [*kept, *more]))


def entries_without(name: str, *, template: bool = True) -> Fact[Any]:
    mutating, validating = build.configurations()
    mutating["webhooks"] = [one for one in mutating["webhooks"] if one["name"] != name]
    if template:
        mutating["metadata"]["annotations"][TEMPLATE] = msgspec.json.encode(mutating["webhooks"]).decode()
    return Fact([mutating, validating])


def entry_changed(**change: Any) -> Fact[Any]:
    mutating, validating = build.configurations()
    mutating["webhooks"][0] |= change
    return Fact([mutating, validating])


def with_check_of_pods() -> Fact[Any]:
    """Return configurations with the check of a budget's pods."""
    mutating, validating = build.configurations()
    rules = [PodRule("PodUnavailableBudget shop/web", "true", "shop")]
    client = validating["webhooks"][0]["clientConfig"]
    for entry in check_entries(rules):
        own = client | {"service": client["service"] | {"path": entry["clientConfig"]["service"]["path"]}}
        validating["webhooks"].append(entry | {"clientConfig": own})
    validating["metadata"].setdefault("annotations", {})[RULES] = encoded(rules)
    return Fact([mutating, validating])


def one_bundle_changed() -> Fact[Any]:
    mutating, validating = build.configurations()
    mutating["webhooks"][0]["clientConfig"]["caBundle"] = build.bundle(timedelta(days=2))
    return Fact([mutating, validating])


def foreign_configuration(policy: str = "Fail", group: str = "", path: str = "/x", service: str = "gone") -> Json:
    client = {"service": {"namespace": "elsewhere", "name": service, "path": path}}
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "resources": ["pods" if not group else "clonesets"]}
    entry = {"name": "x.example.com", "clientConfig": client, "rules": [rule], "failurePolicy": policy}
    return {"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "strange"}, "webhooks": [entry]}


def beside_hooks(configuration: Json) -> dict[str, Any]:
    places = dict(well().backends.get()) | {
        ("elsewhere", "gone"): Backend(False),
        ("elsewhere", "there"): Backend(True, 1),
    }
    return {"hooks": Fact([*build.configurations(), configuration]), "backends": Fact(places)}


def role_changed(*rules: Json) -> Fact[Any]:
    objects = rbac.objects()
    return Fact(
        build.rights(
            [
                one | {"rules": [*rules]}
                if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", "flotilla-cloneset")
                else one
                for one in objects
            ]
        )
    )


def bound_beside(role: str, rules: list[Json]) -> Fact[Any]:
    subject = {"kind": "ServiceAccount", "name": "flotilla-jobs", "namespace": rbac.NAMESPACE}
    binding = {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "oops"},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [subject],
    }
    kept = [one for one in rbac.objects() if (one["kind"], one["metadata"]["name"]) != ("ClusterRole", role)]
    return Fact(build.rights([*kept, {"kind": "ClusterRole", "metadata": {"name": role}, "rules": rules}, binding]))


ALL_RIGHTS = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
OPENKRUISE = {"metadata": {"name": "kruise-manager"}, "spec": {"holderIdentity": "theirs", "leaseDurationSeconds": 15}}
MANAGER = workload("Deployment", "kruise-controller-manager", replicas=2)
DAEMON = workload("DaemonSet", "kruise-daemon")
AGENTS = workload("DaemonSet", "flotilla-nodeagent", "nodeagent", tolerations=[{"key": "gpu", "operator": "Exists"}])
TAINT = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
FAR = Certificate(NOW - timedelta(days=1), NOW + timedelta(days=3000))
