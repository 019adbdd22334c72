"""The objects that the chart renders from its values, fact by fact."""

import json
from pathlib import Path

import pytest

from flotilla_common.settings import load, split_flags
from flotilla_insight.installation import rbac
from flotilla_insight.views import all_views
from tests.support.chart import ABSENT, Rendered, at, rendered
from tests.support.helm import CHART, Helm

SERVICES = {
    f"flotilla-{name}"
    for name in ("cloneset", "daemonset", "jobs", "policy", "sidecar", "statefulset", "topology", "watcher", "webhook")
}
NO_CRDS = "crds.managed=false"

VALUE_SETS = {
    "default": (),
    "compact": ("profile=compact",),
    "three servers": ("nats.replicas=3",),
    "a bus of one's own": ("nats.url=tls://nats.messaging:4222",),
    "everything": (
        "monitoring.enabled=true,monitoring.dashboards=true,certManager.enabled=true,autoscaling.webhook.enabled=true",
        "daemon.credentialProvider.enable=true,daemon.kubeletLogins=true,manager.hostNetwork=true",
        "networkPolicy.apiserver={10.0.0.1/32},networkPolicy.nodes={10.0.0.0/16},installation.namespace=elsewhere",
        "console.enabled=true,console.ingress.enabled=true,console.ingress.host=c.example.com,console.impersonation.groups={a}",
    ),
    "as little as can be": (
        "crds.managed=false,daemon.enabled=false,podDisruptionBudget.enabled=false,networkPolicy.enabled=false",
        "preDeleteGuard.enabled=false,priorityClassName=,featureGates=",
    ),
}


@pytest.mark.parametrize("name", VALUE_SETS)
def test_helm_finds_nothing_wrong(chart: Helm, name: str) -> None:
    given = [part for value in VALUE_SETS[name] for part in ("--set", value)]
    assert "0 chart(s) failed" in chart.run("lint", "--strict", str(CHART), *given)


Facts = dict[str, list[tuple[str, str, str, object]]]
ENFORCED = "metadata.labels.pod-security\\.kubernetes\\.io/enforce"
WEBHOOK, JOBS, CLONESET = "flotilla-webhook", "flotilla-jobs", "flotilla-cloneset"
FACTS: dict[str, Facts] = {
    "more of everything": {
        "services.cloneset.replicas=5": [("Deployment", CLONESET, "spec.replicas", 5)],
        "services.jobs.nodeSelector.disk=fast": [
            ("Deployment", JOBS, "spec.template.spec.nodeSelector.disk", "fast"),
            ("Deployment", JOBS, "spec.replicas", 2),
        ],
        "services.jobs.podAnnotations.a=b": [("Deployment", JOBS, "spec.template.metadata.annotations.a", "b")],
        "revisionHistoryLimit=7": [("Deployment", JOBS, "spec.revisionHistoryLimit", 7)],
        "autoscaling.webhook.enabled=true": [
            ("Deployment", WEBHOOK, "spec.replicas", ABSENT),
            ("HorizontalPodAutoscaler", WEBHOOK, "spec.maxReplicas", 6),
        ],
        "manager.hostNetwork=true": [
            ("Deployment", WEBHOOK, "spec.template.spec.hostNetwork", True),
            ("Deployment", CLONESET, "spec.template.spec.hostNetwork", ABSENT),
        ],
        "manager.webhook.port=9443": [("Service", "kruise-webhook-service", "spec.ports.0.targetPort", 9443)],
        "installation.namespace=x": [("Namespace", "x", "metadata.labels.control-plane", "openkruise")],
        "nats.replicas=3": [
            ("StatefulSet", "flotilla-bus", "spec.replicas", 3),
            ("PodDisruptionBudget", "flotilla-bus", "spec.maxUnavailable", 1),
        ],
        "serviceAccount.annotations.a=b": [("ServiceAccount", CLONESET, "metadata.annotations.a", "b")],
        "settings.keep-managed-fields=true": [
            ("MutatingAdmissionPolicy", "flotilla-pods-without-managed-fields", "", ABSENT)
        ],
        "preDeleteGuard.enabled=false": [("Job", "flotilla-finalizer", "", ABSENT)],
    },
    "less of everything": {
        "services.cloneset.replicas=0": [("Deployment", CLONESET, "spec.replicas", 0)],
        "manager.replicas=1": [("PodDisruptionBudget", WEBHOOK, "", ABSENT)],
        "installation.createNamespace=false": [("Namespace", "kruise-system", "", ABSENT)],
        "featureGates=KruiseDaemon=false": [
            ("DaemonSet", "flotilla-nodeagent", "", ABSENT),
            ("ServiceAccount", "flotilla-nodeagent", "", ABSENT),
        ],
        "nats.url=tls://x:4222": [
            ("StatefulSet", "flotilla-bus", "", ABSENT),
            ("NetworkPolicy", "flotilla-bus", "", ABSENT),
        ],
    },
    "with agents": {
        "manager.replicas=2": [("PodDisruptionBudget", WEBHOOK, "spec.maxUnavailable", 1)],
        "daemon.enabled=true": [("Namespace", "kruise-system", ENFORCED, "privileged")],
        "nats.replicas=1": [("PodDisruptionBudget", "flotilla-bus", "", ABSENT)],
        r"featureGates=AllBeta=false\,KruiseDaemon=true": [
            ("DaemonSet", "flotilla-nodeagent", "kind", "DaemonSet"),
        ],
    },
    "without agents": {
        "daemon.enabled=false": [
            ("Namespace", "kruise-system", ENFORCED, "restricted"),
            ("DaemonSet", "flotilla-nodeagent", "", ABSENT),
        ],
    },
    "in a namespace that exists": {
        "featureGates=AllBeta=false": [("DaemonSet", "flotilla-nodeagent", "", ABSENT)],
        "installation.namespace=default": [("Namespace", "default", "", ABSENT)],
    },
}
"""Values that are given together, and what each of them says of an object; the path "" is the object itself."""


