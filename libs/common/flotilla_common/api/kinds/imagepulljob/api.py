"""The API of ImagePullJobs, parts of which ImageListPullJobs share (imagepull.md §2.2, §3).

Both versions have the same fields; kubectl prints a message in the older one. Unset parallelism, and other members
without a default, are not filled in: it stays visible that they are unset. A problem is the first fault, as plain text,
in the order of the reference; an empty text means no fault.
"""

import copy
from collections.abc import Iterable
from functools import partial

from flotilla_common.api.admission.handlers import Tools, decoded, defaulted, review_first
from flotilla_common.api.admission.review import Answer, Request, denied
from flotilla_common.api.batch import ALWAYS, NEVER
from flotilla_common.api.crds.schema import (
    AGE,
    Column,
    Schema,
    Version,
    int_or_string,
    integer,
    label_selector,
    mapping,
    string,
    strings,
    struct,
    time,
)
from flotilla_common.api.crds.shared import completion_policy
from flotilla_common.api.documents import Json, ensured, fill, fill_empty, member, sequence
from flotilla_common.api.images import ImageName
from flotilla_common.api.kinds.imagepulljob.types import (
    DEFAULT_BACKOFF_LIMIT,
    DEFAULT_TIMEOUT_SECONDS,
    FINALIZER,
    ImagePullJob,
    NodeSelector,
    PullTemplate,
)
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.meta import IntOrString
from flotilla_common.api.numbers import whole_number
from flotilla_common.api.selectors import selector_problem
from flotilla_common.api.versions import V1ALPHA1

_COLUMNS = (
    Column("TOTAL", "integer", ".status.desired"),
    Column("ACTIVE", "integer", ".status.active"),
    Column("SUCCEED", "integer", ".status.succeeded"),
    Column("FAILED", "integer", ".status.failed"),
    AGE,
)
_MESSAGE = Column("MESSAGE", "string", ".status.message")


def version(name: str) -> Version:
    """Return one version of the CRD."""
    image = string("The image to pull, with tag or digest.")
    spec = struct("The desired state.", ("image", "completionPolicy"), image=image, **template_schemas())
    return Version(name, spec, _status_schema(), (*_COLUMNS, _MESSAGE) if name == "v1alpha1" else _COLUMNS)


def _status_schema() -> Schema:
    return struct(
        "The observed state.",
        ("desired",),
        startTime=time("The time of the first reconcile."),
        completionTime=time("The time at which it ended."),
        desired=integer("Nodes that match."),
        active=integer("Nodes that are pulling."),
        succeeded=integer("Nodes that have the image."),
        failed=integer("Nodes that could not pull it."),
        message=string("The progress of the job."),
        failedNodes=strings("The nodes that could not pull it."),
    )


def sandbox_config_schema() -> Schema:
    """Return the schema of metadata for the container runtime."""
    return struct(
        "Metadata for the container runtime, sent with the pull request.",
        labels=mapping("Labels."),
        annotations=mapping("Annotations."),
    )


def template_schemas() -> dict[str, Schema]:
    """Return the fields that ImageListPullJobs have too, by name."""
    policy = struct(
        "The limits on one node.",
        timeoutSeconds=integer("Seconds that one attempt may take. Default: 600."),
        backoffLimit=integer("Attempts after the first one. Default: 3."),
    )
    return {
        "pullSecrets": strings("Names of secrets in the job's namespace with registry credentials."),
        "selector": _node_selector_schema(),
        "podSelector": label_selector("The nodes of these pods of the job's namespace; excludes selector."),
        "parallelism": int_or_string("The maximum number of nodes that pull at once; 0 pauses. Default: 1."),
        "pullPolicy": policy,
        "completionPolicy": completion_policy(),
        "sandboxConfig": sandbox_config_schema(),
        "imagePullPolicy": string("Always or IfNotPresent. Default: IfNotPresent."),
    }


def _node_selector_schema() -> Schema:
    selector = label_selector("The nodes to use, by label or by name. Default: all nodes.")
    names = strings("Exact names of nodes; excludes labels.")
    return selector | {"properties": selector["properties"] | {"names": names}}


def default_pull_job(document: Json, *, creating: bool) -> Json:
    """Return a new document with defaults, and for old clients with the finalizer that they expect at once."""
    defaulted = copy.deepcopy(document)
    spec = default_pull_template(defaulted)
    fill_empty(spec, imagePullPolicy="IfNotPresent")
    if creating and document.get("apiVersion") == V1ALPHA1:
        metadata = ensured(defaulted, "metadata")
        finalizers = sequence(metadata.get("finalizers"))
        if FINALIZER not in finalizers:
            metadata["finalizers"] = [*finalizers, FINALIZER]
    return defaulted


