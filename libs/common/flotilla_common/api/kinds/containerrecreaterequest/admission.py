"""Admission of ContainerRecreateRequests: one mutating webhook that also validates.

See containerrecreaterequest.md §4. Pod and node are read from the apiserver: the containers' identity must be current.
"""

import copy
from functools import partial

import msgspec

from flotilla_common.api.admission.handlers import Tools, decoded, document_of, former_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Refused, Request, error, identity, operations, patched
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mapping, mappings, member, strings, text
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.keys import (
    RECREATE_ACTIVE,
    RECREATE_NODE_NAME,
    RECREATE_POD_UID,
    RECREATE_UNREADY,
    SIDECAR_TERMINATED,
)
from flotilla_common.api.kinds.containerrecreaterequest import crd
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    FAIL,
    IGNORE,
    ContainerRecreateRequest,
    ContainerRecreateRequestSpec,
    convert,
    strip,
)
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.api.versions import V1ALPHA1, V1BETA1

MINIMUM_DEADLINE = 3
"""The shortest deadline in seconds; fixed (§10)."""

check_types = partial(decoded, model=ContainerRecreateRequest)
"""Decodes the request. Raises ValueError if a field has a wrong type."""


async def mutate(request: Request, tools: Tools) -> Answer:
    """Record the containers' identity on creation; refuse updates that change it."""
    creating = request.operation == "CREATE"
    if not creating and (request.operation != "UPDATE" or request.sub_resource):
        return ALLOWED
    document = document_of(request, check_types)
    if creating:
        return _answer(document, await _identified(request, document, tools))
    former = former_of(request, check_types)
    if former is not None and (problem := change_problem(document, former)):
        return error(403, problem)
    return _answer(document, copy.deepcopy(document))


async def _identified(request: Request, document: Json, tools: Tools) -> Json:
    spec = check_types(document).spec
    if problem := spec_problem(spec):
        raise Refused(400, problem)
    namespace, _ = identity(document, request)
    pod = await _read(tools, POD, namespace, spec.pod_name, missing=f"no found Pod named {spec.pod_name}")
    typed = msgspec.convert(pod, Pod)
    if problem := pod_problem(typed):
        raise Refused(400, problem)
    node = await _read(tools, NODE, "", typed.spec.node_name, missing=f"failed to get Node {typed.spec.node_name}")
    return identified(document, pod, strings(member(node, "metadata").get("labels")))


async def _read(tools: Tools, resource: Resource, namespace: str, name: str, *, missing: str) -> Json:
    try:
        return msgspec.json.decode(await tools.read(resource, namespace, name), type=Json)
    except ApiError as failure:
        if failure.code == 404:
            raise Refused(400, f"{missing}: {failure.message}" if resource == NODE else missing) from failure
        raise Refused(500, f"failed to get {resource.kind} {name}: {failure.message}") from failure
    except Unreachable as failure:
        raise Refused(500, f"failed to get {resource.kind} {name}: {failure}") from failure


def _answer(document: Json, result: Json) -> Answer:
    """Answer with the changes; annotations that only v1alpha1 shows are not stored."""
    if result.get("apiVersion") == V1BETA1:
        strip(result)
    return patched(operations(document, result))


def spec_problem(spec: ContainerRecreateRequestSpec) -> str:
    """Return a problem of the spec that needs no look-up; empty without one."""
    strategy = spec.strategy
    if not spec.pod_name:
        return "podName can not be empty"
    if not spec.containers:
        return "containers list can not be null"
    if spec.active_deadline_seconds is not None and spec.active_deadline_seconds < MINIMUM_DEADLINE:
        return f"activeDeadlineSeconds can not be less than {MINIMUM_DEADLINE}s"
    if (strategy.termination_grace_period_seconds or 0) < 0:
        return "terminationGracePeriodSeconds must be non-negative integer"
    if (strategy.unready_grace_period_seconds or 0) < 0:
        return "unreadyGracePeriodSeconds must be non-negative integer"
    if strategy.failure_policy not in ("", FAIL, IGNORE):
        return f"unknown failurePolicy {strategy.failure_policy}"
    return ""


