"""The API of StatefulSets: CRD, defaults, validation, deletion protection (statefulset.md §1 to §3).

v1beta1 only adds fields to v1alpha1. The webhook validates values, so the schema has neither enums nor limits.
"""

import copy

from flotilla_common.api.admission.fields import Fault
from flotilla_common.api.admission.handlers import Findings, Tools, Verdict, Write, defaulted, in_hub, review
from flotilla_common.api.admission.pod_template import default_templates
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.workload import (
    LABEL_TOO_LONG,
    LONGEST_NAME,
    template_verdict,
    too_long,
    unknown_fields,
)
from flotilla_common.api.crds.schema import (
    AGE,
    CONTAINERS,
    IMAGES,
    Column,
    Schema,
    Version,
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
from flotilla_common.api.crds.shared import in_place_strategy, lifecycle, priority_strategy, update_strategy
from flotilla_common.api.documents import Json, ensured, fill, fill_empty
from flotilla_common.api.kinds.rules import WRITES, Admission, Rules
from flotilla_common.api.kinds.statefulset import validation as rules
from flotilla_common.api.kinds.statefulset.claim_validation import claim_fault
from flotilla_common.api.kinds.statefulset.types import convert, to_hub
from flotilla_common.api.kinds.statefulset.validation import check_types
from flotilla_common.api.versions import V1BETA1
from flotilla_common.gates import Gates

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


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults, as a patch in the version of the request."""
    return defaulted(request, check_types, lambda it: default_statefulset(it.document, it.old, tools.gates))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (422), or with the protection from deletion (403).

    Warnings name accepted settings that will not work as intended.
    """
    return await review(request, tools, check_types, _findings)


async def _findings(given: Write, tools: Tools) -> Findings:
    write = in_hub(given, to_hub)
    template = await template_verdict(tools, write)
    claims = await _claim_faults(write, tools, template)
    warnings = unknown_fields(template)
    if write.old is None:
        warnings += too_long(write.name, LONGEST_NAME, LABEL_TOO_LONG)
    return Findings(rules.validate(write.document, write.old, template.faults, claims), warnings)


async def _claim_faults(write: Write, tools: Tools, template: Verdict) -> list[Fault]:
    """Return the fault of changed claim templates, if they are readable."""
    if write.old is None or template.faults:
        return []
    fault = await claim_fault(write.document, write.old, tools)
    return [fault] if fault else []


def default_statefulset(document: Json, old: Json | None, gates: Gates) -> Json:
    """Return a new document with defaults. `old` is the stored object of an update."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    fill_empty(spec, podManagementPolicy="OrderedReady")
    strategy = ensured(spec, "updateStrategy")
    fill_empty(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _default_rolling(ensured(strategy, "rollingUpdate"))
    if document.get("apiVersion") == V1BETA1:
        _default_claims(spec, gates)
    fill(spec, replicas=1, revisionHistoryLimit=10)
    default_templates(spec, old, gates)
    return defaulted


def _default_rolling(rolling: Json) -> None:
    fill(rolling, partition=0, maxUnavailable=1, minReadySeconds=0)
    fill_empty(rolling, podUpdatePolicy="ReCreate")


def _default_claims(spec: Json, gates: Gates) -> None:
    if gates.on("StatefulSetAutoDeletePVC"):
        policy = ensured(spec, "persistentVolumeClaimRetentionPolicy")
        fill_empty(policy, whenDeleted="Retain", whenScaled="Retain")
    if gates.on("StatefulSetAutoResizePVCGate"):
        fill_empty(ensured(spec, "volumeClaimUpdateStrategy"), type="OnDelete")


RULES = Rules(
    schema=version,
    convert=convert,
    admission=Admission(mutate=mutate, validate=validate, validates=(*WRITES, "DELETE")),
)
