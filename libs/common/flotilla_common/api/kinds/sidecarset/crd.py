"""The SidecarSet CRD (sidecarset.md §1 and §2).

Only v1alpha1 has a namespace, only v1beta1 a custom version. Sidecars are core containers with members of their own, so
fields that are not listed here are kept.
"""

from flotilla_common.api.crds.schema import (
    AGE,
    Column,
    Schema,
    Version,
    anything,
    array,
    boolean,
    int_or_string,
    integer,
    label_selector,
    mapping,
    string,
    strings,
    struct,
)
from flotilla_common.api.crds.shared import priority_strategy, scatter_strategy

_COLUMNS = (
    Column("MATCHED", "integer", ".status.matchedPods"),
    Column("UPDATED", "integer", ".status.updatedPods"),
    Column("READY", "integer", ".status.readyPods"),
    AGE,
)
_OF_VERSION = {
    "v1alpha1": {"namespace": string("Pods of this namespace only. It overrides namespaceSelector.")},
    "v1beta1": {"customVersion": string("A tag for the revision of this spec, by which it can be injected later.")},
}


def version(name: str) -> Version:
    """Return one version of the CRD."""
    return Version(name, _spec(**_OF_VERSION[name]), _status(), _COLUMNS)


def _spec(**of_version: Schema) -> Schema:
    return struct(
        "The injected content, and the pods.",
        selector=label_selector("The pods that get the sidecars, by their labels. Must not be empty."),
        namespaceSelector=label_selector("The namespaces of the pods, by their labels. Default: all."),
        initContainers=array("Injected as init containers; pods that exist keep theirs.", _sidecar()),
        containers=array("Injected as containers, and updated in place later.", _sidecar()),
        volumes=array("Volumes for the sidecars; only mounted ones are injected.", anything("A Volume.")),
        imagePullSecrets=array(
            "Added to the pull secrets of new pods.", struct("One secret.", name=string("Its name."))
        ),
        updateStrategy=_update_strategy(),
        injectionStrategy=_injection_strategy(),
        patchPodMetadata=array("Annotations that pods get.", _pod_metadata()),
        revisionHistoryLimit=integer("The number of revisions that are kept, at least 1. Default: 10."),
        **of_version,
    )


def _sidecar() -> Schema:
    share = "enabled: {} of the pod's containers are shared with the sidecar. disabled: they are not."
    schema = struct(
        "A container, with the settings of a sidecar.",
        podInjectPolicy=string("BeforeAppContainer or AfterAppContainer: its position in the pod's list."),
        upgradeStrategy=struct(
            "The update strategy of its image.",
            upgradeType=string("ColdUpgrade: in place. HotUpgrade: beside the old one. Never changes."),
            hotUpgradeEmptyImage=string("With HotUpgrade: the image of the container that idles."),
        ),
        shareVolumePolicy=_policy(share.format("volume mounts")),
        shareVolumeDevicePolicy=_policy(share.format("volume devices")),
        transferEnv=array("Env entries that are copied from containers of the pod.", _transfer_env()),
        resourcesPolicy=_resources_policy(),
    )
    return schema | {"x-kubernetes-preserve-unknown-fields": True}


def _policy(doc: str) -> Schema:
    return struct("The sharing policy.", type=string(doc))


def _transfer_env() -> Schema:
    field = struct(
        "A label or an annotation of the pod.",
        ("fieldPath",),
        apiVersion=string("v1."),
        fieldPath=string("metadata.labels['…'] or metadata.annotations['…']."),
    )
    return struct(
        "Entries of one container.",
        sourceContainerName=string("The container that has them."),
        sourceContainerNameFrom=struct("The source of the container's name.", fieldRef=field),
        envName=string("The name of an entry."),
        envNames=strings("The names of more entries."),
    )


def _resources_policy() -> Schema:
    kinds = struct(
        "An expression per resource, over the resources of the pod's containers.",
        cpu=string("Such as max(cpu*30%, 50m)."),
        memory=string("Such as min(memory*10%, 1Gi)."),
    )
    return struct(
        "Resources that follow from those of the pod's containers.",
        ("targetContainersMode", "resourcesExpr"),
        targetContainersMode=string("sum, or max: the aggregation over containers.", enum=("sum", "max")),
        targetContainersNameRegex=string("The containers that count, by a regex over their names.") | {"default": ".*"},
        resourcesExpr=struct("The resources of the sidecar.", limits=kinds, requests=kinds),
    )


def _update_strategy() -> Schema:
    return struct(
        "The update strategy of existing pods.",
        type=string("RollingUpdate, or NotUpdate: only new pods get them. Default: RollingUpdate."),
        paused=boolean("Stops updates of pods that exist. Default: false."),
        selector=label_selector("Only these pods are updated. Not together with partition."),
        partition=int_or_string("The number or share of pods that stay on old revisions. Default: 0."),
        maxUnavailable=int_or_string("The number or share of pods that are updated concurrently. Default: 1."),
        priorityStrategy=priority_strategy(),
        scatterStrategy=scatter_strategy(),
    )


def _injection_strategy() -> Schema:
    return struct(
        "The injection into new pods.",
        paused=boolean("Nothing is injected into new pods. Default: false."),
        revision=struct(
            "Another revision than the newest is injected.",
            revisionName=string("The name of its ControllerRevision. It overrides customVersion."),
            customVersion=string("The custom version that it is tagged with."),
            policy=string(
                "Always, or Partial: only into pods that the update strategy keeps on old revisions. Default: Always.",
                enum=("Always", "Partial"),
            ),
        ),
    )


def _pod_metadata() -> Schema:
    return struct(
        "Some annotations, and the policy for existing ones.",
        annotations=mapping("The annotations."),
        patchPolicy=string(
            "Retain: the pod's own value stays. Overwrite: it is replaced. MergePatchJson: both are JSON, and the "
            "value is a merge patch. Default: Retain."
        ),
    )


def _status() -> Schema:
    return struct(
        "The observed state.",
        ("matchedPods", "updatedPods", "readyPods"),
        observedGeneration=integer("The generation of the spec that this status refers to.", bits=64),
        matchedPods=integer("Pods that have the sidecars."),
        updatedPods=integer("Pods whose sidecars match the spec."),
        readyPods=integer("Pods whose containers are as expected, and ready."),
        updatedReadyPods=integer("Pods that are both updated and ready."),
        latestRevision=string("The name of the ControllerRevision of the spec."),
        collisionCount=integer("The number of hash collisions of revision names; part of the hash."),
    )
