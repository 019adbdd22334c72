"""Fields of the CRDs: required, open, restricted by the schema itself, and how the versions differ."""

import re

import pytest

from flotilla_common.api.crds import definition
from flotilla_common.api.kinds import catalogue
from flotilla_common.api.kinds.broadcastjob import api as broadcastjob
from flotilla_common.api.kinds.imagelistpulljob import api as imagelistpulljob
from flotilla_common.api.kinds.sidecarset.revisions import SIDECAR_MEMBERS
from tests.unit.crds import schemas
from tests.unit.crds.schemas import BOTH, RESTRICTIONS, Node, int_or_string, restricted, schema_of

KEEPS = "x-kubernetes-preserve-unknown-fields"
STRATEGY = ".spec.updateStrategy"
ROLLING = f"{STRATEGY}.rollingUpdate"
SIDECARS = [".spec.containers[]", ".spec.initContainers[]"]


def fields(kind: str, version: str) -> dict[str, Node]:
    """Return the nodes of a version's schema by path."""
    return schemas.fields(catalogue.called(kind), version)


def in_all_versions(*kinds: str) -> list[tuple[str, str]]:
    """Return these kinds in each of their versions."""
    found = {kind: definition(catalogue.called(kind))["spec"]["versions"] for kind in kinds}
    return [(kind, version["name"]) for kind, versions in found.items() for version in versions]


REQUIRED: dict[str, dict[str, list[str]]] = {
    "AdvancedCronJob": {".spec": ["schedule", "template"]},
    "BroadcastJob": {".spec": ["template"], ".status": ["active", "desired", "failed", "phase", "succeeded"]},
    "CloneSet": {
        ".spec": ["selector", "template"],
        ".status": ["availableReplicas", "readyReplicas", "replicas", "updatedReadyReplicas", "updatedReplicas"],
    },
    "ContainerRecreateRequest": {".spec": ["containers", "podName"], ".status": ["phase"]},
    "DaemonSet": {
        ".spec": ["selector", "template"],
        ".status": [
            *("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"),
            "updatedNumberScheduled",
        ],
        ROLLING: [],
    },
    "EphemeralJob": {".spec": ["selector", "template"], ".spec.template": ["ephemeralContainers"]},
    "NodePodProbe": {
        ".spec.podProbes[]": ["IP", "name", "namespace", "uid"],
        ".spec.podProbes[].probes[]": ["containerName", "name", "probe"],
        ".status.podProbeStatuses[].probeStates[]": ["name", "state"],
    },
    "PodProbeMarker": {
        ".spec": ["probes", "selector"],
        ".spec.probes[]": ["containerName", "name", "probe"],
        ".status": ["observedGeneration"],
    },
    "ResourceDistribution": {".spec": ["resource", "targets"]},
    "StatefulSet": {
        ".spec": ["selector", "template"],
        ".status": ["availableReplicas", "currentReplicas", "readyReplicas", "replicas", "updatedReplicas"],
    },
}


@pytest.mark.parametrize(("kind", "version"), in_all_versions(*REQUIRED))
def test_required_fields(kind: str, version: str):
    known, expected = fields(kind, version), REQUIRED[kind]
    assert {path: known[path].get("required", []) for path in expected} == expected


def required(kind: str, version: str) -> dict[str, list[str]]:
    """Return all members that are required, by the path of the object."""
    return {path: node["required"] for path, node in fields(kind, version).items() if "required" in node}


@pytest.mark.parametrize("version", BOTH)
def test_all_that_sidecarsets_require(version: str):
    found = required("SidecarSet", version)
    assert {path: names for path, names in found.items() if not path.endswith("matchExpressions[]")} == {
        ".status": ["matchedPods", "readyPods", "updatedPods"],
        **{f"{path}.resourcesPolicy": ["resourcesExpr", "targetContainersMode"] for path in SIDECARS},
        **{f"{path}.transferEnv[].sourceContainerNameFrom.fieldRef": ["fieldPath"] for path in SIDECARS},
    }


