"""The API of DaemonSets: CRD, defaults and validation (daemonset.md §1 to §3). They have no deletion protection.

The versions differ in one field of the spec, and in the name of one of the status. The webhook validates values, so the
schema has neither enums nor limits.
"""

import copy

from flotilla_common.api.admission.handlers import Findings, Tools, Write, defaulted, review
from flotilla_common.api.admission.pod_template import drop_directive
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
    boolean,
    conditions,
    int_or_string,
    integer,
    label_selector,
    string,
    struct,
)
from flotilla_common.api.crds.shared import lifecycle, update_strategy
from flotilla_common.api.documents import Json, ensured, fill, fill_empty
from flotilla_common.api.kinds.daemonset import validation as rules
from flotilla_common.api.kinds.daemonset.types import STANDARD, SURGING, convert
from flotilla_common.api.kinds.daemonset.validation import check_types
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.versions import V1ALPHA1

_COLUMNS = (
    Column("DESIRED", "integer", ".status.desiredNumberScheduled"),
    Column("CURRENT", "integer", ".status.currentNumberScheduled"),
    Column("READY", "integer", ".status.numberReady"),
    Column("UP-TO-DATE", "integer", ".status.updatedNumberScheduled"),
    Column("AVAILABLE", "integer", ".status.numberAvailable"),
    AGE,
    CONTAINERS,
    IMAGES,
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    newest = string("The hash of the newest revision, which updated pods have as a label.")
    if name == "v1alpha1":
        return Version(name, _spec(), _status(daemonSetHash=newest), _COLUMNS)
    scale = struct(
        "The creation of pods on new nodes.",
        partitionedScaling=boolean("The partition holds for the first pod of a node, too. Default: false."),
    )
    return Version(name, _spec(scaleStrategy=scale), _status(updateRevision=newest), _COLUMNS)


def _spec(**beta: Schema) -> Schema:
    return struct(
        "The desired state.",
        ("selector", "template"),
        selector=label_selector("Selects its pods; must match the template's labels and never changes."),
        template=anything("The pod template: metadata and spec of the pods, and the choice of nodes."),
        updateStrategy=update_strategy(_rolling_update()),
        minReadySeconds=integer("Seconds that a pod must stay ready before it is available. Default: 0."),
        burstReplicas=int_or_string(
            "The maximum number of creations, and of deletions or in-place updates, in one pass. Default: 250."
        ),
        revisionHistoryLimit=integer("The number of old revisions that are kept for rollbacks. Default: 10."),
        lifecycle=lifecycle(),
        **beta,
    )


def _rolling_update() -> Schema:
    return struct(
        "The limits and the order of a rolling update; only with type RollingUpdate.",
        rollingUpdateType=string("Standard: pods are replaced, or InPlaceIfPossible. Default: Standard."),
        maxUnavailable=int_or_string(
            "The maximum number of nodes with an unavailable pod in an update; percentages are rounded up. Default: 1."
        ),
        maxSurge=int_or_string(
            "The maximum number of nodes on which a new pod runs beside the old one until it is available; "
            "percentages are rounded up. Default: 0."
        ),
        selector=label_selector("The nodes whose pods are updated. Default: all."),
        partition=int_or_string(
            "The number of nodes that stay on old revisions; percentages are rounded down. Default: 0."
        ),
        paused=boolean("Stops updates; nodes without a pod still get one. Default: false."),
    )


def _status(**named: Schema) -> Schema:
    return struct(
        "The observed state; all counts are nodes.",
        (
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "updatedNumberScheduled",
        ),
        currentNumberScheduled=integer("Nodes that should have a pod and have one."),
        numberMisscheduled=integer("Nodes that have a pod and should not."),
        desiredNumberScheduled=integer("Nodes that should have a pod."),
        numberReady=integer("Nodes whose pod is ready."),
        observedGeneration=integer("The generation of the spec that this status refers to.", bits=64),
        updatedNumberScheduled=integer("Nodes whose pod is of the newest revision."),
        numberAvailable=integer("Nodes whose pod has been ready for minReadySeconds."),
        numberUnavailable=integer("Nodes that should have a pod and have no available one."),
        collisionCount=integer("The number of hash collisions of revision names; part of the hash."),
        conditions=conditions("Kept as they are; nothing writes them."),
        **named,
    )


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults, as a patch in the version of the request."""
    return defaulted(request, check_types, lambda it: default_daemonset(it.document))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once: 500 for a new object, 422 for a change.

    Warnings name accepted settings that will not work as intended.
    """
    return await review(request, tools, check_types, _findings)


async def _findings(write: Write, tools: Tools) -> Findings:
    template = await template_verdict(tools, write)
    faults = rules.validate(write.document, write.old, template.faults)
    if write.old is not None:
        return Findings(faults, unknown_fields(template))
    return Findings(faults, unknown_fields(template) + rules.name_warnings(write.name), code=500)


def default_daemonset(document: Json) -> Json:
    """Return a new document with defaults."""
    defaulted = copy.deepcopy(document)
    spec = ensured(defaulted, "spec")
    drop_directive(spec)
    fill(spec, burstReplicas=250, revisionHistoryLimit=10)
    strategy = ensured(spec, "updateStrategy")
    fill_empty(strategy, type="RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        _default_rolling(ensured(strategy, "rollingUpdate"), alpha=document.get("apiVersion") == V1ALPHA1)
    return defaulted


def _default_rolling(rolling: Json, *, alpha: bool) -> None:
    if alpha and rolling.get("rollingUpdateType") == SURGING:
        fill(rolling, maxSurge=1, maxUnavailable=0)
        rolling["rollingUpdateType"] = STANDARD
    fill_empty(rolling, rollingUpdateType=STANDARD)
    if rolling.get("maxUnavailable") is None and rolling.get("maxSurge") is None:
        rolling.update(maxUnavailable=1, maxSurge=0)


RULES = Rules(schema=version, convert=convert, admission=Admission(mutate=mutate, validate=validate))
