"""Admission of ContainerRecreateRequests (containerrecreaterequest.md §4): one mutating webhook that refuses, too.

Pod and node are read from the apiserver itself: the identity of the containers must be that of now.
"""

import copy

import msgspec

from flotilla_common.api.admission.patch import operations
from flotilla_common.api.admission.plain import undecodable
from flotilla_common.api.admission.review import ALLOWED, Answer, Request, error, identity, patched
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.containerrecreaterequest import validation as rules
from flotilla_common.api.kinds.containerrecreaterequest.conversion import strip
from flotilla_common.api.kinds.containerrecreaterequest.identity import Refused, identified
from flotilla_common.api.kinds.containerrecreaterequest.kind import KIND
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.api.versions import V1BETA1


class _Stop(Exception):
    """The answer is known."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = error(code, message)


async def mutate(request: Request, tools: Tools) -> Answer:
    """Freeze the containers' identity on creation; let an update change nothing of it."""
    creating = request.operation == "CREATE"
    if not creating and (request.operation != "UPDATE" or request.sub_resource):
        return ALLOWED
    document = request.object or {}
    if problem := undecodable(KIND, document, rules.check_types):
        return error(400, problem)
    try:
        return await _create(request, document, tools) if creating else _update(document, request.old_object or {})
    except _Stop as stop:
        return stop.answer


async def _create(request: Request, document: Json, tools: Tools) -> Answer:
    wanted = rules.check_types(document)
    if problem := rules.spec_problem(wanted.spec):
        return error(400, problem)
    namespace, _ = identity(document, request)
    name = wanted.spec.pod_name
    pod = await _read(tools, POD, namespace, name, missing=f"no found Pod named {name}")
    typed = msgspec.convert(pod, Pod)
    if problem := rules.pod_problem(typed):
        return error(400, problem)
    node = await _read(tools, NODE, "", typed.spec.node_name, missing=f"failed to get Node {typed.spec.node_name}")
    try:
        result = identified(document, pod, strings(member(node, "metadata").get("labels")))
    except Refused as refusal:
        return error(400, str(refusal))
    return _answer(document, result)


def _update(document: Json, old: Json) -> Answer:
    if problem := rules.change_problem(document, old):
        return error(403, problem)
    return _answer(document, copy.deepcopy(document))


async def _read(tools: Tools, resource: Resource, namespace: str, name: str, *, missing: str) -> Json:
    try:
        return msgspec.json.decode(await tools.read(resource, namespace, name), type=Json)
    except ApiError as failure:
        if failure.code == 404:
            raise _Stop(400, f"{missing}: {failure.message}" if resource == NODE else missing) from failure
        raise _Stop(500, f"failed to get {resource.kind} {name}: {failure.message}") from failure
    except Unreachable as failure:
        raise _Stop(500, f"failed to get {resource.kind} {name}: {failure}") from failure


def _answer(document: Json, result: Json) -> Answer:
    """The changes; what only v1alpha1 shows is kept out of what is stored."""
    if result.get("apiVersion") == V1BETA1:
        strip(result)
    return patched(operations(document, result))
