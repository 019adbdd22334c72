"""A kind that does not exist, in the other group, with everything that a kind can have."""

from flotilla_common.api.admission.handlers import Tools
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error, operations, patched
from flotilla_common.api.crds.schema import AGE, Version, integer, string, struct
from flotilla_common.api.documents import Json, member
from flotilla_common.api.kinds.cloneset.types import CLONE_SET
from flotilla_common.api.kinds.kind import Kind, NodeRoute, Workers
from flotilla_common.api.kinds.rules import WRITES, Admission, Rules
from flotilla_common.api.meta import metadata_of
from flotilla_common.api.resources import Resource

LARGEST = 9
SAMPLES = Resource("policy.kruise.io", "v1beta1", "samples", "Sample")


def _version(name: str) -> Version:
    spec = struct(
        "The desired state.",
        size=integer("How many ConfigMaps."),
        replicas=integer("How many pods its CloneSet has; without it there is no CloneSet."),
        image=string("The image of the pods."),
    )
    status = struct(
        "The observed state.", size=integer("How many ConfigMaps."), readyReplicas=integer("How many pods were ready.")
    )
    return Version(name, spec, status, (AGE,))


def _convert(document: Json, version: str) -> Json:
    return document | {"apiVersion": version}


async def _mutate(request: Request, tools: Tools) -> Answer:
    document = request.object or {}
    return patched(operations(document, document | {"spec": {"size": 1, **member(document, "spec")}}))


async def _validate(request: Request, tools: Tools) -> Answer:
    size = member(request.object or {}, "spec").get("size", 0)
    return ALLOWED if request.operation == "DELETE" or size <= LARGEST else error(422, f"{size} is more than {LARGEST}")


KIND = Kind(
    resource=SAMPLES,
    doc="A Sample shows that a kind appears wherever kinds appear.",
    service="samples",
    rules=lambda: Rules(
        schema=_version,
        convert=_convert,
        admission=Admission(mutate=_mutate, validate=_validate, validates=(*WRITES, "DELETE"), old_paths=True),
    ),
    short_names=("smp",),
    scale=True,
    gates=("WorkloadSpread",),
    workers=Workers(7, "sample"),
    made_by_us=True,
    node_route=NodeRoute(lambda body: metadata_of(body).labels.get("node", "")),
    parts=(CLONE_SET,),
)
