"""Admission of ContainerRecreateRequests (containerrecreaterequest.md §4): one mutating webhook that refuses, too.

Pod and node are read from the apiserver itself: the identity of the containers must be that of now.
"""

import copy

import msgspec

from flotilla_common.api.admission.patch import operations
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, member, strings
from flotilla_common.api.kinds.containerrecreaterequest import validation as rules
from flotilla_common.api.kinds.containerrecreaterequest.conversion import strip
from flotilla_common.api.kinds.containerrecreaterequest.identity import Refused, identified
from flotilla_common.api.kinds.containerrecreaterequest.types import ContainerRecreateRequest
from flotilla_common.api.resources import NODE, POD, Resource
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_webhook.review import ALLOWED, Answer, Handler, Request, error, identity, patched


class _Stop(Exception):
    """The answer is known."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = error(code, message)


class RecreateAdmission:
    """The handler of /mutate-apps-kruise-io-containerrecreaterequest."""

    def __init__(self, api: Api, gates: Gates) -> None:
        self.api = api
        self.gates = gates

    def handlers(self) -> dict[str, Handler]:
        """By path, with the path of old charts."""
        return {
            "/mutate-apps-kruise-io-containerrecreaterequest": self.mutate,
            "/mutate-apps-kruise-io-v1alpha1-containerrecreaterequest": self.mutate,
        }

    async def mutate(self, request: Request) -> Answer:
        """Freeze the containers' identity on creation; let an update change nothing of it."""
        if not self.gates.on("KruiseDaemon"):
            return error(403, "feature-gate KruiseDaemon is not enabled")
        try:
            if request.operation == "CREATE":
                return await self._create(request)
            return self._update(request) if request.operation == "UPDATE" and not request.sub_resource else ALLOWED
        except _Stop as stop:
            return stop.answer

    async def _create(self, request: Request) -> Answer:
        document = request.object or {}
        wanted = _decoded(document)
        if problem := rules.spec_problem(wanted.spec):
            return error(400, problem)
        namespace, _ = identity(document, request)
        name = wanted.spec.pod_name
        pod = await self._read(POD, namespace, name, missing=f"no found Pod named {name}")
        typed = msgspec.convert(pod, Pod)
        if problem := rules.pod_problem(typed):
            return error(400, problem)
        node = await self._read(NODE, "", typed.spec.node_name, missing=f"failed to get Node {typed.spec.node_name}")
        try:
            result = identified(document, pod, strings(member(node, "metadata").get("labels")))
        except Refused as refusal:
            return error(400, str(refusal))
        return _answer(document, result)

    def _update(self, request: Request) -> Answer:
        document, old = request.object or {}, request.old_object or {}
        _decoded(document)
        if problem := rules.change_problem(document, old):
            return error(403, problem)
        return _answer(document, copy.deepcopy(document))

    async def _read(self, resource: Resource, namespace: str, name: str, *, missing: str) -> Json:
        try:
            return msgspec.json.decode(await self.api.get(resource, namespace, name), type=Json)
        except ApiError as failure:
            if failure.code == 404:
                raise _Stop(400, f"{missing}: {failure.message}" if resource == NODE else missing) from failure
            raise _Stop(500, f"failed to get {resource.kind} {name}: {failure.message}") from failure
        except Unreachable as failure:
            raise _Stop(500, f"failed to get {resource.kind} {name}: {failure}") from failure


def _decoded(document: Json) -> ContainerRecreateRequest:
    if document.get("apiVersion") not in (V1ALPHA1, V1BETA1):
        raise _Stop(400, f"unsupported version {document.get('apiVersion')}")
    try:
        return rules.check_types(document)
    except ValueError as fault:
        raise _Stop(400, str(fault)) from fault


def _answer(document: Json, result: Json) -> Answer:
    """The changes; what only v1alpha1 shows is kept out of what is stored."""
    if result.get("apiVersion") == V1BETA1:
        strip(result)
    return patched(operations(document, result))
