"""The UnitedDeployment CRD (uniteddeployment.md §1 and §2).

Both versions have the same spec, except that v1alpha1 also accepts CloneSets in v1alpha1's form; their statuses differ.
"""

from flotilla_common.api.crds.schema import (
    AGE,
    Column,
    Schema,
    Version,
    anything,
    array,
    boolean,
    conditions,
    dictionary,
    int_or_string,
    integer,
    label_selector,
    string,
    struct,
)
from flotilla_common.api.kinds.cloneset import api as cloneset
from flotilla_common.api.kinds.statefulset import api as statefulset

_COLUMNS = (
    Column("DESIRED", "integer", ".spec.replicas"),
    Column("CURRENT", "integer", ".status.replicas"),
    Column("UPDATED", "integer", ".status.updatedReplicas"),
    Column("READY", "integer", ".status.readyReplicas"),
    AGE,
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    old = name == "v1alpha1"
    return Version(name, _spec(keeps_flat_fields=old), _status(_alpha_status() if old else _beta_status()), _COLUMNS)


def _spec(*, keeps_flat_fields: bool) -> Schema:
    return struct(
        "The desired state.",
        ("selector",),
        replicas=integer("The number of pods in all subsets. Default: 1.", minimum=0),
        selector=label_selector("Selects its workloads; must match the labels of their template."),
        template=_template(keeps_flat_fields=keeps_flat_fields),
        topology=struct(
            "The distribution of pods.",
            subsets=array("The zones, in the order in which they are filled.", _subset())
            | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            scheduleStrategy=_schedule_strategy(),
        ),
        updateStrategy=struct(
            "The update strategy.",
            type=string("Manual. Default: Manual.", enum=("", "Manual")),
            manualUpdate=struct(
                "The partitions.",
                partitions=dictionary(
                    "The number of pods of a subset that stay on old revisions. Default: 0.", _count()
                ),
            ),
        ),
        revisionHistoryLimit=integer("The number of old revisions that are kept for rollbacks. Default: 10."),
    )


def _count() -> Schema:
    return {"type": "integer", "format": "int32"}


def _template(*, keeps_flat_fields: bool) -> Schema:
    cloneset_spec = dict(cloneset.version("v1beta1").spec)
    if keeps_flat_fields:
        strategy = cloneset_spec["properties"]["updateStrategy"] | {"x-kubernetes-preserve-unknown-fields": True}
        scale = _older_scale_strategy(cloneset_spec["properties"]["scaleStrategy"])
        properties = cloneset_spec["properties"] | {"updateStrategy": strategy, "scaleStrategy": scale}
        cloneset_spec |= {"properties": properties, "x-kubernetes-preserve-unknown-fields": True}
    return struct(
        "The workload that each subset gets; exactly one member is set.",
        statefulSetTemplate=_workload("StatefulSet of apps/v1", anything("The spec.")),
        advancedStatefulSetTemplate=_workload("StatefulSet of apps.kruise.io", statefulset.version("v1beta1").spec),
        cloneSetTemplate=_workload("CloneSet", cloneset_spec),
        deploymentTemplate=_workload("Deployment", anything("The spec.")),
    )


def _older_scale_strategy(schema: Schema) -> Schema:
    """Return the schema of the older version, without defaults, which would show up in stored objects."""
    reuse = {key: value for key, value in schema["properties"]["enablePVCReuse"].items() if key != "default"}
    properties = schema["properties"] | {"enablePVCReuse": reuse}
    return schema | {"properties": properties, "x-kubernetes-preserve-unknown-fields": True}


def _workload(kind: str, spec: Schema) -> Schema:
    return struct(f"A {kind}.", ("spec",), metadata=anything("Labels and annotations of the workloads."), spec=spec)


def _subset() -> Schema:
    return struct(
        "One zone.",
        ("name",),
        name=string("Its name, also in the names of its workload and pods."),
        nodeSelectorTerm=anything("A term of node affinity: the nodes of the zone. Never changes."),
        tolerations=array("Taints that its pods tolerate. Never change.", anything("A toleration.")),
        replicas=int_or_string("The number or share of its pods. Not together with the next two."),
        minReplicas=int_or_string("The minimum number of pods; served before later subsets get more than theirs."),
        maxReplicas=int_or_string("The maximum number of pods. Default: no limit."),
        patch=anything("A strategic merge patch of its pod template."),
    )


def _schedule_strategy() -> Schema:
    return struct(
        "The handling of pods that find no node.",
        type=string("Adaptive: they go to other subsets. Default: Fixed.", enum=("", "Adaptive", "Fixed")),
        adaptive=struct(
            "With type Adaptive.",
            rescheduleCriticalSeconds=integer("Seconds that a pod may find no node. Default: 30."),
            unschedulableDuration=integer(
                "Seconds that a subset gets no more pods; with reserved pods, that one has to be ready. Default: 300."
            ),
            reserveUnschedulablePods=boolean(
                "Keep pods that find no node, and create others in their place. Default: false."
            ),
        ),
    )


def _status(version_fields: dict[str, Schema]) -> Schema:
    return struct(
        "The observed state; counts are pods.",
        ("replicas", "updatedReplicas", "currentRevision"),
        observedGeneration=integer("The generation of the spec that this status refers to.", bits=64),
        replicas=integer("Pods that exist, except reserved ones."),
        readyReplicas=integer("Pods that are ready."),
        updatedReplicas=integer("Pods of the newest revision."),
        updatedReadyReplicas=integer("Ready pods of the newest revision."),
        reservedPods=integer("Pods that found no node and have replacements."),
        collisionCount=integer("The number of hash collisions of revision names; part of the hash."),
        currentRevision=string("The name of the revision that was last rolled out in full."),
        subsetStatuses=array("The subsets one by one.", _subset_status()),
        conditions=conditions("The conditions of the UnitedDeployment."),
        labelSelector=string("The selector as text, for the scale subresource."),
        **version_fields,
    )


def _subset_status() -> Schema:
    return struct(
        "One subset.",
        name=string("Its name."),
        replicas=integer("The desired number of pods."),
        readyReplicas=integer("Pods that are ready."),
        partition=integer("Pods that stay on old revisions."),
        reservedPods=integer("Pods that found no node and have replacements."),
        conditions=conditions("Whether its pods find nodes."),
    )


def _alpha_status() -> dict[str, Schema]:
    return {
        "subsetReplicas": dictionary("The desired number of pods of each subset.", _count()),
        "updateStatus": struct(
            "The progress of an update.",
            updatedRevision=string("The name of the newest revision."),
            currentPartitions=dictionary("Pods of each subset that stay on old revisions.", _count()),
        ),
    }


def _beta_status() -> dict[str, Schema]:
    return {"updatedRevision": string("The name of the newest revision.")}
