"""The WorkloadSpread CRD (workloadspread.md §1 and §2). The versions differ in two fields and in conditions."""

from flotilla_common.api.crds.schema import (
    Schema,
    anything,
    array,
    boolean,
    conditions,
    dictionary,
    int_or_string,
    integer,
    label_selector,
    standard_conditions,
    string,
    strings,
    struct,
    time,
)
from flotilla_common.api.crds.version import Column, Version

_COLUMNS = (
    Column("WorkloadName", "string", ".spec.targetRef.name"),
    Column("WorkloadKind", "string", ".spec.targetRef.kind"),
    Column("Adaptive", "boolean", '.spec.scheduleStrategy.type[?(@ == "Adaptive")]'),
    Column("Age", "date", ".metadata.creationTimestamp"),
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    old = name == "v1alpha1"
    required, preferred = ("NodeSelectorTerm", "NodeSelectorTerms") if old else ("NodeSelector", "NodeSelector")
    subset = _subset(
        **{
            f"required{required}": anything("A term of node affinity that nodes must match."),
            f"preferred{preferred}": array("Terms of node affinity with weights.", anything("A term.")),
        }
    )
    schedulable = "Whether pods find nodes."
    return Version(
        name, _spec(subset), _status(conditions(schedulable) if old else standard_conditions(schedulable)), _COLUMNS
    )


def _spec(subset: Schema) -> Schema:
    reference = struct(
        "The workload whose pods are spread. Never changes, except its version.",
        ("apiVersion", "kind", "name"),
        apiVersion=string("Its group and version."),
        kind=string("CloneSet, Deployment, ReplicaSet, StatefulSet, Job, or a kind that administrators name."),
        name=string("Its name, in the same namespace."),
    )
    return struct(
        "The desired state.",
        ("targetRef", "subsets"),
        targetRef=reference,
        targetFilter=struct(
            "Selects the pods that are spread. Default: all.",
            selector=label_selector("The labels of these pods."),
            replicasPathList=strings("Paths of numbers in the workload whose sum is the number of these pods."),
        ),
        subsets=array("The places, in the order in which they are filled.", subset)
        | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "minItems": 1},
        scheduleStrategy=struct(
            "The handling of pods that find no node.",
            type=string("Adaptive: they go to the next subset. Default: Fixed.", enum=("", "Adaptive", "Fixed")),
            adaptive=struct(
                "With type Adaptive.",
                rescheduleCriticalSeconds=integer("Seconds that a pod may find no node. Default: no limit."),
                disableSimulationSchedule=boolean("Accepted, and without effect."),
            ),
        ),
    )


def _subset(**terms: Schema) -> Schema:
    return struct(
        "One place.",
        ("name",),
        name=string("Its name."),
        tolerations=array("Taints that its pods tolerate.", anything("A toleration.")),
        maxReplicas=int_or_string("The maximum number of its pods, or share of all pods. Default: no limit."),
        patch=anything("A strategic merge patch of its pods."),
        **terms,
    )


def _status(subset_conditions: Schema) -> Schema:
    subset = struct(
        "One subset.",
        ("name", "replicas", "missingReplicas"),
        name=string("Its name."),
        replicas=integer("Pods that exist."),
        missingReplicas=integer("Free places; -1: any number."),
        creatingPods=dictionary("Pods that were admitted and are not visible yet, with the time.", time("The time.")),
        deletingPods=dictionary(
            "Pods whose deletion was admitted and is not visible yet, with the time.", time("The time.")
        ),
        conditions=subset_conditions,
    )
    return struct(
        "The observed state.",
        observedGeneration=integer("The generation of the spec that this status refers to.", bits=64),
        subsetStatuses=array("The subsets, over all versions of pods.", subset),
        versionedSubsetStatuses=dictionary(
            "The subsets by version of pods.", array("The subsets of one version.", subset)
        ),
    )
