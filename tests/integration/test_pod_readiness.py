"""The gate KruisePodReadinessGate: the webhook adds the readiness gate to every pod, and we set its condition."""

from pathlib import Path

from flotilla_common.api.podrules import LACKS_READINESS_GATE
from tests.support.cluster import Cluster, control_plane, eventually
from tests.support.fleet import SERVICES, Fleet, fleet
from tests.support.podrules import pod_rules
from tests.testkit.manifests import manifest

POD = manifest("pod-readiness-pod")
DEPLOYMENT = manifest("pod-readiness-deployment")
CLONE_SET = manifest("pod-readiness-clone-set")


def ready_with_gate(cluster: Cluster, name: str) -> bool:
    pod = cluster.read("pod", name)
    conditions = {condition["type"]: condition["status"] for condition in pod["status"].get("conditions", [])}
    gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates", [])]
    return gates == ["KruisePodReady"] and conditions.get("KruisePodReady") == conditions.get("Ready") == "True"


async def test_with_the_gate_every_pod_gets_gate_and_condition(tmp_path: Path):
    flags = ["--feature-gates=KruisePodReadinessGate=true"]
    async with control_plane(tmp_path) as cluster, fleet(cluster, (*SERVICES, "sidecar"), flags) as flotilla:
        assert LACKS_READINESS_GATE in pod_rules(cluster)
        for manifest in (POD, DEPLOYMENT, CLONE_SET):
            cluster.apply(manifest)
        await eventually(lambda: ready_with_gate(cluster, "bare"))
        await eventually(lambda: cluster.read("deployment", "web")["status"].get("readyReplicas") == 3)
        await eventually(lambda: cluster.read("clone", "clone").get("status", {}).get("readyReplicas") == 3)
        page = flotilla.members["sidecar"].metrics_text()
        passes = 'controller_runtime_reconcile_total{controller="pod-readiness-controller",result="success"} '
        ours = next(line for line in page.splitlines() if line.startswith(passes))
        assert 4 <= float(ours.removeprefix(passes)) <= 8  # bare and web's three; the CloneSet's are not looked at
        assert "cloneset_scale_expectation_leakage" in flotilla.members["cloneset"].metrics_text()


async def test_without_the_gate_no_pod_goes_through_the_webhook_but_conditions_are_given(shared: Fleet):
    cluster = shared.cluster
    assert LACKS_READINESS_GATE not in pod_rules(cluster)
    gated = POD.replace("spec: {", "spec: {readinessGates: [{conditionType: KruisePodReady}], ")
    cluster.apply(gated)
    await eventually(lambda: ready_with_gate(cluster, "bare"))
