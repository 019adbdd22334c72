"""A real apiserver accepts the chart's objects, and Pod Security accepts their pods.

Everything is a dry run on the server: defaulting, validation and admission happen, and nothing is stored but the
namespaces of these tests with their ServiceAccounts.
"""

import json
import re
import secrets
from collections.abc import Iterator

import pytest

from tests.support.chart import Rendered, rendered
from tests.support.cluster import Cluster, eventually
from tests.support.fleet import Fleet
from tests.support.helm import Helm
from tests.testkit.documents import Json

SETS: dict[str, tuple[str, ...]] = {
    "split": (),
    "compact": ("profile=compact",),
    "three-servers": ("nats.replicas=3",),
    "outside-bus": ("nats.url=tls://nats.messaging:4222",),
    "much": (
        "autoscaling.webhook.enabled=true,daemon.credentialProvider.enable=true,daemon.kubeletLogins=true",
        "networkPolicy.apiserver={10.0.0.1/32},networkPolicy.nodes={10.0.0.0/16},monitoring.dashboards=true",
        "daemon.credentialProvider.awsCredentialsDir=/root/.aws,webhookConfiguration.aksIntegration=true",
    ),
}
NOT_SERVED = {"ServiceMonitor", "PrometheusRule", "Certificate", "Issuer"}
AGENT = "flotilla-nodeagent"


@pytest.fixture(params=SETS)
def placed(chart: Helm, shared: Fleet, request: pytest.FixtureRequest) -> Iterator[tuple[Cluster, Rendered]]:
    """Yield the chart as a release in a namespace of its own, under Pod Security restricted, with its accounts."""
    namespace, cluster = f"chart-{request.param}-{secrets.token_hex(3)}", shared.cluster
    cluster.kubectl("create", "namespace", namespace)
    for mode in ("enforce", "warn", "audit"):
        cluster.kubectl("label", "namespace", namespace, f"pod-security.kubernetes.io/{mode}=restricted")
    made = rendered(chart, f"installation.namespace={namespace}", *SETS[request.param], namespace=namespace)
    accounts = {"kind": "List", "apiVersion": "v1", "items": list(made.of("ServiceAccount").values())}
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(accounts))
    yield cluster, made
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


def refusal(cluster: Cluster, *arguments: str, document: Json) -> str:
    """Return the apiserver's refusal; empty if it accepts the object."""
    try:
        cluster.kubectl(*arguments, "--dry-run=server", "-f", "-", stdin=json.dumps(document))
    except AssertionError as refused:
        return str(refused)
    return ""


def test_the_apiserver_takes_every_object(placed: tuple[Cluster, Rendered]) -> None:
    cluster, made = placed
    assert not NOT_SERVED & {one["kind"] for one in made.objects}
    definitions = list(made.of("CustomResourceDefinition").values())
    others = [alone(one) for one in made.objects if one["kind"] != "CustomResourceDefinition"]
    apply = ("apply", "--server-side", "--force-conflicts", "--validate=strict")
    assert refusal(cluster, "replace", document={"kind": "List", "apiVersion": "v1", "items": definitions}) == ""
    assert refusal(cluster, *apply, document={"kind": "List", "apiVersion": "v1", "items": others}) == ""


def alone(document: Json) -> Json:
    """Return the object; webhook configurations get another name, because those of the plane have a URL."""
    if "webhooks" not in document:
        return document
    return document | {"metadata": document["metadata"] | {"name": "chart-" + document["metadata"]["name"]}}


async def test_pods_run_under_pod_security_restricted_but_for_the_agent(placed: tuple[Cluster, Rendered]) -> None:
    cluster, made = placed
    said: dict[str, str] = {}

    def accounts_are_known() -> bool:
        """Report whether the apiserver's admission, which uses a cache, has all ServiceAccounts."""
        said.update({pod["metadata"]["name"]: refusal(cluster, "create", document=plain(pod)) for pod in made.pods()})
        return not any("error looking up service account" in text for text in said.values())

    await eventually(accounts_are_known)
    assert {name: text for name, text in said.items() if text and name != AGENT} == {}
    assert broken_rules(said[AGENT], "restricted") == {"restricted volume types", "runAsNonRoot != true", "runAsUser=0"}


@pytest.mark.parametrize("placed", ["split"], indirect=True)
async def test_of_the_baseline_the_agent_breaks_nothing_but_its_two_folders(placed: tuple[Cluster, Rendered]) -> None:
    cluster, made = placed
    namespace = made.one("DaemonSet", AGENT)["metadata"]["namespace"]
    cluster.kubectl("label", "--overwrite", "namespace", namespace, "pod-security.kubernetes.io/enforce=baseline")
    (agent,) = (pod for pod in made.pods() if pod["metadata"]["name"] == AGENT)

    def said() -> str:
        return refusal(cluster, "create", document=agent)

    await eventually(lambda: broken_rules(said(), "baseline") == {"hostPath volumes"})
    assert '(volumes "run", "state")' in said()


def broken_rules(refused: str, level: str) -> set[str]:
    """Return the rules of a level of Pod Security that a pod breaks, without the fields that break them."""
    listed = refused.partition(f'violates PodSecurity "{level}:latest": ')[2].strip()
    return {rule.strip() for rule in re.sub(r"\([^)]*\)", "", listed).split(",") if rule.strip()}


def plain(pod: Json) -> Json:
    """Return the pod, with the default account where only a hook creates its own."""
    spec = pod["spec"]
    account = spec["serviceAccountName"]
    return pod | {"spec": spec | {"serviceAccountName": "default" if account.endswith("-finalizer") else account}}
