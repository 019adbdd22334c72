"""Values that users of OpenKruise's charts give: each does what it did there, or nothing, and none is refused."""

from pathlib import Path

import pytest

from tests.support.chart import ABSENT, Rendered, at, rendered
from tests.support.cluster import Cluster
from tests.support.fleet import Fleet
from tests.support.helm import CHART, Helm

DEPLOYMENT = "spec.template.spec"
DEPLOYED = ("Deployment", "flotilla-cloneset")
AGENT = ("DaemonSet", "flotilla-nodeagent")


NODES = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
POD_VALUES: list[dict[str, list[tuple[tuple[str, str], str, object]]]] = [
    {
        "imagePullSecrets[0].name=login": [
            (DEPLOYED, "imagePullSecrets.0.name", "login"),
            (AGENT, "imagePullSecrets.0.name", "login"),
        ],
        "manager.image.repository=corp/flotilla": [(DEPLOYED, "containers.0.image", "corp/flotilla:0.1.0")],
        "manager.resources.limits.memory=1Gi": [(DEPLOYED, "containers.0.resources.limits.memory", "1Gi")],
        "manager.metrics.port=9000": [(DEPLOYED, "containers.0.ports.0.containerPort", 9000)],
        "manager.healthProbe.port=9001": [(DEPLOYED, "containers.0.ports.1.containerPort", 9001)],
        "manager.nodeSelector.a=b": [(DEPLOYED, "nodeSelector.a", "b")],
        f"manager.nodeAffinity.{NODES}[0].x=1": [(DEPLOYED, f"affinity.nodeAffinity.{NODES}.0.x", 1)],
        "manager.tolerations[0].operator=Exists": [(DEPLOYED, "tolerations.0.operator", "Exists")],
        "daemon.port=10333": [(AGENT, "containers.0.ports.0.containerPort", 10333)],
        "daemon.socketLocation=/run/k3s": [(AGENT, "volumes.3.hostPath.path", "/run/k3s")],
        "daemon.nodeSelector.a=b": [(AGENT, "nodeSelector.a", "b")],
        "daemon.affinity.nodeAffinity=null": [(AGENT, "affinity.nodeAffinity", ABSENT)],
        "daemon.resources.limits.memory=1Gi": [(AGENT, "containers.0.resources.limits.memory", "1Gi")],
        "daemon.extraEnvs[0].name=PROXY,daemon.extraEnvs[0].value=p": [(AGENT, "containers.0.env.2.value", "p")],
    },
    {
        "manager.image.tag=v9": [(AGENT, "containers.0.image", "flotilla/flotilla:v9")],
        "spec.nodeSelector.a=b": [(DEPLOYED, "nodeSelector.a", "b")],
        "spec.nodeAffinity.x.y=1": [(DEPLOYED, "affinity.nodeAffinity.x.y", 1)],
        "spec.tolerations[0].operator=Exists": [(DEPLOYED, "tolerations.0.operator", "Exists")],
    },
    {"spec.nodeSelector.a=b,manager.nodeSelector.c=d": [(DEPLOYED, "nodeSelector", {"c": "d"})]},
]
"""Values that are given together, and the fields of pods that each of them sets."""


@pytest.mark.parametrize("given", POD_VALUES, ids=["most", "those of before", "both"])
def test_values_of_pods(chart: Helm, given: dict[str, list[tuple[tuple[str, str], str, object]]]) -> None:
    made = rendered(chart, "crds.managed=false", *given)
    for value, facts in given.items():
        for owner, path, expected in facts:
            assert at(made.one(*owner), f"{DEPLOYMENT}.{path}") == expected, value


def test_values_that_are_arguments(chart: Helm) -> None:
    given = {
        "daemon.log.level=5": "--log-level=5",
        "daemon.socketFile=containerd/containerd.sock": "--cri-socket=containerd/containerd.sock",
        "daemon.port=10333": "--metrics-port=10333",
        "daemon.credentialProvider.enable=true": "--plugin-bin-dir=/kruise/plugins",
    }
    arguments = rendered(chart, "crds.managed=false", *given).args(*AGENT)
    plugins = "--plugin-config-file=/kruise/credential-provider/CredentialProviderPlugin.yaml"
    assert {*given.values(), plugins} <= set(arguments)


