"""The API of EphemeralJobs, in one version: schema, validation, admission (ephemeraljob.md §1 to §3).

They have no defaults.
"""

from collections.abc import Iterable, Iterator, Set
from functools import partial

from flotilla_common.api.admission.fields import (
    Fault,
    duplicate,
    forbidden,
    invalid,
    label_faults,
    not_supported,
    required,
)
from flotilla_common.api.admission.handlers import Findings, Tools, Write, decoded, document_of, review
from flotilla_common.api.admission.review import ALLOWED, Answer, Request
from flotilla_common.api.crds.schema import (
    AGE,
    Column,
    Schema,
    Version,
    anything,
    array,
    boolean,
    integer,
    job_conditions,
    label_selector,
    string,
    struct,
    time,
)
from flotilla_common.api.documents import Json, JsonValue, mappings, member, text
from flotilla_common.api.kinds.ephemeraljob.types import EphemeralJob
from flotilla_common.api.kinds.rules import Admission, Rules

_COLUMNS = (
    Column("STATUS", "string", ".status.phase"),
    Column("MATCH", "integer", ".status.match"),
    Column("SUCCEED", "integer", ".status.succeeded"),
    Column("FAILED", "integer", ".status.failed"),
    Column("RUNNING", "integer", ".status.running"),
    Column("WAITING", "integer", ".status.waiting"),
    AGE,
)

_ALLOWED = frozenset(
    {
        *("name", "image", "command", "args", "workingDir", "envFrom", "env", "volumeMounts", "volumeDevices"),
        *("terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "securityContext"),
        *("stdin", "stdinOnce", "tty", "targetContainerName"),
    }
)
_POINTERS = frozenset({"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"})
"""Members that count as set even when they are empty."""

_POLICIES = {
    "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
    "imagePullPolicy": ("Always", "IfNotPresent", "Never"),
}
_SHARED = ("ports", "env", "envFrom", "securityContext", "command", "args", "workingDir")
_STAND_IN = "spec.template.spec.containers["


def version(name: str) -> Version:
    """Return one version of the CRD."""
    return Version(name, _spec_schema(), _status_schema(), _COLUMNS)


def _spec_schema() -> Schema:
    return struct(
        "The desired state.",
        ("selector", "template"),
        selector=label_selector("The pods of the namespace that get the containers."),
        replicas=integer("The maximum number of pods that get them. Default: all that match."),
        parallelism=integer("The maximum number of pods whose containers run at once; 0 starts none. Default: 1."),
        template=_template_schema(),
        paused=boolean("Stops adding containers to pods. Default: false."),
        activeDeadlineSeconds=integer("Seconds that the job may take.", bits=64),
        ttlSecondsAfterFinished=integer("Seconds after its end that the job is deleted. Default: 1800."),
    )


def _template_schema() -> Schema:
    container = anything("An ephemeral container; name, image and both policies are needed.")
    return struct(
        "The containers to add.",
        ("ephemeralContainers",),
        ephemeralContainers=array("The containers; a pod gets all of them at once.", container),
    )


def _status_schema() -> Schema:
    return struct(
        "The observed state; all counts are pods.",
        conditions=job_conditions("Initialized, MatchedEmpty, JobSucceeded, JobFailed, JobError."),
        startTime=time("The time of the first reconcile."),
        completionTime=time("The time at which it ended."),
        phase=string("Waiting, Running, Succeeded, Failed, Paused, Error or Unknown."),
        match=integer("Pods that match."),
        running=integer("Pods whose containers run."),
        succeeded=integer("Pods whose containers have all succeeded."),
        waiting=integer("Pods whose containers wait to run."),
        failed=integer("Pods with a container that failed."),
    )


def containers_of(document: Json) -> list[Json]:
    """Return the containers of the template."""
    return mappings(member(document, "spec", "template").get("ephemeralContainers"))


def stand_in(containers: Iterable[Json]) -> Json:
    """Return a pod template whose containers have the members that ephemeral ones share with others."""
    checked = [
        {"name": f"c{index}", "image": "none"} | {name: one[name] for name in _SHARED if name in one}
        for index, one in enumerate(containers)
    ]
    return {"spec": {"containers": checked}}


def own_faults(faults: Iterable[Fault]) -> list[Fault]:
    """Return the faults of the substitute template with the paths of the job."""
    return [Fault(fault.path.replace(_STAND_IN, "ephemeralContainers["), fault.body) for fault in faults]


def faults_of(document: Json, shared: Iterable[Fault] = ()) -> list[Fault]:
    """Return all faults of an EphemeralJob. `shared`: the apiserver's faults of its containers."""
    containers = containers_of(document)
    faults: list[Fault] = []
    before: set[str] = set()
    for index, container in enumerate(containers):
        path = f"ephemeralContainers[{index}]"
        faults += _name_faults(f"{path}.name", text(container.get("name")), before)
        before.add(text(container.get("name")))
        faults += _container_faults(path, container)
    return [*faults, *shared]


def _name_faults(path: str, name: str, before: Set[str]) -> Iterator[Fault]:
    if not name:
        yield required(path)
        return
    yield from label_faults(path, name)
    if name in before:
        yield duplicate(path, name)


def _container_faults(path: str, container: Json) -> Iterator[Fault]:
    yield from _image_faults(f"{path}.image", text(container.get("image")))
    for name, known in _POLICIES.items():
        policy = container.get(name)
        if not policy:
            yield required(f"{path}.{name}")
        elif policy not in known:
            yield not_supported(f"{path}.{name}", policy, known)
    for name, value in container.items():
        if name not in _ALLOWED and _is_set(name, value):
            yield forbidden(f"{path}.{name}", "cannot be set for an Ephemeral Container")
    for index, mount in enumerate(mappings(container.get("volumeMounts"))):
        for name in ("subPath", "subPathExpr"):
            if mount.get(name):
                yield forbidden(f"{path}.volumeMounts[{index}].{name}", "cannot be set for an Ephemeral Container")


def _image_faults(path: str, image: str) -> Iterator[Fault]:
    if not image:
        yield required(path)
    elif image != image.strip():
        yield invalid(path, image, "must not have leading or trailing whitespace")


def _is_set(name: str, value: JsonValue) -> bool:
    return bool(value) or (name in _POINTERS and value is not None)


check_types = partial(decoded, model=EphemeralJob)
"""Raises ValueError if a field that Flotilla reads has a wrong type."""


async def validate(request: Request, tools: Tools) -> Answer:
    """Answer with all field errors at once (400), but for stored containers, so that finalizers can be removed."""
    document = document_of(request, check_types)
    if request.operation == "UPDATE" and containers_of(document) == containers_of(request.old_object or {}):
        return ALLOWED
    return await review(request, tools, check_types, _findings)


async def _findings(write: Write, tools: Tools) -> Findings:
    containers = containers_of(write.document)
    if not containers:  # a job without containers is admitted, and ends in an error
        return Findings()
    verdict = await tools.template_verdict(write.namespace, stand_in(containers), [])
    return Findings(faults_of(write.document, own_faults(verdict.faults)), code=400)


RULES = Rules(schema=version, admission=Admission(validate=validate, name="ephemeraljobs", calls_old_path=True))
