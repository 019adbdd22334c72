"""Jobs of batch/v1: defaults, the selector of a Job's pods, and its mutable fields."""

from flotilla_common.api.documents import mapping, member
from flotilla_common.control.plan import Json
from tests.simulation.apiserver.errors import FieldFault, invalid_value, required
from tests.simulation.apiserver.kinds.base import Kind
from tests.simulation.apiserver.kinds.pods import defaulted_spec, pod_spec_faults

UID_LABEL, NAME_LABEL = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"

_SPEC: Json = {
    "parallelism": 1,
    "completions": 1,
    "backoffLimit": 6,
    "completionMode": "NonIndexed",
    "suspend": False,
    "podReplacementPolicy": "TerminatingOrFailed",
    "manualSelector": False,
}


class JobKind(Kind):
    """A Job; a delete without a propagation policy orphans its pods."""

    generations = True
    orphans = True

    def decode(self, document: Json, old: Json | None) -> Json:
        if old is not None and document.get("spec") is old["spec"]:
            return document
        spec = _SPEC | member(document, "spec")
        template = member(spec, "template")
        return document | {"spec": spec | {"template": template | {"spec": defaulted_spec(member(template, "spec"))}}}

    def prepare_create(self, document: Json) -> Json:
        """Its pods are known by its uid."""
        metadata, spec = document["metadata"], document["spec"]
        labels = {UID_LABEL: metadata["uid"], NAME_LABEL: metadata["name"]}
        template = spec["template"]
        marked = mapping(template.get("metadata"))
        marked = marked | {"labels": mapping(marked.get("labels")) | labels}
        selector = {"matchLabels": {UID_LABEL: metadata["uid"]}}
        spec = spec | {"selector": selector, "template": template | {"metadata": marked}}
        return document | {"spec": spec, "status": {}}

    def validate(self, document: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        spec = document["spec"]["template"]["spec"]
        faults = pod_spec_faults(spec, "spec.template.spec")
        if spec.get("restartPolicy") == "Always":
            faults.append(required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
        if old is not None and spec != old["spec"]["template"]["spec"]:
            faults.append(invalid_value("spec.template.spec", spec, "field is immutable"))
        return faults