@pytest.mark.parametrize(("version", "keys"), [("v1alpha1", "nodeTopologyKeys"), ("v1beta1", "keys")])
def test_all_that_persistent_pod_states_require(version: str, keys: str):
    assert required("PersistentPodState", version) == {
        ".spec": ["targetRef"],
        ".spec.targetRef": ["apiVersion", "kind", "name"],
        ".spec.requiredPersistentTopology": [keys],
        ".spec.preferredPersistentTopology[]": ["preference", "weight"],
        ".spec.preferredPersistentTopology[].preference": [keys],
        ".spec.persistentPodAnnotations[]": ["key"],
        ".status": ["observedGeneration"],
    }


OPEN: dict[str, dict[str, set[str]]] = {
    "AdvancedCronJob": {".spec.template.jobTemplate": set()},
    "BroadcastJob": {".spec.template": set()},
    "CloneSet": {".spec.template": set(), ".spec.volumeClaimTemplates[]": set()},
    "DaemonSet": {".spec.template": set()},
    "EphemeralJob": {".spec.template.ephemeralContainers[]": set()},
    "SidecarSet": {**{path: set(SIDECAR_MEMBERS) for path in SIDECARS}, ".spec.volumes[]": set()},
    "StatefulSet": {".spec.template": set(), ".spec.volumeClaimTemplates[]": set()},
}
"""Objects of Kubernetes, and the members of them that the schema knows."""


@pytest.mark.parametrize(("kind", "version"), in_all_versions(*OPEN))
def test_embedded_objects_keep_unknown_fields(kind: str, version: str):
    known, expected = fields(kind, version), OPEN[kind]
    assert {path: set(known[path].get("properties", ())) for path in expected} == expected
    assert [path for path in expected if known[path][KEEPS] is not True] == []


CLONE_SET_NUMBERS = ("maxUnavailable", "maxSurge", "partition", "inPlaceUpdateStrategy.imagePreDownloadParallelism")
SIDECAR_SET_NUMBERS = {f"{STRATEGY}.partition", f"{STRATEGY}.maxUnavailable"}


@pytest.mark.parametrize(
    ("kind", "version", "expected"),
    [
        ("BroadcastJob", "v1beta1", {".spec.parallelism"}),
        *(
            ("CloneSet", version, {".spec.scaleStrategy.maxUnavailable", *(f"{at}.{one}" for one in CLONE_SET_NUMBERS)})
            for version, at in (("v1alpha1", STRATEGY), ("v1beta1", ROLLING))
        ),
        (
            "DaemonSet",
            "v1beta1",
            {".spec.burstReplicas", *(f"{ROLLING}.{one}" for one in ("maxUnavailable", "maxSurge", "partition"))},
        ),
        ("SidecarSet", "v1alpha1", SIDECAR_SET_NUMBERS),
        ("SidecarSet", "v1beta1", SIDECAR_SET_NUMBERS),
        (
            "StatefulSet",
            "v1beta1",
            {
                ".spec.reserveOrdinals[]",
                ".spec.scaleStrategy.maxUnavailable",
                f"{ROLLING}.maxUnavailable",
                f"{ROLLING}.inPlaceUpdateStrategy.imagePreDownloadParallelism",
            },
        ),
    ],
)
def test_numbers_and_percentages(kind: str, version: str, expected: set[str]):
    assert int_or_string(fields(kind, version)) == expected


def test_kinds_of_numbers():
    known = fields("PodProbeMarker", "v1alpha1")
    assert known[".spec.probes[].probe.httpGet.port"]["x-kubernetes-int-or-string"]
    assert known[".spec.probes[].probe.terminationGracePeriodSeconds"]["format"] == "int64"
    assert fields("StatefulSet", "v1beta1")[f"{ROLLING}.partition"]["type"] == "integer"


# What the schema itself refuses, or fills in


@pytest.mark.parametrize(
    ("kind", "version"), in_all_versions("BroadcastJob", "DaemonSet", "EphemeralJob", "PodProbeMarker", "StatefulSet")
)
def test_admission_judges_values_and_fills_in_defaults(kind: str, version: str):
    assert restricted(fields(kind, version)) == []


