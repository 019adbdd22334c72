"""The StatefulSet CRD (statefulset.md §1 and §2).

v1beta1 only adds fields to v1alpha1. The webhook validates values, so the schema has neither enums nor limits.
"""

from flotilla_common.api.crds.rollout import in_place_strategy, lifecycle, priority_strategy, update_strategy
from flotilla_common.api.crds.schema import (
    Schema,
    anything,
    array,
    boolean,
    conditions,
    int_or_string,
    integer,
    label_selector,
    string,
    struct,
)
from flotilla_common.api.crds.version import AGE, CONTAINERS, IMAGES, Column, Version

_COLUMNS = (
    Column("DESIRED", "integer", ".spec.replicas"),
    Column("CURRENT", "integer", ".status.replicas"),
    Column("UPDATED", "integer", ".status.updatedReplicas"),
    Column("READY", "integer", ".status.readyReplicas"),
    AGE,
    CONTAINERS,
    IMAGES,
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    if name == "v1alpha1":
        return Version(name, _spec(), _status(), _COLUMNS)
    return Version(name, _spec(**_beta_spec()), _status(**_beta_status()), _COLUMNS)


def _spec(**beta: Schema) -> Schema:
    claim = anything("A PersistentVolumeClaim.")
    return struct(
        "The desired state.",
        ("selector", "template"),
        replicas=integer("The number of pods. Default: 1."),
        selector=label_selector("Selects the pods of the set; must match the template's labels and never changes."),
        template=anything("The pod template: metadata and spec of the pods."),
        volumeClaimTemplates=array("Each pod has one claim of each, which is named after both and outlives it.", claim),
        serviceName=string("The headless Service that gives the pods their names in DNS. Never changes."),
        podManagementPolicy=string(
            "OrderedReady: one pod after the other, Parallel: all at once. Default: OrderedReady. Never changes."
        ),
        revisionHistoryLimit=integer("The number of old revisions that are kept for rollbacks. Default: 10."),
        updateStrategy=update_strategy(_rolling_update()),
        **beta,
    )


def _rolling_update() -> Schema:
    return struct(
        "The limits and the order of a rolling update; only with type RollingUpdate.",
        partition=integer("The number of pods, from the lowest ordinal on, that stay on old revisions. Default: 0."),
        maxUnavailable=int_or_string(
            "The maximum number of unavailable pods during an update. Other than 1 only with Parallel. Default: 1."
        ),
        podUpdatePolicy=string(
            "ReCreate, InPlaceIfPossible or InPlaceOnly; the latter two need the readiness gate InPlaceUpdateReady in "
            "the template. Default: ReCreate."
        ),
        paused=boolean("Stops updates; scaling goes on. Default: false."),
        unorderedUpdate=struct(
            "Pods are updated in another order than from the highest ordinal down. Only with Parallel.",
            priorityStrategy=priority_strategy(),
        ),
        inPlaceUpdateStrategy=in_place_strategy(),
        minReadySeconds=integer("Seconds that a pod must stay ready before it is available, at most 300. Default: 0."),
    )


def _beta_spec() -> dict[str, Schema]:
    return {
        "reserveOrdinals": array("Ordinals that pods must not have.", int_or_string("A number, or a range as in 3-7.")),
        "ordinals": struct(
            "The ordinals of pods.", start=integer("The first one; with gate StatefulSetStartOrdinal. Default: 0.")
        ),
        "scaleStrategy": struct(
            "The scale strategy.",
            maxUnavailable=int_or_string(
                "The maximum number of unavailable pods while pods are created. Other than 1 only with Parallel. "
                "Default: no limit."
            ),
        ),
        "lifecycle": lifecycle(),
        "persistentVolumeClaimRetentionPolicy": struct(
            "The fate of claims: Retain or Delete.",
            whenDeleted=string("When the set is deleted. Default: Retain."),
            whenScaled=string("When the claim's pod is scaled down. Default: Retain."),
        ),
        "volumeClaimUpdateStrategy": struct(
            "The resizing of claims; with gate StatefulSetAutoResizePVCGate.",
            type=string("OnDelete, or OnPodRollingUpdate: before their pods are updated. Default: OnDelete."),
        ),
    }


def _status(**beta: Schema) -> Schema:
    return struct(
        "The observed state.",
        ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"),
        observedGeneration=integer("The generation of the spec that this status refers to.", bits=64),
        replicas=integer("Pods that exist."),
        readyReplicas=integer("Pods that are ready."),
        availableReplicas=integer("Pods that have been ready for minReadySeconds."),
        currentReplicas=integer("Pods of the current revision."),
        updatedReplicas=integer("Pods of the update revision."),
        currentRevision=string("The name of the revision that pods behind the partition have."),
        updateRevision=string("The name of the newest revision."),
        collisionCount=integer("The number of hash collisions of revision names; part of the hash."),
        conditions=conditions("Current failures."),
        labelSelector=string("The selector as text, for the scale subresource."),
        **beta,
    )


def _beta_status() -> dict[str, Schema]:
    claims = struct(
        "The claims that were made from one template.",
        volumeClaimName=string("The template's name."),
        compatibleReplicas=integer("Claims that match the template."),
        compatibleReadyReplicas=integer("Those that have the capacity, too."),
    )
    return {
        "updatedReadyReplicas": integer("Ready pods of the update revision."),
        "updatedAvailableReplicas": integer("Available pods of the update revision."),
        "volumeClaims": array("The progress of a change of the claims, by template.", claims),
    }
