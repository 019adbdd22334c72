"""Pod templates are validated by the apiserver itself (docs/adr/0002).

The template goes as a core/v1 PodTemplate in a dry-run create, so the rules are exactly those of the cluster's version,
its feature gates included; nothing is stored. The causes of a refusal come back as field errors of the workload.
"""

import copy
from typing import Protocol

import msgspec

from flotilla_common.api.admission.fields import Fault, ForeignError
from flotilla_common.api.admission.pod_template import fill_host_ports
from flotilla_common.api.documents import Json, mapping, mappings, member
from flotilla_common.api.resources import POD_TEMPLATE
from flotilla_common.kube.interface import Api, ApiError, Unreachable

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_OURS = "template."


class TemplateJudge(Protocol):
    """Whoever can tell whether a pod template is valid."""

    async def faults(self, namespace: str, template: Json, claims: list[Json]) -> list[Fault]:
        """What is wrong with the template, at paths below `spec.template`. Each claim template is a volume, too."""
        ...


class ApiserverJudge:
    """Asks the apiserver. ApiError and Unreachable are passed on: without an answer nothing can be admitted."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def faults(self, namespace: str, template: Json, claims: list[Json]) -> list[Fault]:
        document = {
            "apiVersion": POD_TEMPLATE.api_version,
            "kind": POD_TEMPLATE.kind,
            "metadata": {"generateName": "flotilla-dry-run-", "namespace": namespace},
            "template": _judged(template, claims),
        }
        try:
            await self._try(namespace, msgspec.json.encode(document))
        except ApiError as refusal:
            if refusal.code == 422:
                return _translate(refusal)
            if refusal.code == 400:  # a member has a type that pods do not have
                return [ForeignError("spec.template", f"Invalid value: {refusal.message}")]
            if _namespace_is_going(refusal):
                return []  # the write itself meets the same namespace, and its own answer is the better one
            raise
        return []

    async def _try(self, namespace: str, body: bytes) -> None:
        """The dry run, once more after a broken connection: one that was idle for long may have been cut by whatever
        stands in between, and a user's write should not fail for that. Nothing is stored, so twice is as good as once.
        """
        try:
            await self.api.create(POD_TEMPLATE, namespace, body, dry_run=True)
        except Unreachable:
            await self.api.create(POD_TEMPLATE, namespace, body, dry_run=True)


def _judged(template: Json, claims: list[Json]) -> Json:
    """The template with what a workload is allowed beyond a bare template taken out."""
    judged = copy.deepcopy(template)
    mapping(member(judged, "metadata").get("annotations")).pop(_DELETION_COST, None)
    spec = mapping(judged.get("spec"))
    if spec.get("hostNetwork") is True:
        fill_host_ports(spec)
    names = [member(claim, "metadata").get("name", "") for claim in claims]
    if names:
        others = [volume for volume in mappings(spec.get("volumes")) if volume.get("name") not in names]
        spec["volumes"] = others + [{"name": name, "emptyDir": {}} for name in names]
    return judged


class _Cause(msgspec.Struct, frozen=True):
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, frozen=True):
    causes: list[_Cause] = []


class _Status(msgspec.Struct, frozen=True):
    details: _Details | None = None


def _translate(refusal: ApiError) -> list[Fault]:
    details = msgspec.json.decode(refusal.body or b"{}", type=_Status).details
    causes = details.causes if details else []
    faults = [ForeignError(f"spec.{cause.field}", cause.message) for cause in causes if cause.field.startswith(_OURS)]
    return list(faults) or [ForeignError("spec.template", f"Invalid value: {refusal.message}")]


def _namespace_is_going(refusal: ApiError) -> bool:
    return refusal.code == 404 or (refusal.code == 403 and b"NamespaceTerminating" in refusal.body)
