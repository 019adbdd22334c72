"""Admission of ContainerRecreateRequests (containerrecreaterequest.md §4): one mutating webhook that refuses, too.

Pod and node are read from the apiserver itself: the identity of the containers must be that of now.
"""

import copy
from functools import partial

import msgspec

from flotilla_common.api.admission.plain import decoded, document_of, former_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Refused, Request, error, identity, operations, patched
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.keys import RECREATE_NODE_NAME, RECREATE_POD_UID, RECREATE_UNREADY, SIDECAR_TERMINATED
from flotilla_common.api.kinds.containerrecreaterequest import crd
from flotilla_common.api.kinds.containerrecreaterequest.conversion import convert, strip
from flotilla_common.api.kinds.containerrecreaterequest.identity import identified
from flotilla_common.api.kinds.containerrecreaterequest.types import (
    FAIL,
    IGNORE,
    ContainerRecreateRequest,
    ContainerRecreateRequestSpec,
)
from flotilla_common.api.kinds.rules import Admission, Rules
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.api.versions import V1ALPHA1, V1BETA1

MINIMUM_DEADLINE = 3
"""Seconds; fixed (§10)."""

check_types = partial(decoded, model=ContainerRecreateRequest)
"""Return the request, decoded. Raises ValueError if a field has a type that it cannot have."""


async def mutate(request: Request, tools: Tools) -> Answer:
    """Freeze the containers' identity on creation; let an update change nothing of it."""
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
    """The changes; what only v1alpha1 shows is kept out of what is stored."""
    if result.get("apiVersion") == V1BETA1:
        strip(result)
    return patched(operations(document, result))


def spec_problem(spec: ContainerRecreateRequestSpec) -> str:
    """What is wrong with the spec by itself, before anything is looked up."""
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
    """Why containers of the pod cannot be restarted now."""
    if not pod.active and SIDECAR_TERMINATED not in pod.conditions:
        return "not allowed to recreate containers in an inactive Pod"
    if not pod.spec.node_name:
        return "not allowed to recreate containers in a pending Pod"
    return ""


def change_problem(document: Json, old: Json) -> str:
    """What an update changes that must stay. Specs are compared as what they mean, not as they are written."""
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


RULES = Rules(schema=crd.version, convert=convert, admission=Admission(mutate=mutate, old_paths=True))