@pytest.mark.parametrize("facts", FACTS.values(), ids=FACTS.keys())
def test_values_do_what_they_say(chart: Helm, facts: Facts) -> None:
    made = rendered(chart, NO_CRDS, *facts)
    for value, said in facts.items():
        for kind, name, path, expected in said:
            found = made.of(kind).get(name, ABSENT)
            assert (_at(found, path) if path else found) == expected, value


def _at(document: object, path: str) -> object:
    """Return the value at the path like `at`, with dots in names escaped by backslashes."""
    for part in path.replace("\\.", "\0").split("."):
        document = at(document, part) if "\0" not in part else _named(document, part.replace("\0", "."))
    return document


def _named(document: object, name: str) -> object:
    return document.get(name, ABSENT) if isinstance(document, dict) else ABSENT


SLIPS = {
    "manager.replcas=2": "at '/manager': additional properties 'replcas' not allowed",
    "manager.replicas=two": "at '/manager/replicas': got string, want integer",
    "profile=tiny": "at '/profile': value must be one of 'split', 'compact'",
    "nats.replicas=2": "at '/nats/replicas': value must be one of 1, 3",
    "nats.url=nats.messaging": "at '/nats/url': 'nats.messaging' does not match pattern",
    "manager.log.level=verbose": "at '/manager/log/level': 'verbose' does not match pattern",
    "networkPolicy.apiserver={10.0.0.1}": "at '/networkPolicy/apiserver/0': '10.0.0.1' does not match pattern",
    "webhookConfiguration.timeoutSeconds=60": "at '/webhookConfiguration/timeoutSeconds': maximum: got 60, want 30",
    "services.cloneset.replica=2": "at '/services/cloneset': additional properties 'replica' not allowed",
}
"""Values that the schema refuses, and its words."""


