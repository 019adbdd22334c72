"""The API of ResourceDistributions: schema, validation, conversion, admission (resourcedistribution.md §1, §2, §4).

They have no defaults. The apiserver checks the resource in a dry run in the system's own namespace; nothing is stored.
An unchanged resource is not checked again, as with pod templates (docs/adr/0002).

Conversion works on raw documents and renames two members. The distributed resource is not touched, nulls included,
because its bytes are hashed. The result always has all ways to choose namespaces, and no empty lists.
"""

import re
from collections.abc import Iterator
from functools import partial

from flotilla_common.api.admission.fields import Fault, aggregate, forbidden, invalid, required
from flotilla_common.api.admission.handlers import Tools, decoded, document_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error
from flotilla_common.api.crds.schema import (
    Column,
    Schema,
    Version,
    anything,
    array,
    boolean,
    integer,
    label_selector,
    string,
    strings,
    struct,
    time,
)
from flotilla_common.api.documents import Json, ensured, mapping, mappings, member
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.resourcedistribution.types import (
    DISTRIBUTED,
    NamespaceNames,
    ResourceDistribution,
    distributed,
)
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.selectors import selector_problem
from flotilla_common.api.versions import Conversion

_COLUMNS = (
    Column("TOTAL", "integer", ".status.desired"),
    Column("SUCCEED", "integer", ".status.succeeded"),
    Column("FAILED", "integer", ".status.failed"),
)