def default_pull_template(document: Json) -> Json:
    """Set the defaults that both kinds of jobs share, in the document, and return its spec."""
    spec = ensured(document, "spec")
    fill_empty(ensured(spec, "completionPolicy"), type=ALWAYS)
    default_limits(ensured(spec, "pullPolicy"))
    return spec


def default_limits(policy: Json) -> None:
    """Set the default limits of one node, in the policy."""
    fill(policy, timeoutSeconds=DEFAULT_TIMEOUT_SECONDS, backoffLimit=DEFAULT_BACKOFF_LIMIT)


def pull_job_problem(job: ImagePullJob) -> str:
    """Return the first fault of the job; empty without one."""
    return template_problem(job.spec, image_problem(job.spec.image))


def secrets_changed(document: Json, old: Json) -> bool:
    """Report whether an update changes the pull secrets, which are immutable."""
    return (member(document, "spec").get("pullSecrets") or []) != (member(old, "spec").get("pullSecrets") or [])


def template_problem(spec: PullTemplate, images: str, *, deadline: bool = True) -> str:
    """Return the first fault of the spec; empty without one.

    `images`: the fault of its images. `deadline`: whether to check the deadline, too.
    """
    return (
        selection_problem(spec)
        or images
        or _parallelism_problem(spec.parallelism)
        or (_deadline_problem(spec) if deadline else "")
        or _completion_problem(spec)
    )


def selection_problem(spec: PullTemplate) -> str:
    """Return the fault of the selection of nodes; empty without one."""
    if spec.selector is not None and (problem := _selector_problem(spec.selector)):
        return problem
    if spec.pod_selector is not None:
        if spec.selector is not None:
            return "can not set both selector and podSelector"
        if problem := selector_problem(spec.pod_selector):
            return f"invalid podSelector: {problem}"
    return ""


def image_problem(image: str) -> str:
    """Return the fault of an image's name; empty without one."""
    if not image:
        return "image can not be empty"
    try:
        ImageName.parse(image)
    except ValueError as fault:
        return f"invalid image {image}: {fault}"
    return ""


def duplicates(values: Iterable[str]) -> bool:
    """Report whether some value occurs twice."""
    listed = list(values)
    return len(set(listed)) != len(listed)


def _selector_problem(selector: NodeSelector) -> str:
    if selector.names and (selector.match_labels or selector.match_expressions):
        return "can not set both names and labelSelector in this spec.selector"
    if problem := selector_problem(selector):
        return f"invalid selector: {problem}"
    return "duplicated name in selector names" if duplicates(selector.names) else ""


def _parallelism_problem(parallelism: IntOrString | None) -> str:
    if isinstance(parallelism, str) and parallelism.endswith("%"):
        return "parallelism does not support percentage value"
    try:
        number = 0 if parallelism is None else whole_number(parallelism)
    except ValueError as fault:
        return f"parallelism must be a valid integer: {fault}"
    return "parallelism must be non-negative" if number < 0 else ""


def _deadline_problem(spec: PullTemplate) -> str:
    deadline = spec.completion_policy.active_deadline_seconds
    limit = spec.pull_policy.timeout_seconds if spec.pull_policy is not None else None
    if spec.completion_policy.type != ALWAYS or deadline is None:
        return ""
    if (DEFAULT_TIMEOUT_SECONDS if limit is None else limit) > deadline:
        return "completionPolicy.activeDeadlineSeconds must be greater than pullPolicy.timeoutSeconds(default 600)"
    return ""


def _completion_problem(spec: PullTemplate) -> str:
    policy = spec.completion_policy
    if policy.type not in (ALWAYS, NEVER):
        return f"unknown type of completionPolicy: {policy.type}"
    limited = policy.active_deadline_seconds is not None or policy.ttl_seconds_after_finished is not None
    if policy.type == NEVER and limited:
        return "activeDeadlineSeconds and ttlSecondsAfterFinished can only work with Always CompletionPolicyType"
    return ""


_read = partial(decoded, model=ImagePullJob)


async def mutate(request: Request, tools: Tools) -> Answer:
    """Answer with defaults, and with the finalizer for old clients."""
    creating = request.operation == "CREATE"
    return defaulted(request, _read, lambda it: default_pull_job(it.document, creating=creating))


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with the first fault (400), or with a change of pull secrets (403)."""
    old = request.old_object
    if request.operation == "UPDATE" and old and secrets_changed(request.object or {}, old):
        return denied("spec.pullSecrets is immutable")
    return review_first(request, ImagePullJob, pull_job_problem)


RULES = Rules(
    schema=version,
    admission=Admission(mutate=mutate, validate=validate, name="imagepulljob-v1beta1"),
)