def test_the_schema_refuses_slips_with_their_names(chart: Helm) -> None:
    given = [part for value in SLIPS for part in ("--set", value)]
    printed = chart.run("template", "flotilla", str(CHART), *given, check=False)
    assert [said for said in SLIPS.values() if said not in printed] == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("manager.replicas=-1", "at '/manager/replicas': minimum: got -1, want 0"),
        (
            "services.clonesets.replicas=2",
            "services.clonesets: there is no such service; there are cloneset, console, daemonset, jobs, policy,",
        ),
        ("services.webhook.shards=2", "services.webhook.shards: this service has no shards"),
        ("settings.watcher-shards=2", "settings.watcher-shards: the chart sets it; give services.watcher.shards"),
        ("services.webhook.enabled=false", "services.webhook.enabled: it cannot be left out"),
        ("services.watcher.enabled=false", "services.watcher.enabled: node agents hear nothing without the watcher"),
        ("settings.kube-max-write=2", "settings.kube-max-write: there is no such setting"),
        ("services.jobs.settings.x=2", "services.jobs.settings.x: there is no such setting"),
        ("settings.metrics-port=1", "settings.metrics-port: the chart sets it; give manager.metrics.port"),
        (
            "webhookConfiguration.clientAuthority.configMap=a,webhookConfiguration.clientAuthority.secret=b",
            "webhookConfiguration.clientAuthority: the authority is in a ConfigMap or in a Secret",
        ),
        ("webhookConfiguration.clientAuthority.names={a}", "nobody is asked for a certificate without an authority"),
        (
            "settings.webhook-client-ca=/a",
            "settings.webhook-client-ca: the chart sets it; give webhookConfiguration.clientAuthority.configMap",
        ),
        ("featureGates=NoSuchGate=true", "featureGates: there is no gate NoSuchGate"),
        ("featureGates=PodWebhook", "featureGates: PodWebhook has no value; write PodWebhook=true"),
        ("featureGates=PodWebhook=maybe", "featureGates: PodWebhook=maybe is neither true nor false"),
    ],
)
def test_a_slip_is_refused_with_its_name(chart: Helm, values: str, said: str) -> None:
    assert said in chart.run("template", "flotilla", str(CHART), "--set", values, check=False)


def test_shards_are_given_by_the_setting_of_the_service(chart: Helm) -> None:
    made = rendered(chart, NO_CRDS, "services.watcher.shards=2", "services.cloneset.shards=8")
    assert "--watcher-shards=2" in made.args("Deployment", "flotilla-watcher")
    assert "--shards=8" in made.args("Deployment", "flotilla-cloneset")
    assert not [flag for flag in made.args("Deployment", "flotilla-jobs") if "shards" in flag]


def test_a_service_that_does_not_run_has_no_rights(chart: Helm) -> None:
    made = rendered(chart, NO_CRDS, "services.jobs.enabled=false")
    assert made.names("Deployment") == SERVICES - {"flotilla-jobs"}
    assert "flotilla-jobs" not in made.names("ServiceAccount") | made.names("ClusterRole")
    assert "kruise-daemon-secret-rolebinding" not in made.names("RoleBinding")
    bound = json.dumps([*made.of("ClusterRoleBinding").values(), *made.of("RoleBinding").values()])
    assert "flotilla-jobs" not in bound
    assert "flotilla-cloneset" in bound


@pytest.mark.parametrize(
    ("values", "given"),
    [
        pytest.param("", False, id="not named"),
        pytest.param("featureGates=ResourceDistributionGate=true", True, id="named"),
        pytest.param("featureGates=AllBeta=true", True, id="by its stage"),
        pytest.param("featureGates=ResourceDistributionGate=false", False, id="off"),
        pytest.param(
            r"featureGates=AllBeta=true\,ResourceDistributionGate=false", False, id="off though its stage is on"
        ),
    ],
)
@pytest.mark.parametrize("profile", ["split", "compact"])
def test_secrets_of_all_namespaces_are_for_who_asks(chart: Helm, values: str, given: bool, profile: str) -> None:
    made = rendered(chart, *filter(None, (NO_CRDS, f"profile={profile}", values)))
    roles = {
        name
        for name, role in made.of("ClusterRole").items()
        if any("secrets" in rule["resources"] and "list" in rule["verbs"] for rule in role.get("rules") or ())
    }
    assert roles == ({"flotilla-sidecar-secrets"} if given else set())
    assert ("flotilla-sidecar-secrets" in made.names("ClusterRoleBinding")) is given


def test_one_process_has_the_rights_of_all(chart: Helm) -> None:
    split, compact = rendered(chart, NO_CRDS), rendered(chart, NO_CRDS, "profile=compact")
    assert compact.names("Deployment") == {"flotilla-compact"}
    assert compact.names("ServiceAccount") & SERVICES == set()
    roles = {
        (one["kind"], name, one["roleRef"]["name"])
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for name, one in split.of(kind).items()
    }
    for kind, name, role in roles:
        bound = compact.one(kind, name)
        assert bound["roleRef"]["name"] == role
        assert [subject["name"] for subject in bound["subjects"]] in (
            ["flotilla-compact"],
            ["flotilla-bus"],
            ["flotilla-finalizer"],
        )


