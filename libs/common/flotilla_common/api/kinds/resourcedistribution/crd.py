"""The ResourceDistribution CRD (resourcedistribution.md §1 and §2). The versions differ in two names."""

from flotilla_common.api.crds.schema import (
    Schema,
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
from flotilla_common.api.crds.version import Column, Version

_COLUMNS = (
    Column("TOTAL", "integer", ".status.desired"),
    Column("SUCCEED", "integer", ".status.succeeded"),
    Column("FAILED", "integer", ".status.failed"),
)


def version(name: str) -> Version:
    """Return one version of the CRD."""
    alpha = name == "v1alpha1"
    selector, failed = (
        ("namespaceLabelSelector", "failedNamespace") if alpha else ("namespaceSelector", "failedNamespaces")
    )
    return Version(name, _spec(selector), _status(failed), _COLUMNS)


def _spec(selector: str) -> Schema:
    resource = anything("The Secret or ConfigMap to distribute, complete. Its namespace does not matter.")
    chosen = {selector: label_selector("Namespaces by their labels. An empty selector selects none.")}
    targets = struct(
        "The namespaces that get a copy. kube-system and kube-public never do.",
        allNamespaces=boolean("All namespaces. Default: false."),
        includedNamespaces=_names("Namespaces by name; they need not exist yet."),
        excludedNamespaces=_names("Namespaces that get no copy; overrides all other fields."),
        **chosen,
    )
    return struct(
        "The resource, and its target namespaces.",
        ("resource", "targets"),
        resource=resource | {"x-kubernetes-embedded-resource": True},
        targets=targets,
    )


def _names(doc: str) -> Schema:
    return struct(doc, list=array("Their names.", struct("One namespace.", name=string("Its name."))))


def _status(failed: str) -> Schema:
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
