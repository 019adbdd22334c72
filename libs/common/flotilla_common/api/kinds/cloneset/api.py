"""The API of CloneSets: CRD, defaults, validation, deletion protection (cloneset.md §1 to §3)."""

import copy

from flotilla_common.api.admission.fields import Fault, invalid
from flotilla_common.api.admission.handlers import Findings, Tools, Write, defaulted, review
from flotilla_common.api.admission.pod_template import default_templates
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.admission.workload import template_verdict, unknown_fields
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
    strings,
    struct,
)
from flotilla_common.api.crds.shared import (
    in_place_strategy,
    lifecycle,
    priority_strategy,
    scatter_strategy,
    update_strategy,
)
from flotilla_common.api.documents import Json, ensured, fill, fill_empty, member, text
from flotilla_common.api.kinds.cloneset import validation as rules
from flotilla_common.api.kinds.cloneset.types import convert
from flotilla_common.api.kinds.cloneset.validation import check_types
from flotilla_common.api.kinds.rules import WRITES, Admission, Rules
from flotilla_common.api.meta import ObjectMeta, controller_of
from flotilla_common.api.resources import POD
from flotilla_common.api.versions import V1ALPHA1
from flotilla_common.gates import Gates

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


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults, as a patch in the version of the request."""
    return defaulted(request, check_types, lambda it: default_cloneset(it.document, it.old, tools.gates))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (422), or with the protection from deletion (403).

    Warnings name accepted settings that will not work as intended.
    """
    return await review(request, tools, check_types, _findings)


async def _findings(write: Write, tools: Tools) -> Findings:
    template = await template_verdict(tools, write)
    pods = await _pod_faults(write, tools)
    warnings = unknown_fields(template)
    if write.old is None:
        warnings += rules.name_warnings(write.name, short_hash=tools.gates.on("CloneSetShortHash"))
    return Findings(rules.validate(write.document, write.old, template.faults, pods), warnings)


async def _pod_faults(write: Write, tools: Tools) -> list[Fault]:
    uid = text(member(write.document, "metadata").get("uid"))
    names = rules.newly_to_delete(write.document, write.old)
    if not names:
        return []
    found = await tools.metadata_of(POD, write.namespace, names)
    reasons = {name: _unfit(name, found.get(name), uid) for name in names}
    return [invalid(rules.PODS_TO_DELETE, name, reason) for name, reason in reasons.items() if reason]


def _unfit(name: str, pod: ObjectMeta | None, uid: str) -> str:
    """Return why the CloneSet with this uid cannot delete the pod; empty if it can."""
    if pod is None:
        return f'find pod {name} failed: pods "{name}" not found'
    if pod.deletion_timestamp is not None:
        return f"find pod {name} already terminating"
    owner = controller_of(pod)
    return "" if owner is not None and owner.uid == uid else f"find pod {name} owner is not this CloneSet"


def default_cloneset(document: Json, old: Json | None, gates: Gates) -> Json:
    """Return a new document with defaults. `old` is the stored object of an update."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    fill(spec, replicas=1, revisionHistoryLimit=10)
    default_templates(spec, old, gates)
    strategy = ensured(spec, "updateStrategy")
    if document.get("apiVersion") == V1ALPHA1:
        _default_rollout(strategy, "type")
    else:
        _default_beta_strategy(strategy)
    return defaulted


def _default_beta_strategy(strategy: Json) -> None:
    fill_empty(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _default_rollout(ensured(strategy, "rollingUpdate"), "podUpdatePolicy")


def _default_rollout(rollout: Json, policy: str) -> None:
    fill_empty(rollout, **{policy: "ReCreate"})
    if rollout[policy] in ("InPlaceIfPossible", "InPlaceOnly"):
        ensured(rollout, "inPlaceUpdateStrategy")
    fill(rollout, partition=0, maxUnavailable="20%", maxSurge=0)


RULES = Rules(
    schema=version,
    convert=convert,
    admission=Admission(mutate=mutate, validate=validate, validates=(*WRITES, "DELETE"), old_paths=True),
)
