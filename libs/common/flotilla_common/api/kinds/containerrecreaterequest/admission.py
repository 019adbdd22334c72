"""Admission of ContainerRecreateRequests (containerrecreaterequest.md §4): one mutating webhook that refuses, too.

Pod and node are read from the apiserver itself: the identity of the containers must be that of now.
"""

import copy

import msgspec

from flotilla_common.api.admission.patch import operations
from flotilla_common.api.admission.plain import document_of, former_of
from flotilla_common.api.admission.review import ALLOWED, Answer, Refused, Request, error, identity, patched
from flotilla_common.api.admission.tools import Tools
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.errors import ApiError, Unreachable
from flotilla_common.api.kinds.containerrecreaterequest import validation as rules
from flotilla_common.api.kinds.containerrecreaterequest.conversion import strip
from flotilla_common.api.kinds.containerrecreaterequest.identity import identified
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.api.versions import V1BETA1


async def mutate(request: Request, tools: Tools) -> Answer:
    """Freeze the containers' identity on creation; let an update change nothing of it."""
    creating = request.operation == "CREATE"
    if not creating and (request.operation != "UPDATE" or request.sub_resource):
        return ALLOWED
    document = document_of(request, rules.check_types)
    if creating:
        return _answer(document, await _identified(request, document, tools))
    former = former_of(request, rules.check_types)
    if former is not None and (problem := rules.change_problem(document, former)):
        return error(403, problem)
    return _answer(document, copy.deepcopy(document))


async def _identified(request: Request, document: Json, tools: Tools) -> Json:
    spec = rules.check_types(document).spec
    if problem := rules.spec_problem(spec):
        raise Refused(400, problem)
    namespace, _ = identity(document, request)
    pod = await _read(tools, POD, namespace, spec.pod_name, missing=f"no found Pod named {spec.pod_name}")
    typed = msgspec.convert(pod, Pod)
    if problem := rules.pod_problem(typed):
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