def limits(kind: str, version: str) -> dict[tuple[str, str], object]:
    """Return what the schema refuses or fills in, by path and word."""
    known = fields(kind, version)
    return {(path, word): node[word] for path, node in known.items() for word in RESTRICTIONS if word in node}


NOT_NEGATIVE = [
    *(".spec.activeDeadlineSeconds", ".spec.ttlSecondsAfterFinished", ".spec.strategy.minStartedSeconds"),
    *(".spec.strategy.terminationGracePeriodSeconds", ".spec.strategy.unreadyGracePeriodSeconds"),
]
SIDECAR_SET_LIMITS = {
    (".spec.injectionStrategy.revision.policy", "enum"): ["Always", "Partial"],
    **{(f"{path}.resourcesPolicy.targetContainersMode", "enum"): ["sum", "max"] for path in SIDECARS},
    **{(f"{path}.resourcesPolicy.targetContainersNameRegex", "default"): ".*" for path in SIDECARS},
}
CONCURRENCY = {(".spec.concurrencyPolicy", "enum"): ["Allow", "Forbid", "Replace"]}


@pytest.mark.parametrize(
    ("kind", "alpha", "beta"),
    [
        ("AdvancedCronJob", CONCURRENCY, CONCURRENCY),
        ("CloneSet", {}, {(".spec.scaleStrategy.enablePVCReuse", "default"): False}),
        (
            "PersistentPodState",
            {},
            {
                (".spec.preferredPersistentTopology[].weight", "minimum"): 0,
                (".spec.persistentPodStateRetentionPolicy", "enum"): ["WhenScaled", "WhenDeleted"],
            },
        ),
        ("SidecarSet", SIDECAR_SET_LIMITS, SIDECAR_SET_LIMITS),
    ],
)
def test_limits_and_defaults(kind: str, alpha: dict[str, object], beta: dict[str, object]):
    assert (limits(kind, "v1alpha1"), limits(kind, "v1beta1")) == (alpha, beta)


def test_only_the_newer_version_of_recreate_requests_restricts_values():
    found = limits("ContainerRecreateRequest", "v1beta1")
    assert limits("ContainerRecreateRequest", "v1alpha1") == {}
    low = {path: value for (path, word), value in found.items() if word == "minimum" and path.startswith(".spec")}
    assert low == dict.fromkeys(NOT_NEGATIVE, 0)
    assert found[".spec.strategy.failurePolicy", "enum"] == ["Fail", "Ignore"]
    phases = {"", "Pending", "Recreating", "Succeeded", "Failed", "Completed"}
    assert set(fields("ContainerRecreateRequest", "v1beta1")[".status.phase"]["enum"]) == phases


# How the versions differ


@pytest.mark.parametrize(
    ("kind", "only_alpha", "only_beta"),
    [
        (
            "DaemonSet",
            {".status.daemonSetHash"},
            {".spec.scaleStrategy", ".spec.scaleStrategy.partitionedScaling", ".status.updateRevision"},
        ),
        ("SidecarSet", {".spec.namespace"}, {".spec.customVersion"}),
    ],
)
def test_fields_that_only_one_version_has(kind: str, only_alpha: set[str], only_beta: set[str]):
    alpha, beta = set(fields(kind, "v1alpha1")), set(fields(kind, "v1beta1"))
    assert (alpha - beta, beta - alpha) == (only_alpha, only_beta)


@pytest.mark.parametrize(
    ("kind", "added"),
    [
        ("ContainerRecreateRequest", {".status.conditions", ".status.containerStatusSnapshot"}),
        (
            "StatefulSet",
            {
                *(".spec.reserveOrdinals", ".spec.ordinals", ".spec.scaleStrategy", ".spec.lifecycle"),
                *(".spec.persistentVolumeClaimRetentionPolicy", ".spec.volumeClaimUpdateStrategy"),
                *(".status.updatedReadyReplicas", ".status.updatedAvailableReplicas", ".status.volumeClaims"),
            },
        ),
    ],
)
def test_members_that_only_the_newer_version_has(kind: str, added: set[str]):
    alpha, beta = set(fields(kind, "v1alpha1")), set(fields(kind, "v1beta1"))
    assert alpha <= beta
    assert {".".join(path.split(".")[:3]).removesuffix("[]") for path in beta - alpha} == added


