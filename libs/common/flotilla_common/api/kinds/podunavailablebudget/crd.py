"""The PodUnavailableBudget CRD (podunavailablebudget.md §1 and §2). v1alpha1 lacks three fields of the spec."""

from flotilla_common.api.crds.schema import (
    Schema,
    array,
    dictionary,
    int_or_string,
    integer,
    label_selector,
    string,
    struct,
    time,
)
from flotilla_common.api.crds.version import Column, Version
from flotilla_common.api.kinds.podunavailablebudget.types import OPERATIONS

_COLUMNS = (
    Column("Allowed", "integer", ".status.unavailableAllowed"),
    Column("Current", "integer", ".status.currentAvailable"),
    Column("Desired", "integer", ".status.desiredAvailable"),
    Column("Total", "integer", ".status.totalReplicas"),
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    return Version(name, _spec({} if name == "v1alpha1" else _newer()), _status(), _COLUMNS)


def _spec(newer: dict[str, Schema]) -> Schema:
    target = struct(
        "The workload whose pods are protected, in the same namespace. Excludes selector. Never changes.",
        apiVersion=string("Its group and version; the version does not matter."),
        kind=string("Its kind."),
        name=string("Its name."),
    )
    return struct(
        "What is wanted.",
        selector=label_selector("The pods that are protected, by labels. Excludes targetRef. Never changes."),
        targetRef=target,
        maxUnavailable=int_or_string(
            "How many pods, or which share of them, may be unavailable at one time. Excludes minAvailable."
        ),
        minAvailable=int_or_string("How many pods, or which share of them, have to be available."),
        **newer,
    )


def _newer() -> dict[str, Schema]:
    operation = string("An operation.", enum=OPERATIONS)
    return {
        "protectOperations": array("Which operations are protected. Default: DELETE, UPDATE, EVICT.", operation),
        "protectTotalReplicas": integer("How many pods are expected, whatever the workloads say.", minimum=1),
        "ignoredPodSelector": label_selector("Pods that nothing is refused about; they count all the same."),
    }


def _status() -> Schema:
    return struct(
        "What is left of the budget, and who uses it.",
        ("unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas"),
        observedGeneration=integer("The generation of the spec that this status is about.", bits=64),
        disruptedPods=_entries("Pods whose deletion, eviction or resize was admitted and is not seen yet, and when."),
        unavailablePods=_entries("Pods whose update was admitted lately, and when."),
        unavailableAllowed=integer("How many more pods may be made unavailable."),
        currentAvailable=integer("Pods that are available."),
        desiredAvailable=integer("Pods that have to be available."),
        totalReplicas=integer("Pods that are expected."),
    )


def _entries(doc: str) -> Schema:
    """Return the schema of times by name of a pod.

    The map is atomic: field management of each entry makes writes slower, and requests wait for every write that takes
    budget.
    """
    return dictionary(doc, time("When.")) | {"x-kubernetes-map-type": "atomic"}