SETTINGS = [
    {
        "manager.log.level=4": "log-level: '4'",
        "manager.loggingFormat=text": "log-format: text",
        "manager.webhook.port=9443": "webhook-port: 9443",
        "manager.custom_resource_enable=CloneSet": "custom-resource-enable: CloneSet",
        r"featureGates=AllAlpha=true\,EnableExternalCerts=false": (
            "feature-gates: AllAlpha=true,EnableExternalCerts=false"
        ),
    },
    {"manager.log.level=5": "log-level: '5'", "manager.loggingFormat=": "log-format: json", "featureGates=": ""},
]
"""Values that are given together, and the line of the settings that each of them is."""


@pytest.mark.parametrize("given", SETTINGS, ids=["all", "others"])
def test_values_that_are_settings(chart: Helm, given: dict[str, str]) -> None:
    settings = rendered(chart, "crds.managed=false", *given).settings().replace('"', "'")
    assert [line for line in given.values() if line not in settings] == []


def test_the_default_gates_change_nothing(chart: Helm) -> None:
    assert "feature-gates: ImagePullJobGate=true" in rendered(chart, "crds.managed=false").settings()


def test_plugins_are_mounted_from_the_host(chart: Helm) -> None:
    given = "daemon.credentialProvider."
    made = rendered(
        chart,
        "crds.managed=false",
        f"{given}enable=true,{given}configmap=mine,{given}hostPath=/opt/plugins,{given}awsCredentialsDir=/root/.aws",
    )
    spec = made.one(*AGENT)["spec"]["template"]["spec"]
    mounts = {mount["name"]: mount for mount in spec["containers"][0]["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    assert volumes["plugin-configuration"]["configMap"]["name"] == "mine"
    assert volumes["plugins"]["hostPath"]["path"] == "/opt/plugins"
    assert {mounts[name]["mountPath"] for name in ("plugin-configuration", "plugins", "aws-credentials")} == {
        "/kruise/credential-provider",
        "/kruise/plugins",
        "/root/.aws",
    }
    assert all(mounts[name]["readOnly"] for name in ("plugin-configuration", "plugins", "aws-credentials"))
    assert {"name": "HOME", "value": "/root"} in spec["containers"][0]["env"]


def test_annotations_of_external_certificates(chart: Helm) -> None:
    made = rendered(chart, "externalCerts.annotations.inject=me,featureGates=EnableExternalCerts=true")
    annotated = {
        one["metadata"]["name"] for one in made.objects if one["metadata"].get("annotations", {}).get("inject") == "me"
    }
    assert {"clonesets.apps.kruise.io", "kruise-mutating-webhook-configuration"} <= annotated
    assert "imagepulljobs.apps.kruise.io" not in annotated


DEFAULTS = """
crds: {managed: true}
installation: {namespace: kruise-system, createNamespace: true, roleListGroups: ['*']}
featureGates: ImagePullJobGate=true
externalCerts: {annotations: {}}
enableKubeCacheMutationDetector: false
imagePullSecrets: []
manager:
  log: {level: "4"}
  replicas: 2
  image: {repository: openkruise/kruise-manager, tag: v1.9.0}
  webhook: {port: 9876}
  metrics: {port: 8080}
  healthProbe: {port: 8000}
  pprofAddr: localhost:8090
  resyncPeriod: "0"
  loggingFormat: ""
  resources: {limits: {cpu: 200m, memory: 512Mi}, requests: {cpu: 100m, memory: 256Mi}}
  hostNetwork: false
  nodeAffinity: {}
  nodeSelector: {}
  tolerations: []
webhookConfiguration: {timeoutSeconds: 30, aksIntegration: false}
daemon:
  log: {level: "4"}
  port: 10221
  enablePprof: true
  pprofAddr: localhost:10222
  socketLocation: /var/run
  socketFile: ""
  nodeSelector: {}
  resources: {limits: {cpu: 50m, memory: 128Mi}, requests: {cpu: "0", memory: "0"}}
  extraEnvs: []
  credentialProvider:
    enable: false
    configmap: credential-provider-config
    hostPath: credential-provider-plugin
    awsCredentialsDir: ""
serviceAccount: {annotations: {}}
helmHooks: {image: {repository: openkruise/kruise-helm-hook, tag: v0.1.0}}
"""
"""Values that `helm upgrade --reuse-values` brings along from a release of OpenKruise 1.9 without changes."""


def test_all_values_of_openkruise_at_once(chart: Helm, tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(DEFAULTS, encoding="utf-8")
    made = Rendered(chart.template("--values", str(tmp_path / "values.yaml")))
    plain, kept = rendered(chart), {(one["kind"], one["metadata"]["name"]) for one in made.objects}
    assert kept == {(one["kind"], one["metadata"]["name"]) for one in plain.objects}
    assert at(made.one(*DEPLOYED), f"{DEPLOYMENT}.containers.0.resources.requests.memory") == "256Mi"


IGNORED = {
    "installation.roleListGroups": "installation.roleListGroups={*}",
    "enableKubeCacheMutationDetector": "enableKubeCacheMutationDetector=true",
    "helmHooks": "helmHooks.image.repository=openkruise/kruise-helm-hook,helmHooks.image.tag=v0.1.0",
    "manager.resyncPeriod": "manager.resyncPeriod=0",
    "manager.pprofAddr": "manager.pprofAddr=localhost:8090",
    "manager.metrics.addr": "manager.metrics.addr=0.0.0.0",
    "daemon.enablePprof": "daemon.enablePprof=false",
    "daemon.pprofAddr": "daemon.pprofAddr=localhost:10222",
    "webhookConfiguration.failurePolicy": "webhookConfiguration.failurePolicy.pods=Ignore",
}


def test_values_without_meaning_change_nothing(chart: Helm) -> None:
    without = "crds.managed=false"
    assert rendered(chart, without, *IGNORED.values()).objects == rendered(chart, without).objects


def notes(helm: Helm, cluster: Cluster, *values: str) -> str:
    """Return the notes after the installation, as a dry run."""
    given = [part for value in values for part in ("--set", value)]
    return helm.run(
        "install", "flotilla", str(CHART), "--kubeconfig", str(cluster.kubeconfig), "--dry-run=client",
        "--take-ownership", "--namespace", "kruise-system", *given,
    ).partition("NOTES:")[2]  # fmt: skip


def test_notes_name_what_has_no_effect(chart: Helm, shared: Fleet) -> None:
    told = notes(chart, shared.cluster, *IGNORED.values())
    assert set(told.partition("have no effect here:")[2].split()) == set(IGNORED)
    assert "have no effect" not in notes(chart, shared.cluster)


def test_images_without_flotilla_in_them_are_not_used(chart: Helm, shared: Fleet) -> None:
    theirs = "manager.image.repository=corp/openkruise/kruise-manager,manager.image.tag=v1.9.0"
    for owner in (DEPLOYED, AGENT):
        used = at(rendered(chart, theirs).one(*owner), f"{DEPLOYMENT}.containers.0.image")
        assert used == "flotilla/flotilla:0.1.0"
    assert "corp/openkruise/kruise-manager, which has nothing of Flotilla in it" in notes(chart, shared.cluster, theirs)


def test_notes_say_what_to_try_and_what_to_know(chart: Helm, shared: Fleet) -> None:
    told = notes(chart, shared.cluster)
    assert "kubectl get clone sample" in told
    assert "networkPolicy.apiserver narrows that" in told
    assert "control-plane=openkruise" not in told
    assert "kubectl label namespace kruise-system control-plane=openkruise" in notes(
        chart, shared.cluster, "featureGates=KruisePodReadinessGate=true"
    )
    assert "Without node agents" in notes(chart, shared.cluster, "daemon.enabled=false")
