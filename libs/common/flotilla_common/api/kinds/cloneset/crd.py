"""The CloneSet CRD (cloneset.md §1 and §2): the common schema, and the differences of v1alpha1."""

from flotilla_common.api.crds.rollout import (
    in_place_strategy,
    lifecycle,
    priority_strategy,
    scatter_strategy,
    update_strategy,
)
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
    strings,
    struct,
)
from flotilla_common.api.crds.version import AGE, CONTAINERS, IMAGES, Column, Version

_COLUMNS = (
    Column("DESIRED", "integer", ".spec.replicas"),
    Column("UPDATED", "integer", ".status.updatedReplicas"),
    Column("UPDATED_READY", "integer", ".status.updatedReadyReplicas"),
    Column("UPDATED_AVAILABLE", "integer", ".status.updatedAvailableReplicas"),
    Column("READY", "integer", ".status.readyReplicas"),
    Column("TOTAL", "integer", ".status.replicas"),
    AGE,
    CONTAINERS,
    IMAGES,
    Column("SELECTOR", "string", ".status.labelSelector", priority=1),
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    policy = string("ReCreate, InPlaceIfPossible or InPlaceOnly. Default: ReCreate.")
    if name == "v1alpha1":
        scale = _scale(disablePVCReuse=boolean("Do not reuse the claims of pods that are gone. Default: false."))
        update = struct("The update strategy.", type=policy, **_rollout())
        return Version(name, _spec(scale, update), _status(), _COLUMNS)
    scale = _scale(
        enablePVCReuse=boolean("Reuse the claims of pods that others deleted.", default=False),
        excludePreparingDelete=boolean("Pods that wait for deletion do not count as existing. Default: false."),
    )
    rolling = struct("The limits and the order of a rolling update.", podUpdatePolicy=policy, **_rollout())
    return Version(name, _spec(scale, update_strategy(rolling)), _status(), _COLUMNS)


def _spec(scale: Schema, update: Schema) -> Schema:
    claim = anything("A PersistentVolumeClaim.")
    return struct(
        "The desired state.",
        ("selector", "template"),
        replicas=integer("The number of pods. Default: 1."),
        selector=label_selector("Selects the pods of the set; must match the template's labels and never changes."),
        template=anything("The pod template: metadata and spec of the pods."),
        volumeClaimTemplates=array("One claim per pod is made from each. A change affects new pods only.", claim),
        revisionHistoryLimit=integer("The number of old revisions that are kept for rollbacks. Default: 10."),
        minReadySeconds=integer("Seconds that a pod must stay ready before it counts as available. Default: 0."),
        progressDeadlineSeconds=integer(
            "Seconds without progress after which the Progressing condition turns False. Unset: no such condition."
        ),
        lifecycle=lifecycle(),
        scaleStrategy=scale,
        updateStrategy=update,
    )


def _scale(**version_fields: Schema) -> Schema:
    return struct(
        "The scale strategy.",
        podsToDelete=strings("Names of pods to delete first; removed from the list when they are gone."),
        maxUnavailable=int_or_string(
            "The maximum number of unavailable pods while pods are created. Default: no limit."
        ),
        **version_fields,
    )


def _rollout() -> dict[str, Schema]:
    return {
        "partition": int_or_string("The number of pods that stay on old revisions. Default: 0."),
        "maxUnavailable": int_or_string("The maximum number of unavailable pods during an update. Default: 20%."),
        "maxSurge": int_or_string("The maximum number of pods beyond replicas during an update. Default: 0."),
        "paused": boolean("Stops updates; scaling goes on. Default: false."),
        "priorityStrategy": priority_strategy(),
        "scatterStrategy": scatter_strategy(),
        "inPlaceUpdateStrategy": in_place_strategy(),
    }


def _status() -> Schema:
    return struct(
        "The observed state.",
        ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas"),
        observedGeneration=integer("The generation of the spec that this status refers to.", bits=64),
        replicas=integer("Pods that exist."),
        readyReplicas=integer("Pods that are ready."),
        availableReplicas=integer("Pods that have been ready for minReadySeconds."),
        updatedReplicas=integer("Pods of the update revision."),
        updatedReadyReplicas=integer("Ready pods of the update revision."),
        updatedAvailableReplicas=integer("Available pods of the update revision."),
        expectedUpdatedReplicas=integer("The number of pods that the partition allows to update."),
        updateRevision=string("The name of the newest revision."),
        currentRevision=string("The name of the revision that pods behind the partition have."),
        collisionCount=integer("The number of hash collisions of revision names; part of the hash."),
        labelSelector=string("The selector as text, for the scale subresource."),
        conditions=conditions("The conditions of the set."),
    )