def test_the_guard_may_list_what_it_looks_for(chart: Helm) -> None:
    rule = rendered(chart, NO_CRDS).one("ClusterRole", "flotilla-finalizer")["rules"][0]
    assert set(rule["resources"]) == {view.resource.plural for view in all_views() if view.guards_removal}


def test_one_process_runs_all_and_is_the_webhook(chart: Helm) -> None:
    made = rendered(chart, NO_CRDS, "profile=compact")
    pod = made.one("Deployment", "flotilla-compact")["spec"]["template"]
    assert pod["spec"]["containers"][0]["command"] == ["flotilla"]
    everybody = ["cloneset", "daemonset", "jobs", "policy", "sidecar", "statefulset", "topology", "watcher", "webhook"]
    assert made.args("Deployment", "flotilla-compact")[:10] == ["run", *everybody]
    service = made.one("Service", "kruise-webhook-service")["spec"]
    assert service["selector"].items() <= pod["metadata"]["labels"].items()
    assert {source["secret"]["name"] for source in at(pod, "spec.volumes.1.projected.sources")} == {
        f"flotilla-bus-{name.removeprefix('flotilla-')}" for name in SERVICES
    }
    policy = made.one("ValidatingAdmissionPolicy", "flotilla-leases-of-their-own")
    assert f":{rbac.account(rbac.COMPACT)}'" in at(policy, "spec.validations.0.expression")
    assert "flotilla-jobs" not in made.args("Deployment", "flotilla-compact")


def test_a_compact_set_may_leave_a_service_out(chart: Helm) -> None:
    made = rendered(chart, NO_CRDS, "profile=compact", "services.jobs.enabled=false")
    others = ["cloneset", "daemonset", "policy", "sidecar", "statefulset", "topology", "watcher", "webhook"]
    assert made.args("Deployment", "flotilla-compact")[:9] == ["run", *others]
    assert "flotilla-jobs" not in made.names("ClusterRoleBinding")


def test_the_webhooks_service_reaches_the_webhook_only(chart: Helm) -> None:
    made = rendered(chart, NO_CRDS)
    selector = made.one("Service", "kruise-webhook-service")["spec"]["selector"].items()
    chosen = {pod["metadata"]["name"] for pod in made.pods() if selector <= pod["metadata"]["labels"].items()}
    assert chosen == {"flotilla-webhook"}


@pytest.mark.parametrize("profile", ["split", "compact"])
def test_containers_of_one_pod_hold_their_leases_one_after_the_other(chart: Helm, profile: str) -> None:
    """The pod's uid is in the holder's name: two pods of one name are two holders."""
    deployments = [one for one in rendered(chart, NO_CRDS, f"profile={profile}").objects if one["kind"] == "Deployment"]
    assert deployments
    for deployment in deployments:
        env = {one["name"]: one for one in deployment["spec"]["template"]["spec"]["containers"][0]["env"]}
        assert env["POD_UID"]["valueFrom"] == {"fieldRef": {"fieldPath": "metadata.uid"}}
        assert env["FLOTILLA_LEASE_HOLDER"]["value"] == "$(POD_NAME)-$(POD_UID)"
        assert list(env).index("POD_UID") < list(env).index("FLOTILLA_LEASE_HOLDER")


@pytest.mark.parametrize("profile", ["split", "compact"])
@pytest.mark.parametrize(
    ("given", "source"),
    [
        (
            "configMap=front-proxy",
            {"configMap": {"name": "front-proxy", "items": [{"key": "ca.pem", "path": "ca.crt"}]}},
        ),
        (
            "secret=front-proxy",
            {"secret": {"secretName": "front-proxy", "items": [{"key": "ca.pem", "path": "ca.crt"}]}},
        ),
    ],
    ids=["ConfigMap", "Secret"],
)
def test_only_the_apiserver_is_answered_where_its_authority_is_named(
    chart: Helm, given: str, source: dict[str, object], profile: str
) -> None:
    where = "webhookConfiguration.clientAuthority"
    made = rendered(chart, NO_CRDS, f"profile={profile}", f"{where}.{given},{where}.key=ca.pem,{where}.names={{a,b}}")
    name = "flotilla-compact" if profile == "compact" else "flotilla-webhook"
    pod = at(made.one("Deployment", name), "spec.template.spec")
    flags = [flag for flag in pod["containers"][0]["args"] if "webhook-client" in flag]
    assert flags == ["--webhook-client-ca=/var/run/flotilla/callers/ca.crt", "--webhook-client-names=a,b"]
    assert [one for one in pod["volumes"] if one["name"] == "callers"] == [{"name": "callers"} | source]
    (mount,) = (one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "callers")
    assert (mount["mountPath"], mount["readOnly"]) == ("/var/run/flotilla/callers", True)
    others = [one for other, one in made.of("Deployment").items() if other != name]
    assert "callers" not in json.dumps(others)


