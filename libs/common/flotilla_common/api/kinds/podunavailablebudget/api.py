"""The API of PodUnavailableBudgets: CRD and validation, without defaults (podunavailablebudget.md §1 to §4).

v1alpha1 lacks three fields of the spec.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from flotilla_common.api.admission.handlers import Findings, Tools, Write, decoded, review
from flotilla_common.api.admission.review import Answer, Request
from flotilla_common.api.crds.schema import (
    Column,
    Schema,
    Version,
    array,
    dictionary,
    int_or_string,
    integer,
    label_selector,
    string,
    struct,
    time,
)
from flotilla_common.api.documents import Json
from flotilla_common.api.kinds.podunavailablebudget.types import (
    OPERATIONS,
    POD_UNAVAILABLE_BUDGET,
    PodUnavailableBudget,
    convert,
    to_hub,
)
from flotilla_common.api.kinds.podunavailablebudget.validation import validate as faults_of
from flotilla_common.api.kinds.rules import Admission, Rules

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
        "The desired state.",
        selector=label_selector("The pods that are protected, by labels. Excludes targetRef. Never changes."),
        targetRef=target,
        maxUnavailable=int_or_string(
            "The maximum number or share of pods that may be unavailable at a time. Excludes minAvailable."
        ),
        minAvailable=int_or_string("The minimum number or share of pods that must be available."),
        **newer,
    )


def _newer() -> dict[str, Schema]:
    operation = string("An operation.", enum=OPERATIONS)
    return {
        "protectOperations": array("The protected operations. Default: DELETE, UPDATE, EVICT.", operation),
        "protectTotalReplicas": integer("The number of expected pods; overrides the workloads'.", minimum=1),
        "ignoredPodSelector": label_selector("Pods for which no request is refused; they still count."),
    }


def _status() -> Schema:
    return struct(
        "The remaining budget, and its users.",
        ("unavailableAllowed", "currentAvailable", "desiredAvailable", "totalReplicas"),
        observedGeneration=integer("The generation of the spec that this status refers to.", bits=64),
        disruptedPods=_entries(
            "Pods whose deletion, eviction or resize was admitted and is not visible yet, and the time."
        ),
        unavailablePods=_entries("Pods whose update was admitted recently, and the time."),
        unavailableAllowed=integer("The number of pods that may still become unavailable."),
        currentAvailable=integer("Pods that are available."),
        desiredAvailable=integer("Pods that must be available."),
        totalReplicas=integer("Pods that are expected."),
    )


def _entries(doc: str) -> Schema:
    """Return the schema of times by name of a pod.

    The map is atomic: field management of each entry makes writes slower, and requests wait for every write that takes
    budget.
    """
    return dictionary(doc, time("The time.")) | {"x-kubernetes-map-type": "atomic"}


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (400)."""
    return await review(request, tools, _typed, _findings)


def _typed(document: Json) -> PodUnavailableBudget:
    return decoded(to_hub(document), PodUnavailableBudget)


async def _findings(write: Write, tools: Tools) -> Findings:
    stored = _readable(await tools.read_all(POD_UNAVAILABLE_BUDGET, write.namespace))
    others = sorted((one for one in stored if one.metadata.name != write.name), key=lambda one: one.metadata.name)
    old = _typed(write.old) if write.old is not None else None
    document = to_hub(write.document)
    return Findings(faults_of(document, _typed(document), old, others), code=400)


def _readable(bodies: Iterable[bytes | msgspec.Raw]) -> Iterator[PodUnavailableBudget]:
    """Yield the readable budgets: an unreadable one protects nothing, and conflicts with none."""
    for body in bodies:
        with suppress(ValueError):
            yield msgspec.json.decode(body, type=PodUnavailableBudget)


RULES = Rules(schema=version, convert=convert, admission=Admission(validate=validate, arms_pods=True))
