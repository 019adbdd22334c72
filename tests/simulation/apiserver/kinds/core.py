"""The small built-in kinds: each differs from the usual rules in a line or two."""

from typing import Any

from flotilla_common.api.documents import mapping, member
from flotilla_common.control.plan import Json
from flotilla_common.model.claims import PROTECTION
from tests.simulation.apiserver.errors import FieldFault, forbidden_value, invalid_value, required
from tests.simulation.apiserver.kinds.base import Kind
from tests.simulation.apiserver.kinds.pods import defaulted_spec, pod_spec_faults


class Plain(Kind):
    """A kind without a status."""

    has_status = False
    subresources = frozenset[str]()


class NamespaceKind(Kind):
    """Ends only when its content is gone: the namespace controller empties `spec.finalizers`."""

    fields = (*Kind.fields, "status.phase")
    subresources = frozenset({"status", "finalize"})
    returns_deleted = True

    def prepare_create(self, document: Json) -> Json:
        spec = member(document, "spec")
        metadata = document["metadata"]
        labels = {**mapping(metadata.get("labels")), "kubernetes.io/metadata.name": metadata["name"]}
        finalizers = [*spec.get("finalizers", ())]
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        document = document | {"metadata": metadata | {"labels": labels}}
        return document | {"spec": {"finalizers": finalizers}, "status": {"phase": "Active"}}

    def held(self, document: Json) -> bool:
        return bool(document["spec"].get("finalizers"))

    def terminating(self, document: Json) -> Json:
        """No other kind has a phase for it, and all others say how many seconds are left."""
        metadata = {key: value for key, value in document["metadata"].items() if key != "deletionGracePeriodSeconds"}
        return document | {"metadata": metadata, "status": document["status"] | {"phase": "Terminating"}}

    def prepare_update(self, new: Json, old: Json, subresource: str) -> Json:
        if subresource == "finalize":
            return new | {"status": old["status"]}
        return super().prepare_update(new | {"spec": old["spec"]}, old, subresource)


class QuotaKind(Kind):
    """A quota whose use is counted at once when it is created, and later when it is read."""

    def prepare_create(self, document: Json) -> Json:
        hard = member(document, "spec", "hard")
        return document | {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}}


class NodeKind(Kind):
    """A node brings its status along when it registers."""

    fields = (*Kind.fields, "spec.unschedulable")

    def prepare_create(self, document: Json) -> Json:
        """Prepare a new node. Real ones are tainted until they are ready; this one is not."""
        missing: Json = {member: {} for member in ("spec", "status") if member not in document}
        return document | missing


class ClaimKind(Kind):
    """A claim is protected from its first moment on, and its spec is fixed once it is bound, but for its size."""

    returns_deleted = True

    def prepare_create(self, document: Json) -> Json:
        metadata = document["metadata"]
        finalizers = [*metadata.get("finalizers", ())]
        if PROTECTION not in finalizers:
            finalizers.append(PROTECTION)
        spec: Json = {"volumeMode": "Filesystem", "storageClassName": "standard", **member(document, "spec")}
        document = document | {"metadata": metadata | {"finalizers": finalizers}, "spec": spec}
        return document | {"status": {"phase": "Pending"}}

    def validate(self, document: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        if old is None or _fixed(document["spec"]) == _fixed(old["spec"]):
            return []
        if "volumeName" not in old["spec"] and _unbound(document["spec"]) == old["spec"]:
            return []
        return [forbidden_value("spec", _CLAIM_TEXT)]


_CLAIM_TEXT = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


def _fixed(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key not in ("resources", "volumeAttributesClassName")}


def _unbound(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key != "volumeName"}


class RevisionKind(Plain):
    """A ControllerRevision's data never changes."""

    def validate(self, document: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        revision = document.get("revision", 0)
        faults: list[FieldFault] = []
        if "data" not in document:
            faults.append(required("data", "data is mandatory"))
        elif old is not None and document["data"] != old["data"]:
            faults.append(invalid_value("data", document.get("data"), "field is immutable"))
        if not isinstance(revision, int) or revision < 0:
            faults.append(invalid_value("revision", revision, "must be greater than or equal to 0"))
        return faults


class LeaseKind(Plain):
    """A lease is always replaced on a version."""

    unconditional_update = False
    create_on_update = True

    def validate(self, document: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        spec = member(document, "spec")
        faults: list[FieldFault] = []
        duration: Any = spec.get("leaseDurationSeconds")
        if duration is not None and duration <= 0:
            faults.append(invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0"))
        transitions: Any = spec.get("leaseTransitions")
        if transitions is not None and transitions < 0:
            faults.append(invalid_value("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        return faults


class EventKind(Plain):
    create_on_update = True
    fields = (*Kind.fields, "involvedObject.kind", "involvedObject.name", "involvedObject.uid", "reason", "type")

    def validate(self, document: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        about = member(document, "involvedObject").get("namespace") or "default"
        namespace = document["metadata"].get("namespace")
        if about == namespace:
            return []
        return [invalid_value("involvedObject.namespace", about, "does not match event.namespace")]


class TemplateKind(Plain):
    """A PodTemplate: how admission asks whether a template is valid."""

    def decode(self, document: Json, old: Json | None) -> Json:
        template = member(document, "template")
        return document | {"template": template | {"spec": defaulted_spec(member(template, "spec"))}}

    def validate(self, document: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        return pod_spec_faults(document["template"]["spec"], "template.spec")
