"""Pods: defaults, what of a pod may change, graceful deletion, binding, resize, ephemeral containers."""

from typing import Any

from flotilla_common.api.documents import mappings, member
from flotilla_common.control.plan import Json
from flotilla_common.model.writes import PodRules
from tests.simulation.apiserver.errors import FieldFault, forbidden_value, invalid_value, required
from tests.simulation.apiserver.kinds.base import Kind

_SPEC: Json = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
}
_CONTAINER: Json = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
_ADMITTED: Json = {"enableServiceLinks": True, "priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_CHANGEABLE = ("activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates")

_UPDATE_TEXT = (
    "pod updates may not change fields other than `spec.containers[*].image`, `spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


EPHEMERAL = "ephemeralcontainers"


class PodKind(PodRules, Kind):
    generations = True
    returns_deleted = True
    fields = (*Kind.fields, "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "status.phase", "status.podIP")
    subresources = frozenset({"status", "binding", "eviction", "resize", EPHEMERAL})

    def decode(self, document: Json, old: Json | None) -> Json:
        if old is not None and document.get("spec") is old["spec"]:
            return document
        return document | {"spec": defaulted_spec(member(document, "spec"))}

    def prepare_create(self, document: Json) -> Json:
        spec = _ADMITTED | document["spec"]
        return document | {"spec": spec, "status": {"phase": "Pending", "qosClass": quality(spec)}}

    def prepare_update(self, new: Json, old: Json, subresource: str) -> Json:
        if subresource == "binding":
            return new
        if subresource == "resize":
            return old | {"metadata": new["metadata"], "spec": _resized(new["spec"], old["spec"])}
        if subresource == EPHEMERAL:
            rest = {key: value for key, value in old["spec"].items() if key != "ephemeralContainers"}
            return old | {"spec": rest | _with_ephemeral(new["spec"])}
        prepared = super().prepare_update(new, old, subresource)
        if subresource != "status":
            return prepared
        return prepared | {"metadata": _keep_owners(prepared["metadata"], old["metadata"])}

    def validate(self, document: Json, old: Json | None, subresource: str) -> list[FieldFault]:
        if old is None:
            brought = _with_ephemeral(document["spec"])
            late = [forbidden_value("spec.ephemeralContainers", "cannot be set on create")] if brought else []
            return pod_spec_faults(document["spec"], "spec") + late
        new_spec, old_spec = document["spec"], old["spec"]
        if new_spec is old_spec or new_spec == old_spec or subresource == "binding":
            return []
        faults = pod_spec_faults(new_spec, "spec")
        if subresource == EPHEMERAL:
            faults += _ephemeral_faults(new_spec, old_spec)
        if faults or subresource == EPHEMERAL:
            return faults
        if subresource == "resize":
            before = quality(old_spec)
            same = quality(new_spec) == before
            return (
                [] if same else [invalid_value("spec", before, "Pod QOS Class may not change as a result of resizing")]
            )
        same = _frozen(new_spec) == _frozen(old_spec) and _may_end(new_spec, old_spec)
        return [] if same else [forbidden_value("spec", _UPDATE_TEXT)]


def _keep_owners(new: Json, old: Json) -> Json:
    """Owner references do not change through /status."""
    references = {key: old[key] for key in ("ownerReferences",) if key in old}
    return {key: value for key, value in new.items() if key != "ownerReferences"} | references


def _resized(new: Json, old: Json) -> Json:
    """Return the old spec with the containers' new resources: a resize changes nothing else."""
    wanted = {one["name"]: one.get("resources", {}) for one in mappings(new.get("containers"))}
    containers = [one | {"resources": wanted.get(one["name"], one["resources"])} for one in mappings(old["containers"])]
    return old | {"containers": containers}


def _with_ephemeral(spec: Json) -> Json:
    """Return the ephemeral containers of a spec, if it has any, as a member."""
    return {key: spec[key] for key in ("ephemeralContainers",) if spec.get(key)}


def _ephemeral_faults(new: Json, old: Json) -> list[FieldFault]:
    """Return the faults of ephemeral containers: existing ones never change, new ones target existing containers."""
    path, faults = "spec.ephemeralContainers", list[FieldFault]()
    found = {one["name"]: one for one in mappings(new.get("ephemeralContainers"))}
    for one in mappings(old.get("ephemeralContainers")):
        if found.get(one["name"]) != one:
            happened = "changed" if one["name"] in found else "removed"
            faults.append(forbidden_value(path, f'existing ephemeral containers "{one["name"]}" may not be {happened}'))
    names = {one["name"] for one in mappings(new["containers"])}
    for index, one in enumerate(found.values()):
        if (target := one.get("targetContainerName")) and target not in names:
            field = f"{path}[{index}].targetContainerName"
            faults.append(FieldFault("FieldValueNotFound", field, f'Not found: "{target}"'))
    return faults


def _may_end(new: Json, old: Json) -> bool:
    """Report whether the grace period is allowed: unchanged, or 1 after a negative one."""
    before, after = old.get("terminationGracePeriodSeconds"), new.get("terminationGracePeriodSeconds")
    return after == before or (before is not None and before < 0 and after == 1)


def _frozen(spec: Json) -> Json:
    """Return the spec without the members that an update may change."""
    result = {key: value for key, value in spec.items() if key not in _CHANGEABLE}
    for kind in ("containers", "initContainers"):
        if kind in result:
            result[kind] = [{key: value for key, value in one.items() if key != "image"} for one in result[kind]]
    return result


def defaulted_spec(spec: Json) -> Json:
    """Return the spec of a pod or a template with its defaults."""
    result = _SPEC | spec
    for kind in CONTAINERS:
        if kind in result:
            result[kind] = [_defaulted_container(container) for container in mappings(result[kind])]
    if "volumes" in result:
        result["volumes"] = [_defaulted_volume(volume) for volume in mappings(result["volumes"])]
    return result


def _defaulted_container(container: Json) -> Json:
    image = str(container.get("image", ""))
    _, colon, tag = image.rpartition("/")[2].partition(":")
    policy = "IfNotPresent" if "@" in image or (colon and tag != "latest") else "Always"
    return _CONTAINER | {"imagePullPolicy": policy} | container


def _defaulted_volume(volume: Json) -> Json:
    return volume if len(volume) > 1 else volume | {"emptyDir": {}}


def quality(spec: Json) -> str:
    """Return the pod's quality of service class."""
    wishes: list[tuple[Any, Any]] = []
    for container in [*mappings(spec.get("containers")), *mappings(spec.get("initContainers"))]:
        resources = member(container, "resources")
        wishes.append((resources.get("requests") or {}, resources.get("limits") or {}))
    if not any(requests or limits for requests, limits in wishes):
        return "BestEffort"
    guaranteed = all(
        limits.keys() >= {"cpu", "memory"} and all(requests.get(key, limits[key]) == limits[key] for key in limits)
        for requests, limits in wishes
    )
    return "Guaranteed" if guaranteed else "Burstable"


def pod_spec_faults(spec: Json, path: str) -> list[FieldFault]:
    """Return the faults that users make in the spec of a pod or a template."""
    containers = mappings(spec.get("containers"))
    faults = [] if containers else [required(f"{path}.containers")]
    volumes = {str(volume.get("name")) for volume in mappings(spec.get("volumes"))}
    seen: set[str] = set()
    for kind in CONTAINERS:
        for index, container in enumerate(mappings(spec.get(kind))):
            faults += _container_faults(container, f"{path}.{kind}[{index}]", volumes, seen)
    return faults


def _container_faults(container: Json, path: str, volumes: set[str], seen: set[str]) -> list[FieldFault]:
    faults: list[FieldFault] = []
    name = str(container.get("name") or "")
    if not name:
        faults.append(required(f"{path}.name"))
    elif name in seen:
        faults.append(FieldFault("FieldValueDuplicate", f"{path}.name", f'Duplicate value: "{name}"'))
    seen.add(name)
    image = str(container.get("image") or "")
    if not image:
        faults.append(required(f"{path}.image"))
    elif image != image.strip():
        faults.append(invalid_value(f"{path}.image", image, "must not have leading or trailing whitespace"))
    for index, mount in enumerate(mappings(container.get("volumeMounts"))):
        wanted = str(mount.get("name"))
        if wanted not in volumes:
            field = f"{path}.volumeMounts[{index}].name"
            faults.append(FieldFault("FieldValueNotFound", field, f'Not found: "{wanted}"'))
    return faults