def pod_problem(pod: Pod) -> str:
    """Return why containers of the pod cannot be restarted now; empty if they can."""
    if not pod.active and SIDECAR_TERMINATED not in pod.conditions:
        return "not allowed to recreate containers in an inactive Pod"
    if not pod.spec.node_name:
        return "not allowed to recreate containers in a pending Pod"
    return ""


def change_problem(document: Json, old: Json) -> str:
    """Return a forbidden change in an update; empty without one. Specs are compared by meaning."""
    if check_types(document).spec != check_types(old).spec:
        return "spec of ContainerRecreateRequest is immutable"
    labels, before = (strings(member(one, "metadata").get("labels")) for one in (document, old))
    for key in (RECREATE_POD_UID, RECREATE_NODE_NAME):
        if labels.get(key) != before.get(key):
            return f"not allowed to update immutable label {key}"
    if document.get("apiVersion") == V1ALPHA1:
        now, was = (member(one, "metadata", "annotations").get(RECREATE_UNREADY) for one in (document, old))
        if was and now != was:
            return f"not allowed to update immutable annotation {RECREATE_UNREADY}"
    return ""


HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
"""The kinds of preStop hooks that the agent supports."""

_VIRTUAL = ("type", "virtual-kubelet")
"""The label of a virtual node, which is copied to the request."""


def identified(document: Json, pod: Json, node_labels: dict[str, str]) -> Json:
    """Return a new document with containers, node and stop settings filled in.

    A container is restarted often, and its pod may be replaced by another one of the same name: so the request holds
    the IDs of the running containers, and the agent acts on these alone. Raises Refused for a container that cannot be
    restarted.
    """
    result = copy.deepcopy(document)
    metadata = result.setdefault("metadata", {})
    metadata["labels"] = mapping(metadata.get("labels")) | _labels(pod, node_labels)
    spec = mapping(result.get("spec"))
    strategy = spec["strategy"] = mapping(spec.get("strategy"))
    strategy["failurePolicy"] = strategy.get("failurePolicy") or FAIL
    grace = member(pod, "spec").get("terminationGracePeriodSeconds")
    if strategy.get("terminationGracePeriodSeconds") is None and grace is not None:
        strategy["terminationGracePeriodSeconds"] = grace
    seen: set[str] = set()
    for container in mappings(spec.get("containers")):
        name = text(container.get("name"))
        if name in seen:
            raise Refused(400, f"can not recreate {name} multi times")
        seen.add(name)
        _identify(container, pod)
    return result


def _labels(pod: Json, node_labels: dict[str, str]) -> dict[str, str]:
    labels = {
        RECREATE_ACTIVE: "true",
        RECREATE_POD_UID: text(member(pod, "metadata").get("uid")),
        RECREATE_NODE_NAME: text(member(pod, "spec").get("nodeName")),
    }
    key, value = _VIRTUAL
    return labels | ({key: value} if node_labels.get(key) == value else {})


def _identify(container: Json, pod: Json) -> None:
    name = text(container.get("name"))
    if any(container.get(field) for field in ("preStop", "ports", "statusContext")):
        raise Refused(400, f"preStop, ports, statusContext in container {name} are read-only fields")
    template = _named(mappings(member(pod, "spec").get("containers")), name)
    if template is None:
        raise Refused(400, f"container {name} not found in Pod")
    status = _named(mappings(member(pod, "status").get("containerStatuses")), name)
    if status is None:
        raise Refused(400, f"not found {name} containerStatus in Pod Status")
    container_id = text(status.get("containerID"))
    if not container_id:
        raise Refused(400, f"no containerID in {name} containerStatus, maybe the container has not been initialized")
    hook = member(template, "lifecycle").get("preStop")
    if hook is not None:
        container["preStop"] = {kind: handler for kind, handler in mapping(hook).items() if kind in HANDLERS}
        if "httpGet" in container["preStop"] and template.get("ports"):
            container["ports"] = template["ports"]
    container["statusContext"] = {"containerID": container_id, "restartCount": status.get("restartCount") or 0}


def _named(entries: list[Json], name: str) -> Json | None:
    return next((entry for entry in entries if entry.get("name") == name), None)


RULES = Rules(schema=crd.version, convert=convert, admission=Admission(mutate=mutate, old_paths=True))