@pytest.mark.parametrize("namespace", ["default", "elsewhere"])
def test_everything_is_in_the_namespace_that_is_named(chart: Helm, namespace: str) -> None:
    made = rendered(
        chart, "installation.namespace=elsewhere,monitoring.enabled=true,certManager.enabled=true", namespace=namespace
    )
    used = {one["metadata"]["namespace"] for one in made.objects if "namespace" in one["metadata"]}
    assert used == {"elsewhere", "kruise-daemon-config"}
    assert "kruise-system" not in json.dumps(made.objects)
    assert made.names("Namespace") == {"kruise-daemon-config"} | ({"elsewhere"} if namespace == "default" else set())


def test_definitions_come_with_the_chart_and_stay(chart: Helm) -> None:
    assert rendered(chart, NO_CRDS).names("CustomResourceDefinition") == set()
    definitions = rendered(chart).of("CustomResourceDefinition").values()
    assert len(definitions) == len(list((CHART / "files" / "crds").iterdir()))
    assert {one["metadata"]["annotations"]["helm.sh/resource-policy"] for one in definitions} == {"keep"}


def test_webhook_entries_take_the_values_and_so_does_their_template(chart: Helm) -> None:
    made = rendered(chart, "webhookConfiguration.timeoutSeconds=12,webhookConfiguration.aksIntegration=true")
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        (configuration,) = made.of(kind).values()
        annotations = configuration["metadata"]["annotations"]
        assert {entry["timeoutSeconds"] for entry in configuration["webhooks"]} == {12}
        assert json.loads(annotations["template"]) == configuration["webhooks"]
        assert annotations["admissions.enforcer/disabled"] == "true"


def test_cert_manager_signs_for_the_service_and_its_authority_is_injected(chart: Helm) -> None:
    made = rendered(chart, "certManager.enabled=true,installation.namespace=x")
    assert "EnableExternalCerts=true" in made.settings()
    certificate = made.one("Certificate", "kruise-webhook-certs")["spec"]
    assert certificate["secretName"] == "kruise-webhook-certs"
    assert {"kruise-webhook-service.x.svc", "localhost"} <= set(certificate["dnsNames"])
    issuer = made.one("Issuer", certificate["issuerRef"]["name"])["spec"]
    assert made.one("Certificate", "flotilla-webhook-ca")["spec"]["secretName"] == issuer["ca"]["secretName"]
    injected = {
        one["metadata"]["name"]
        for one in made.objects
        if one["metadata"].get("annotations", {}).get("cert-manager.io/inject-ca-from") == "x/kruise-webhook-certs"
    }
    converted = {
        name
        for name, one in made.of("CustomResourceDefinition").items()
        if at(one, "spec.conversion.strategy") == "Webhook"
    }
    configurations = {"kruise-mutating-webhook-configuration", "kruise-validating-webhook-configuration"}
    assert len(converted) >= 2
    assert injected == converted | configurations


def test_another_issuer_signs_alone(chart: Helm) -> None:
    made = rendered(
        chart,
        NO_CRDS,
        "certManager.enabled=true,certManager.issuerRef.name=corp,certManager.issuerRef.kind=ClusterIssuer",
    )
    assert made.names("Issuer") == set()
    assert {name: at(one, "spec.issuerRef.name") for name, one in made.of("Certificate").items()} == {
        "kruise-webhook-certs": "corp"
    }