RESOURCE, TARGETS = "spec.resource", "spec.targets"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IDENTITY = ("apiVersion", "kind", "metadata.name")
_NO_LABEL = (
    "must consist of at most 63 lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character"
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    alpha = name == "v1alpha1"
    selector, failed = (
        ("namespaceLabelSelector", "failedNamespace") if alpha else ("namespaceSelector", "failedNamespaces")
    )
    return Version(name, _spec_schema(selector), _status_schema(failed), _COLUMNS)


def _spec_schema(selector: str) -> Schema:
    resource = anything("The Secret or ConfigMap to distribute, complete. Its namespace does not matter.")
    chosen = {selector: label_selector("Namespaces by their labels. An empty selector selects none.")}
    targets = struct(
        "The namespaces that get a copy. kube-system and kube-public never do.",
        allNamespaces=boolean("All namespaces. Default: false."),
        includedNamespaces=_names_schema("Namespaces by name; they need not exist yet."),
        excludedNamespaces=_names_schema("Namespaces that get no copy; overrides all other fields."),
        **chosen,
    )
    return struct(
        "The resource, and its target namespaces.",
        ("resource", "targets"),
        resource=resource | {"x-kubernetes-embedded-resource": True},
        targets=targets,
    )


def _names_schema(doc: str) -> Schema:
    return struct(doc, list=array("Their names.", struct("One namespace.", name=string("Its name."))))


def _status_schema(failed: str) -> Schema:
    namespaces = {failed: strings("The affected namespaces, while it is True.")}
    condition = struct(
        "One kind of failure.",
        ("type", "status"),
        type=string(
            "GetResourceFailed, CreateResourceFailed, UpdateResourceFailed, DeleteResourceFailed, "
            "ConflictOccurred or NamespaceNotExists."
        ),
        status=string("True, False or Unknown."),
        lastTransitionTime=time("When the status last changed."),
        reason=string("Succeeded, or the message of one of the failures."),
        **namespaces,
    )
    return struct(
        "The progress.",
        desired=integer("Namespaces that should have a copy."),
        succeeded=integer("Namespaces with a correct copy."),
        failed=integer("Namespaces without a correct copy."),
        observedGeneration=integer("The generation of the spec that this status refers to.", bits=64),
        conditions=array("Always six, in the same order.", condition),
    )


def resource_of(document: Json) -> Json:
    """Return the resource to distribute."""
    return member(document, "spec", "resource")


def resource_faults(resource: Json, old: Json | None) -> Iterator[Fault]:
    """Yield the faults of the resource that need no dry run. `old` is the resource before an update."""
    if not resource:
        yield required(RESOURCE)
    elif distributed(resource) is None:
        supported = ", ".join(f"{one.api_version} {one.kind}" for one in DISTRIBUTED)
        yield invalid(RESOURCE, shown(resource), f"unsupported resource, supported are: {supported}")
    elif old is not None and _identity(resource) != _identity(old):
        yield invalid(RESOURCE, shown(resource), f"{', '.join(_IDENTITY)} are immutable")


def trial_fault(resource: Json, refusal: ApiError) -> Fault | None:
    """Return the fault in the apiserver's answer to a dry run; None if it does not concern the resource."""
    if refusal.reason == "AlreadyExists":
        return None
    if refusal.code in (400, 422):
        return invalid(RESOURCE, shown(resource), refusal.message)
    return forbidden(RESOURCE, refusal.message) if refusal.code == 403 else internal(refusal.message)


def internal(message: str) -> Fault:
    """Return the fault of a resource that could not be checked."""
    return Fault(RESOURCE, f"Internal error: {message}")


def target_faults(distribution: ResourceDistribution) -> Iterator[Fault]:
    """Yield the faults of the selection of namespaces."""
    targets = distribution.spec.targets
    yield from _name_faults(f"{TARGETS}.includedNamespaces", targets.included_namespaces)
    yield from _name_faults(f"{TARGETS}.excludedNamespaces", targets.excluded_namespaces)
    if both := sorted({*targets.included_namespaces.names} & {*targets.excluded_namespaces.names}):
        detail = f"ambiguous targets: namespaces are both included and excluded: {', '.join(both)}"
        yield invalid(TARGETS, list(both), detail)
    if problem := selector_problem(targets.namespace_selector):
        yield Fault(f"{TARGETS}.namespaceSelector", f"Invalid value: {problem}")


def shown(resource: Json) -> str:
    """Return the resource's type and name for a message, without its content."""
    metadata = mapping(resource.get("metadata"))
    return f"{resource.get('apiVersion')} {resource.get('kind')} {metadata.get('name')}"


def _name_faults(path: str, names: NamespaceNames) -> Iterator[Fault]:
    return (invalid(path, name, _NO_LABEL) for name in names.names if not _LABEL.fullmatch(name))


def _identity(resource: Json) -> tuple[object, ...]:
    return resource.get("apiVersion"), resource.get("kind"), member(resource, "metadata").get("name")


_ALPHA = {"selector": "namespaceLabelSelector", "failed": "failedNamespace"}
_BETA = {"selector": "namespaceSelector", "failed": "failedNamespaces"}


def _change(document: Json, old: dict[str, str], new: dict[str, str]) -> None:
    spec, status = member(document, "spec"), member(document, "status")
    if "targets" in spec:
        _targets(mapping(spec["targets"]), old["selector"], new["selector"])
    for condition in mappings(status.get("conditions")):
        _rename(condition, old["failed"], new["failed"])
        _drop_empty(condition, new["failed"])
    _drop_empty(status, "conditions")


def _targets(targets: Json, old: str, new: str) -> None:
    _rename(targets, old, new)
    selector = ensured(targets, new)
    for requirement in mappings(selector.get("matchExpressions")):
        _drop_empty(requirement, "values")
    _drop_empty(selector, "matchLabels", "matchExpressions")
    for names in ("includedNamespaces", "excludedNamespaces"):
        _drop_empty(ensured(targets, names), "list")


def _rename(document: Json, old: str, new: str) -> None:
    if old in document:
        document[new] = document.pop(old)


def _drop_empty(document: Json, *keys: str) -> None:
    for key in keys:
        if key in document and not document[key]:
            del document[key]


_VERSIONS = Conversion(
    "ResourceDistribution", partial(_change, old=_ALPHA, new=_BETA), partial(_change, old=_BETA, new=_ALPHA)
)
convert, to_hub = _VERSIONS.convert, _VERSIONS.to_hub


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (422)."""
    document = to_hub(document_of(request, _typed))
    resource = resource_of(document)
    old = resource_of(to_hub(request.old_object)) if request.old_object else None
    faults = list(resource_faults(resource, old))
    if not faults and resource != old:
        faults += await _try(resource, tools)
    if resource:
        faults += target_faults(_typed(document))
    return error(422, aggregate(faults)) if faults else ALLOWED


async def _try(resource: Json, tools: Tools) -> list[Fault]:
    """Return the apiserver's objections to the resource."""
    kind, metadata = distributed(resource), mapping(resource.get("metadata"))
    assert kind is not None
    here = resource | {"metadata": metadata | {"namespace": tools.namespace}}
    try:
        await tools.try_create(kind, tools.namespace, here)
    except ApiError as refusal:
        fault = trial_fault(resource, refusal)
        return [] if fault is None else [fault]
    except Unreachable as failure:
        return [internal(str(failure))]
    return []


def _typed(document: Json) -> ResourceDistribution:
    return decoded(to_hub(document), ResourceDistribution)


RULES = Rules(schema=version, convert=convert, admission=Admission(validate=validate, old_paths=True))
