"""The objects of an installation, and how webhook endpoints are kept or switched."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from click.testing import CliRunner

from flotilla_cli.commands.install import install
from flotilla_cli.install.apply import apply
from flotilla_cli.install.remove import removal_order
from flotilla_common.api import crds
from flotilla_common.api.resources import Resource
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, ApiError
from flotilla_insight.installation import endpoint, rbac
from flotilla_insight.installation.manifests import manifests
from flotilla_insight.installation.objects import OPTIONAL, name_of, namespace_of, resource_of, title
from flotilla_insight.services import ON_DEMAND, load_all
from tests.support.fake_clock import FakeClock
from tests.testkit.documents import Json

GATES = Gates.parse("")
URL = "https://10.1.2.3:9876"


def titles(documents: Iterable[Json]) -> list[str]:
    return [title(document) for document in documents]


def find(kind: str, name: str, documents: Iterable[Json] | None = None) -> Json:
    for document in documents or manifests(GATES):
        if (document["kind"], name_of(document)) == (kind, name):
            return document
    raise AssertionError(f"no {kind} {name}")


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param("Namespace", "kruise-system", id="namespace"),
        pytest.param("Namespace", "kruise-daemon-config", id="secrets namespace"),
        pytest.param("Service", "kruise-webhook-service", id="service"),
        pytest.param("ClusterRole", "kruise-manager-role", id="extension role"),
        pytest.param("ClusterRoleBinding", "kruise-manager-rolebinding", id="its binding"),
        pytest.param("Role", "kruise-leader-election-role", id="leases"),
        pytest.param("RoleBinding", "kruise-leader-election-rolebinding", id="leases binding"),
        pytest.param("Role", "kruise-webhook-role", id="webhook's own namespace"),
        pytest.param("ClusterRole", "aggregate-kruise-view", id="view"),
        pytest.param("ClusterRole", "kruise-cloneset-editor-role", id="editors"),
        pytest.param("ClusterRole", "kruise-imagepulljob-viewer-role", id="viewers"),
        pytest.param("CustomResourceDefinition", "clonesets.apps.kruise.io", id="CRD"),
        pytest.param("MutatingWebhookConfiguration", "kruise-mutating-webhook-configuration", id="mutating"),
        pytest.param("ValidatingWebhookConfiguration", "kruise-validating-webhook-configuration", id="validating"),
    ],
)
def test_names_that_scripts_use(kind: str, name: str):
    assert find(kind, name)["kind"] == kind


def test_every_object_is_there_once():
    found = [(title(document), namespace_of(document)) for document in manifests(GATES)]
    assert len(found) == len(set(found))


def test_namespaces_come_first_and_webhooks_last():
    kinds = [document["kind"] for document in manifests(GATES)]
    assert kinds[:2] == ["Namespace", "Namespace"]
    assert kinds[-2:] == ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]


def test_own_namespace_is_exempt_from_the_webhook():
    assert find("Namespace", "kruise-system")["metadata"]["labels"] == {"control-plane": "openkruise"}


def test_removal_starts_with_webhooks_and_crds_and_ends_with_namespaces():
    kinds = [document["kind"] for document in removal_order()]
    assert set(kinds[:2]) == {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
    assert kinds[2] == "CustomResourceDefinition"
    assert kinds[-2:] == ["Namespace", "Namespace"]


@pytest.mark.parametrize("service", rbac.services())
def test_each_service_has_an_account_with_a_role_of_its_own(service: str):
    role = f"flotilla-{service}"
    assert namespace_of(find("ServiceAccount", rbac.account(service))) == "kruise-system"
    binding = find("ClusterRoleBinding", role)
    assert binding["roleRef"]["name"] == role
    assert [subject["name"] for subject in binding["subjects"]] == [rbac.account(service)]
    assert find("ClusterRole", role)["rules"]


def test_node_agents_have_an_account_and_no_right():
    name = rbac.account(rbac.AGENT)
    assert find("ServiceAccount", name)["automountServiceAccountToken"] is False
    subjects = [one["name"] for document in rbac.objects() for one in document.get("subjects", [])]
    assert name not in subjects


def test_the_role_that_users_extend_has_no_rules_of_ours_and_reaches_every_service_that_writes():
    assert "rules" not in find("ClusterRole", "kruise-manager-role")
    subjects = find("ClusterRoleBinding", "kruise-manager-rolebinding")["subjects"]
    writers = {rbac.account(service) for service in rbac.services() if service not in ON_DEMAND}
    assert {subject["name"] for subject in subjects} == writers


def test_the_service_that_serves_metrics_of_objects_only_reads():
    rules = find("ClusterRole", rbac.account("statemetrics"))["rules"]
    assert {verb for rule in rules for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert {group for rule in rules for group in rule["apiGroups"]} == {"apps.kruise.io"}
    bound = [
        one["metadata"]["name"]
        for one in rbac.objects()
        if any(subject["name"] == rbac.account("statemetrics") for subject in one.get("subjects", []))
    ]
    assert bound == [rbac.account("statemetrics")]


def test_the_console_reads_and_asks_and_changes_nothing_itself():
    rules = find("ClusterRole", rbac.account("console"))["rules"]
    beyond = {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}
    assert {one for one in beyond if one[1] not in {"get", "list", "watch"}} == {
        ("events", "create"),
        ("events", "patch"),
        ("subjectaccessreviews", "create"),
        ("tokenreviews", "create"),
    }
    assert not {"secrets", "configmaps", "pods/log", "users", "groups"} & {resource for resource, _ in beyond}


def test_the_console_sends_requests_of_users_with_the_verbs_of_constrained_impersonation():
    console = next(service for service in load_all() if service.name == "console")
    granted = {
        (group, resource, verb)
        for rule in rbac.impersonation(console)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert ("apps.kruise.io", "clonesets", "impersonate-on:user-info:patch") in granted
    assert ("", "pods", "impersonate-on:user-info:delete") in granted
    assert ("", "pods/log", "impersonate-on:user-info:get") in granted
    assert {verb.rpartition(":")[0] for *_, verb in granted} == {"impersonate-on:user-info"}
    assert "secrets" not in {resource for _, resource, _ in granted}


SCALES: Json = {"apiGroups": ["*"], "resources": ["*/scale"], "verbs": ["get"]}
"""Rights for workloads of any kind, because of budgets."""


def rules() -> list[Any]:
    return [
        pytest.param(document, rule, id=f"{name_of(document)}-{index}")
        for document in rbac.objects()
        for index, rule in enumerate(document.get("rules", []))
    ]


@pytest.mark.parametrize(("role", "rule"), rules())
def test_least_privilege(role: Json, rule: Json):
    assert "*" not in rule["verbs"]
    if rule == SCALES:
        assert name_of(role) == "flotilla-policy"
        return
    assert "*" not in rule["apiGroups"]
    if "*" in rule["resources"]:
        assert set(rule["apiGroups"]) <= {"apps.kruise.io", "policy.kruise.io"}, "of others only what is named"
        assert rule["verbs"] == ["list"]
    if "secrets" in rule["resources"]:
        named_by_jobs = rule["verbs"] == ["get"] and name_of(role) == "flotilla-jobs"
        distributed = name_of(role) == "flotilla-sidecar-secrets"
        told = "secrets of other namespaces are nobody's business, but those that jobs name, and what is distributed"
        assert role["kind"] == "Role" or named_by_jobs or distributed, told
    if {"customresourcedefinitions", "mutatingwebhookconfigurations"} & set(rule["resources"]):
        assert set(rule["verbs"]) <= {"get", "list", "watch"} or rule["resourceNames"]


def test_without_its_gate_nobody_distributes_secrets():
    names = {name_of(one) for one in manifests(Gates.parse("ResourceDistributionGate=false"))}
    assert not {name for name in names if name.startswith("flotilla-sidecar-secrets")}


def test_view_shows_no_kind_that_holds_secrets():
    viewed = {one for rule in find("ClusterRole", "aggregate-kruise-view")["rules"] for one in rule["resources"]}
    assert "resourcedistributions" not in viewed
    assert {"podunavailablebudgets", "sidecarsets"} <= viewed
    assert find("ClusterRole", "kruise-resourcedistribution-viewer-role")["rules"]


def test_nobody_may_list_everything():
    """That would include all Secrets."""
    for role in (one for one in manifests(GATES) if one["kind"] == "ClusterRole"):
        for rule in role.get("rules", ()):
            if rule == SCALES:
                continue
            assert "*" not in rule["apiGroups"], role["metadata"]["name"]
            assert "*" not in rule["resources"] or "" not in rule["apiGroups"], role["metadata"]["name"]


def test_the_webhook_reads_no_other_secret_than_its_own():
    rules = [rule for rule in find("Role", "kruise-webhook-role")["rules"] if "secrets" in rule["resources"]]
    assert [rule["verbs"] for rule in rules if "resourceNames" not in rule] == [["create"]]
    (named,) = (rule for rule in rules if "resourceNames" in rule)
    assert named["resourceNames"] == ["kruise-webhook-certs"]


def test_leases_are_named_as_the_policy_supposes():
    policy = find("ValidatingAdmissionPolicy", "flotilla-leases-of-their-own")
    (condition,) = policy["spec"]["matchConditions"]
    for service in rbac.services():
        user = f"system:serviceaccount:kruise-system:{rbac.account(service)}"
        assert f"startsWith('{user.removesuffix(service)}')" in condition["expression"]
        others = [f"{rbac.account(other)}-" for other in rbac.services() if other != service]
        assert not any(f"{rbac.account(service)}-".startswith(other) for other in others)


def test_what_the_webhook_may_count_is_for_users_to_add():
    role = find("ClusterRole", "flotilla-crd-protection")
    label = {"policy.kruise.io/aggregate-to-crd-protection": "true"}
    assert role["aggregationRule"] == {"clusterRoleSelectors": [{"matchLabels": label}]}
    assert "rules" not in role, "they are the controller's"
    binding = find("ClusterRoleBinding", "flotilla-crd-protection")
    assert [subject["name"] for subject in binding["subjects"]] == [rbac.account("webhook")]


def test_only_the_watcher_reads_and_never_writes():
    rules = find("ClusterRole", "flotilla-watcher")["rules"]
    questions = [rule for rule in rules if rule["verbs"] == ["create"]]
    assert [rule["resources"] for rule in questions] == [["tokenreviews"]], "asks who somebody is; nothing is stored"
    assert {verb for rule in rules if rule not in questions for verb in rule["verbs"]} == {"get", "list", "watch"}


def test_the_webhook_may_patch_the_definitions_that_it_converts():
    rules = find("ClusterRole", "flotilla-webhook")["rules"]
    (patches,) = (
        rule for rule in rules if "patch" in rule["verbs"] and "customresourcedefinitions" in rule["resources"]
    )
    converting = {name_of(crd) for crd in crds.manifests() if crd["spec"]["conversion"]["strategy"] == "Webhook"}
    assert set(patches["resourceNames"]) == converting


def test_webhook_url_replaces_the_service_everywhere():
    through_service = [client for document in manifests(GATES) for client in endpoint.clients(document).values()]
    at_url = [client for document in manifests(GATES, URL) for client in endpoint.clients(document).values()]
    assert len(at_url) == len(through_service) > 5
    assert all("service" in client for client in through_service)
    assert all(set(client) == {"url"} and client["url"].startswith(f"{URL}/") for client in at_url)
    assert f"{URL}/convert" in [client["url"] for client in at_url]


def configuration(**clients: Json) -> Json:
    entries = [{"name": name, "clientConfig": client} for name, client in clients.items()]
    return {"kind": "MutatingWebhookConfiguration", "webhooks": entries}


def test_template_has_the_entries_and_keeps_its_own_endpoints():
    document = find("MutatingWebhookConfiguration", "kruise-mutating-webhook-configuration")
    assert msgspec.json.decode(document["metadata"]["annotations"]["template"]) == document["webhooks"]
    live = find("MutatingWebhookConfiguration", "kruise-mutating-webhook-configuration", manifests(GATES, URL))
    assert endpoint.keep(document, live) == live, "applying again without a URL changes nothing"


def test_new_entries_of_a_later_release_reach_the_template():
    wanted = find("ValidatingWebhookConfiguration", "kruise-validating-webhook-configuration")
    live = wanted | {"metadata": {"annotations": {"template": endpoint.as_template(wanted["webhooks"][1:])}}}
    template = endpoint.keep(wanted, live)["metadata"]["annotations"]["template"]
    assert msgspec.json.decode(template) == wanted["webhooks"]


SERVICE = {"service": {"namespace": "kruise-system", "name": "kruise-webhook-service", "path": "/a", "port": 443}}
AT_URL = {"url": f"{URL}/a"}
CA = {"caBundle": "Q0E="}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param(configuration(a=AT_URL | CA), AT_URL, id="the URL of a running webhook stays, its CA is not ours"),
        pytest.param(configuration(a=SERVICE | CA), SERVICE, id="the service stays"),
        pytest.param(configuration(b=AT_URL), SERVICE, id="a new entry gets what is wanted"),
    ],
)
def test_endpoints_are_kept(live: Json, expected: Json):
    assert endpoint.clients(endpoint.keep(configuration(a=SERVICE), live)) == {"a": expected}


@pytest.mark.parametrize(
    ("wanted", "live", "expected"),
    [
        pytest.param(AT_URL, SERVICE | CA, AT_URL | CA, id="from service to URL, the CA stays"),
        pytest.param(SERVICE, AT_URL | CA, SERVICE | CA, id="from URL to service"),
        pytest.param(AT_URL, {"url": "https://else/a"}, None, id="another URL needs no switch"),
        pytest.param(SERVICE, SERVICE | CA, None, id="nothing to do"),
    ],
)
def test_endpoints_are_switched(wanted: Json, live: Json, expected: Json | None):
    result = endpoint.switched(configuration(a=wanted), configuration(a=live))
    assert (endpoint.clients(result)["a"] if result else None) == expected


def test_conversion_endpoint_is_switched_too():
    crd = find("CustomResourceDefinition", "clonesets.apps.kruise.io")
    wanted = find("CustomResourceDefinition", "clonesets.apps.kruise.io", manifests(GATES, URL))
    switched = endpoint.switched(wanted, crd)
    assert switched is not None
    assert endpoint.clients(switched)[""] == {"url": f"{URL}/convert"}
    assert endpoint.clients(crd)[""].keys() == {"service"}, "the live object itself is left alone"


def test_titles_are_those_of_kubectl():
    assert titles(manifests(GATES)[:3]) == [
        "namespace/kruise-system",
        "namespace/kruise-daemon-config",
        "customresourcedefinition.apiextensions.k8s.io/advancedcronjobs.apps.kruise.io",
    ]
    assert resource_of(find("Service", "kruise-webhook-service")).plural == "services"


def test_a_policy_clears_the_managed_fields_of_new_pods_unless_they_are_kept():
    kinds = {document["kind"] for document in manifests(GATES)}
    kept = {document["kind"] for document in manifests(GATES, keep_managed_fields=True)}
    assert kinds - kept == {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
    result = CliRunner().invoke(install, ["-o", "yaml", "--keep-managed-fields"])
    assert "MutatingAdmissionPolicy" not in result.output


class Older:
    """An apiserver without admission policies and without objects."""

    async def get(self, *_: object) -> bytes:
        raise ApiError(404, "NotFound", "not found")

    async def patch(self, resource: Resource, *_: object, **__: object) -> bytes:
        if resource in OPTIONAL:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        return b"{}"


async def test_what_an_older_apiserver_does_not_serve_is_left_out():
    results = apply(cast("Api", Older()), FakeClock(), manifests(GATES), lambda _: None)
    told = {document["kind"]: result async for document, result in results}
    assert {kind for kind, result in told.items() if result != "created"} == {
        f"{word}AdmissionPolicy{binding}" for word in ("Mutating", "Validating") for binding in ("", "Binding")
    }
    assert told["MutatingAdmissionPolicy"] == (
        "left out: this apiserver does not serve MutatingAdmissionPolicy admissionregistration.k8s.io/v1"
    )


def test_manifests_can_be_printed():
    result = CliRunner().invoke(install, ["-o", "yaml"])
    assert result.exit_code == 0
    documents = [msgspec.yaml.decode(part) for part in result.output.split("---\n")]
    assert titles(documents) == titles(manifests(GATES))


def test_manifests_can_be_split_into_one_file_per_crd_and_one_for_the_rest(tmp_path: Path):
    result = CliRunner().invoke(install, ["-o", "yaml", "--split", str(tmp_path)])
    assert result.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "flotilla.yaml",
        *(f"{definition['metadata']['name']}.yaml" for definition in crds.manifests()),
    }
    assert "CustomResourceDefinition" not in (tmp_path / "flotilla.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param(["--webhook-url", "http://x"], "must begin with https://", id="plain http"),
        pytest.param(["--feature-gates", "Nope=true"], "unrecognized feature gate: Nope", id="unknown gate"),
        pytest.param(["--split", "x"], "--split requires -o yaml", id="split alone"),
        pytest.param(["--kubeconfig", "/nonexistent"], "kubeconfig /nonexistent", id="no kubeconfig"),
    ],
)
def test_mistakes(arguments: list[str], problem: str):
    result = CliRunner().invoke(install, arguments)
    assert result.exit_code != 0
    assert problem in result.output