@pytest.mark.parametrize(
    ("kind", "renamed"),
    [
        ("PersistentPodState", {"nodeTopologyKeys": "keys"}),
        (
            "ResourceDistribution",
            {"namespaceLabelSelector": "namespaceSelector", "failedNamespace": "failedNamespaces"},
        ),
    ],
)
def test_only_these_members_have_other_names(kind: str, renamed: dict[str, str]):
    def newer(path: str) -> str:
        return re.sub(r"\w+", lambda name: renamed.get(name[0], name[0]), path)

    beta = fields(kind, "v1beta1")
    assert {newer(path) for path in fields(kind, "v1alpha1")} == {newer(path) for path in beta}
    assert not set(re.findall(r"\w+", " ".join(beta))) & renamed.keys()


def test_rolling_updates_of_clonesets_moved():
    alpha, beta = fields("CloneSet", "v1alpha1"), fields("CloneSet", "v1beta1")
    rollout = {path for path in alpha if path.startswith(f"{STRATEGY}.") and path != f"{STRATEGY}.type"}
    assert set(alpha) - set(beta) == rollout | {".spec.scaleStrategy.disablePVCReuse"}
    moved = {path.replace(f"{STRATEGY}.", f"{ROLLING}.") for path in rollout}
    added = {".spec.scaleStrategy.enablePVCReuse", ".spec.scaleStrategy.excludePreparingDelete"}
    assert set(beta) - set(alpha) == moved | added | {ROLLING, f"{ROLLING}.podUpdatePolicy"}


def test_broadcast_jobs_are_the_same_in_both_versions():
    kind = catalogue.called("BroadcastJob")
    assert schema_of(kind, "v1alpha1") == schema_of(kind, "v1beta1")
    assert ".spec.completionPolicy.backoffLimit" not in fields("BroadcastJob", "v1beta1")


def test_only_the_newer_version_of_cron_jobs_knows_lists_of_images():
    alpha, beta = fields("AdvancedCronJob", "v1alpha1"), fields("AdvancedCronJob", "v1beta1")
    images = ".spec.template.imageListPullJobTemplate"
    assert alpha.keys() <= beta.keys()
    assert {path for path in beta.keys() - alpha.keys() if not path.startswith(f"{images}.")} == {images}
    assert beta[f"{images}.spec"] == imagelistpulljob.spec_schema()
    assert beta[f"{images}.spec"]["required"] == ["completionPolicy", "images"]


# Single fields


@pytest.mark.parametrize(("version", "count"), [("v1alpha1", 1), ("v1beta1", 2)])
def test_templates_of_cron_jobs(version: str, count: int):
    known = fields("AdvancedCronJob", version)
    metadata = [path for path in known if path.startswith(".spec.template") and path.endswith(".metadata")]
    assert [known[path][KEEPS] for path in metadata] == [True] * count
    assert known[".spec.template.broadcastJobTemplate.spec"] == broadcastjob.spec_schema()


def test_grpc_probes_and_keys_of_conditions():
    assert [path for path in fields("PodProbeMarker", "v1alpha1") if path.startswith(".spec.probes[].probe.grpc")]
    conditions = fields("ContainerRecreateRequest", "v1beta1")[".status.conditions"]
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


@pytest.mark.parametrize(
    ("version", "selector"), [("v1alpha1", "namespaceLabelSelector"), ("v1beta1", "namespaceSelector")]
)
def test_the_apiserver_looks_at_a_distributed_resource_as_at_an_object_of_its_own(version: str, selector: str):
    found = fields("ResourceDistribution", version)
    resource = found[".spec.resource"]
    assert (resource["x-kubernetes-embedded-resource"], resource[KEEPS]) == (True, True)
    assert {"matchLabels", "matchExpressions"} == found[f".spec.targets.{selector}"]["properties"].keys()


def test_the_built_in_field_for_ready_seconds_is_elsewhere():
    assert ".spec.minReadySeconds" not in fields("StatefulSet", "v1beta1")
    assert f"{ROLLING}.minReadySeconds" in fields("StatefulSet", "v1alpha1")
