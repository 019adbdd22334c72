"""Admission of CloneSets: defaults, validation, deletion protection (cloneset.md §3)."""

from collections.abc import AsyncIterator

import msgspec

from flotilla_common.api.admission.fields import Fault, aggregate, invalid
from flotilla_common.api.admission.patch import operations
from flotilla_common.api.core import Pod
from flotilla_common.api.documents import Json, mapping, mappings, member, text
from flotilla_common.api.kinds.cloneset import validation as rules
from flotilla_common.api.kinds.cloneset.defaults import default_cloneset
from flotilla_common.api.meta import controller_of
from flotilla_common.api.resources import POD
from flotilla_common.api.versions import V1ALPHA1, V1BETA1
from flotilla_common.gates import Gates
from flotilla_common.kube.interface import Api, ApiError, Unreachable
from flotilla_webhook.protection import Protection
from flotilla_webhook.review import Answer, Handler, Request, error, identity, patched
from flotilla_webhook.templates import TemplateValidator, Verdict


class CloneSetAdmission:
    """The handlers of /mutate-… and /validate-apps-kruise-io-cloneset."""

    def __init__(self, api: Api, templates: TemplateValidator, protection: Protection, gates: Gates) -> None:
        self.api = api
        self.templates = templates
        self.protection = protection
        self.gates = gates

    def handlers(self) -> dict[str, Handler]:
        """By path, with the paths of old charts."""
        return {
            "/mutate-apps-kruise-io-cloneset": self.mutate,
            "/mutate-apps-kruise-io-v1alpha1-cloneset": self.mutate,
            "/validate-apps-kruise-io-cloneset": self.validate,
            "/validate-apps-kruise-io-v1alpha1-cloneset": self.validate,
        }

    async def mutate(self, request: Request) -> Answer:
        """Defaults, as a patch in the version of the request."""
        if problem := _undecodable(request.object):
            return error(400, problem)
        document = request.object or {}
        return patched(operations(document, default_cloneset(document, request.old_object, self.gates)))

    async def validate(self, request: Request) -> Answer:
        """All field errors at once (422), or what protects the object from deletion (403). Warnings say what is
        accepted and will not work as it was meant."""
        if request.operation == "DELETE":
            return await self.protection.workload(request)
        if problem := _undecodable(request.object):
            return error(400, problem)
        document = request.object or {}
        old = request.old_object if request.operation == "UPDATE" else None
        namespace, name = identity(document, request)
        try:
            template = await self._template_verdict(namespace, document, old)
            pods = [fault async for fault in self._pod_faults(namespace, document, old)]
        except (ApiError, Unreachable) as failure:
            return error(500, f"cannot check the CloneSet, the apiserver says: {failure}")
        if old is None:
            faults = rules.validate(document, template.faults, pods)
        else:
            faults = rules.validate_update(document, old, template.faults, pods)
        if faults:
            return error(422, aggregate(faults))
        warnings = [f'unknown field "{path}": pods will not have it' for path in template.dropped]
        if old is None and (warning := rules.name_warning(name, short_hash=self.gates.on("CloneSetShortHash"))):
            warnings.append(warning)
        return Answer(warnings=warnings)

    async def _template_verdict(self, namespace: str, document: Json, old: Json | None) -> Verdict:
        """Only a new or changed template is judged: a stored one stays writable when the apiserver gets stricter."""
        if not rules.template_changed(document, old):
            return Verdict()
        spec = mapping(document.get("spec"))
        claims = mappings(spec.get("volumeClaimTemplates"))
        verdict = await self.templates.verdict(namespace, mapping(spec.get("template")), claims)
        return Verdict([*verdict.faults, *rules.claim_faults(claims)], verdict.dropped)

    async def _pod_faults(self, namespace: str, document: Json, old: Json | None) -> AsyncIterator[Fault]:
        uid = text(member(document, "metadata").get("uid"))
        for name in rules.newly_to_delete(document, old):
            if reason := await self._unfit(namespace, name, uid):
                yield invalid(rules.PODS_TO_DELETE, name, reason)

    async def _unfit(self, namespace: str, name: str, uid: str) -> str:
        """Why the pod cannot be deleted by the CloneSet with this uid; empty if it can."""
        try:
            pod = msgspec.json.decode(await self.api.get(POD, namespace, name), type=Pod)
        except ApiError as failure:
            return f"find pod {name} failed: {failure.message}"
        if pod.metadata.deletion_timestamp is not None:
            return f"find pod {name} already terminating"
        owner = controller_of(pod.metadata)
        return "" if owner is not None and owner.uid == uid else f"find pod {name} owner is not this CloneSet"


def _undecodable(document: Json | None) -> str:
    """Why the object cannot be read as a CloneSet; empty if it can."""
    if document is None:
        return "there is no object in the request"
    if document.get("apiVersion") not in (V1ALPHA1, V1BETA1):
        return f"unsupported version {document.get('apiVersion')}"
    try:
        rules.check_types(document)
    except ValueError as fault:
        return str(fault)
    return ""