def test_all_pods_with_metrics_are_scraped(chart: Helm) -> None:
    made = rendered(chart, NO_CRDS, "monitoring.enabled=true,monitoring.labels.release=prometheus")
    service = made.one("Service", "flotilla-metrics")
    monitor = made.one("ServiceMonitor", "controller-manager-metrics-monitor")
    assert at(monitor, "spec.selector.matchLabels").items() <= service["metadata"]["labels"].items()
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    scraped = {
        pod["metadata"]["name"]
        for pod in made.pods()
        if service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        and any(port["name"] == "metrics" for port in pod["spec"]["containers"][0].get("ports", []))
    }
    assert scraped == SERVICES | {"flotilla-nodeagent"}
    rules = made.one("PrometheusRule", "flotilla")["spec"]["groups"]
    assert [group["name"] for group in rules] == [
        "flotilla.services",
        "flotilla.bus",
        "flotilla.webhook",
        "flotilla.nodes",
    ]
    assert rendered(chart, NO_CRDS).names("ServiceMonitor") == set()


@pytest.mark.parametrize("profile", ["split", "compact"])
def test_metrics_of_objects_are_for_who_asks(chart: Helm, profile: str) -> None:
    given = (NO_CRDS, f"profile={profile}", "monitoring.enabled=true")
    off, on = rendered(chart, *given), rendered(chart, *given, "services.statemetrics.enabled=true")
    for kind in ("Deployment", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Service", "ServiceMonitor"):
        assert not {"flotilla-statemetrics", "kruise-state-metrics"} & off.names(kind)
    assert "state-metrics" not in json.dumps(off.of("NetworkPolicy"))
    service, monitor = on.one("Service", "kruise-state-metrics"), on.one("ServiceMonitor", "kruise-state-metrics")
    assert at(monitor, "spec.selector.matchLabels").items() <= service["metadata"]["labels"].items()
    assert at(monitor, "spec.endpoints.0.port") == at(service, "spec.ports.0.name")
    serving = "flotilla-statemetrics" if profile == "split" else "flotilla-compact"
    selector = service["spec"]["selector"].items()
    (pod,) = [pod for pod in on.pods() if selector <= pod["metadata"]["labels"].items()]
    assert pod["metadata"]["name"] == serving
    assert {"name": "state-metrics", "containerPort": 8081} in pod["spec"]["containers"][0]["ports"]
    assert at(on.one("Deployment", serving), "spec.replicas") == 1
    assert {"port": "state-metrics"} in at(on.one("NetworkPolicy", "flotilla-services"), "spec.ingress.1.ports")
    assert {subject["name"] for subject in on.one("ClusterRoleBinding", "flotilla-statemetrics")["subjects"]} == {
        serving
    }


@pytest.mark.parametrize(
    "values",
    ["services.statemetrics.replicas=2", "services.statemetrics.enabled=true,profile=compact,compact.replicas=2"],
)
def test_metrics_of_objects_are_served_once(chart: Helm, values: str) -> None:
    with pytest.raises(AssertionError, match="each replica serves all metrics"):
        rendered(chart, values)


CONSOLE = "flotilla-console"


@pytest.mark.parametrize("profile", ["split", "compact"])
def test_the_console_is_apart_and_for_who_asks(chart: Helm, profile: str) -> None:
    off, on = (rendered(chart, NO_CRDS, f"profile={profile}", f"console.enabled={one}") for one in ("false", "true"))
    for kind in ("Deployment", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service"):
        assert not [name for name in off.names(kind) if "console" in name]
    assert at(on.one("Deployment", CONSOLE), "spec.replicas") == 1
    (subject,) = on.one("ClusterRoleBinding", CONSOLE)["subjects"]
    assert subject["name"] == at(on.one("Deployment", CONSOLE), "spec.template.spec.serviceAccountName") == CONSOLE
    (pod,) = [pod for pod in on.pods() if pod["metadata"]["name"] == CONSOLE]
    assert on.one("Service", CONSOLE)["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert {"name": "console", "containerPort": 8090} in pod["spec"]["containers"][0]["ports"]
    assert not [
        argument
        for pod in on.pods()
        for argument in pod["spec"]["containers"][0].get("args", [])
        if argument == "console"
    ]
    assert not [kind for kind in ("Ingress", "HTTPRoute") if on.names(kind)]
    assert "flotilla-console-impersonation" not in on.names("ClusterRole")


def test_secrets_of_the_console_are_files(chart: Helm) -> None:
    given = "console.enabled=true,console.signIn={proxy,oidc},console.url=https://c,console.tls.secret=tls"
    proxy = "console.proxy.secret=proxy,console.proxy.key=shared,console.sessions.secret=cookies"
    oidc = "console.oidc.issuer=https://id,console.oidc.clientId=flotilla,console.oidc.clientSecret=idp"
    made = rendered(chart, NO_CRDS, given, proxy, oidc, "console.oidc.userPrefix=oidc:")
    args = made.args("Deployment", CONSOLE)
    folder = "/var/run/flotilla/console"
    assert {
        "--console-sign-in=proxy,oidc",
        "--console-oidc-user-prefix=oidc:",
        f"--console-proxy-secret-file={folder}/proxy-secret",
        f"--console-oidc-client-secret-file={folder}/oidc-client-secret",
        f"--console-cookie-key-file={folder}/cookie-key",
        f"--console-tls-key={folder}/tls.key",
    } <= set(args)
    load(split_flags([argument for argument in args if not argument.startswith("--config")])[0], {})
    volumes = at(made.one("Deployment", CONSOLE), "spec.template.spec.volumes")
    (files,) = [volume["projected"]["sources"] for volume in volumes if volume["name"] == "console"]
    assert {(one["secret"]["name"], item["key"], item["path"]) for one in files for item in one["secret"]["items"]} == {
        ("tls", "tls.crt", "tls.crt"),
        ("tls", "tls.key", "tls.key"),
        ("proxy", "shared", "proxy-secret"),
        ("cookies", "cookie-key", "cookie-key"),
        ("idp", "client-secret", "oidc-client-secret"),
    }


@pytest.mark.parametrize(
    ("version", "group", "verb"),
    [("1.36.0", "authentication.k8s.io", "impersonate:user-info"), ("1.35.4", "", "impersonate")],
)
def test_the_console_acts_as_the_users_that_are_named(chart: Helm, version: str, group: str, verb: str) -> None:
    named = "console.impersonation.users={alice,bob},console.impersonation.groups={dev}"
    named += ",console.impersonation.extraKeys={scopes}"
    made = chart.template("--kube-version", version, "--set", f"console.enabled=true,{NO_CRDS},{named}")
    role = Rendered(made).one("ClusterRole", "flotilla-console-impersonation")
    users, groups, extras, *requests = role["rules"]
    assert extras == {"apiGroups": [group], "resources": ["userextras/scopes"], "verbs": [verb]}
    assert users == {"apiGroups": [group], "resources": ["users"], "verbs": [verb], "resourceNames": ["alice", "bob"]}
    assert groups == {"apiGroups": [group], "resources": ["groups"], "verbs": [verb], "resourceNames": ["dev"]}
    verbs = {verb for rule in requests for verb in rule["verbs"]}
    assert all(verb.startswith("impersonate-on:user-info:") for verb in verbs)
    assert bool(verbs) == (version == "1.36.0")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("console.signIn={proxy}", "anybody could send the proxy's headers"),
        ("console.signIn={oidc}", "give issuer, clientId, and console.url"),
        ("console.signIn={fixed}", "the sign-in `fixed` needs it"),
        ("console.proxy.clientAuthority.configMap=x", "clients show certificates over TLS only"),
        ("services.console.replicas=2", "give console.sessions.secret"),
        ("services.console.enabled=true", "give console.enabled"),
        ("services.console.settings.console-port=1", "give console.port"),
    ],
)
def test_a_console_that_could_not_work_is_refused(chart: Helm, values: str, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        rendered(chart, NO_CRDS, "console.enabled=true", values)


def test_everybody_is_impersonated_only_where_the_apiserver_constrains_it(chart: Helm) -> None:
    given = ("--set", f"{NO_CRDS},console.enabled=true,console.impersonation.users={{*}}")
    made = Rendered(chart.template("--kube-version", "1.36.0", *given))
    assert "resourceNames" not in made.one("ClusterRole", "flotilla-console-impersonation")["rules"][0]
    with pytest.raises(AssertionError, match="name the users"):
        chart.template("--kube-version", "1.35.4", *given)


def test_dashboards_are_found_by_their_label(chart: Helm) -> None:
    made = rendered(chart, NO_CRDS, "monitoring.dashboards=true")
    boards = {name: one for name, one in made.of("ConfigMap").items() if "dashboard" in name}
    stored = {path.name: json.loads(path.read_text()) for path in Path(CHART, "monitoring", "dashboards").iterdir()}
    assert all(one["metadata"]["labels"]["grafana_dashboard"] == "1" for one in boards.values())
    shown = {key: json.loads(text) for one in boards.values() for key, text in one["data"].items()}
    assert shown == {f"flotilla-{name}": board for name, board in stored.items()}


def test_only_who_is_named_reaches_webhook_metrics_and_bus(chart: Helm) -> None:
    made = rendered(
        chart,
        NO_CRDS,
        "networkPolicy.apiserver={10.1.0.1/32},networkPolicy.nodes={10.1.0.0/16},networkPolicy.monitoring.team=sre",
    )
    ingress = {name: one["spec"]["ingress"] for name, one in made.of("NetworkPolicy").items()}
    assert ingress["flotilla-webhook"] == [
        {"ports": [{"port": "https"}], "from": [{"ipBlock": {"cidr": "10.1.0.1/32"}}]}
    ]
    assert {"ports": [{"port": "health"}]} in ingress["flotilla-services"]
    assert at(ingress["flotilla-services"], "1.from.0.namespaceSelector.matchLabels") == {"team": "sre"}
    assert all(rule["from"] for rule in ingress["flotilla-bus"])
    assert at(ingress["flotilla-bus"], "2.from.0.ipBlock.cidr") == "10.1.0.0/16"


def test_every_pod_is_under_the_policies_that_let_it_work(chart: Helm) -> None:
    """Ports that policies name exist in the pods that they are about, and clients of the bus are let in."""
    made = rendered(chart, NO_CRDS)
    clients = at(made.one("NetworkPolicy", "flotilla-bus"), "spec.ingress.0.from.0.podSelector.matchLabels").items()
    for pod in made.pods():
        ports = {port["name"] for port in pod["spec"]["containers"][0].get("ports", [])}
        name, labels = pod["metadata"]["name"], pod["metadata"]["labels"].items()
        assert clients <= labels
        if name in SERVICES | {"flotilla-nodeagent"}:
            assert {"health", "metrics"} <= ports
        if name == "flotilla-webhook":
            assert "https" in ports
        if name == "flotilla-bus":
            assert {"nats", "routes", "monitor"} <= ports


def test_a_bus_of_ones_own_is_reached_with_its_secrets(chart: Helm) -> None:
    made = rendered(chart, NO_CRDS, "nats.url=tls://nats.messaging:4222,nats.replicas=3")
    assert "--nats=tls://nats.messaging:4222" in made.args("Deployment", "flotilla-cloneset")
    assert "--nats-issuer=/var/run/flotilla/bus/issuer.seed" in made.args("Deployment", "flotilla-watcher")
    assert "--nats=tls://nats.messaging:4222" in made.args("DaemonSet", "flotilla-nodeagent")
    assert "bus-copies: 3" in made.settings()
    assert not any(
        "flotilla-bus" in name for kind in ("Role", "ServiceAccount", "Service") for name in made.names(kind)
    )
    alone = rendered(chart, NO_CRDS, "nats.url=tls://nats.messaging:4222,daemon.enabled=false")
    assert not any("issuer" in argument for argument in alone.args("Deployment", "flotilla-watcher"))


def test_the_bus_of_a_large_cluster_gets_more_memory(chart: Helm) -> None:
    made = rendered(chart, NO_CRDS, "nats.memory.goLimit=1GiB,nats.memory.store=2GB")
    environment = made.one("StatefulSet", "flotilla-bus")["spec"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "GOMEMLIMIT", "value": "1GiB"} in environment
    assert {"name": "GOGC", "value": "90"} in environment
    assert "max_memory_store: 2GB" in made.one("ConfigMap", "flotilla-bus")["data"]["nats.conf"]


def test_three_servers_know_each_other(chart: Helm) -> None:
    made = rendered(chart, NO_CRDS, "nats.replicas=3")
    configuration = made.one("ConfigMap", "flotilla-bus")["data"]["nats.conf"]
    assert [
        f"flotilla-bus-{server}.flotilla-bus-servers.kruise-system.svc" in configuration for server in range(4)
    ] == [
        True,
        True,
        True,
        False,
    ]
    assert "bus-copies: 3" in made.settings()
    assert "cluster {" not in rendered(chart, NO_CRDS).one("ConfigMap", "flotilla-bus")["data"]["nats.conf"]
